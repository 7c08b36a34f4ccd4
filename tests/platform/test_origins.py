"""Which pages may open a socket."""

import logging
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from studio.server.headers import FullOriginValidator


async def is_let_in(listed: str, *origins: bytes) -> bool:
    opened: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        opened.append(scope)

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        assert message == {"type": "websocket.close"}

    scope = {"type": "websocket", "headers": [(b"origin", origin) for origin in origins]}
    await FullOriginValidator(application, [listed])(scope, receive, send)
    return bool(opened)


@pytest.mark.parametrize(
    ("listed", "origin"),
    [
        ("https://studio.example", b"https://studio.example"),
        ("https://studio.example", b"https://studio.example:443"),
        ("https://Studio.Example:443", b"https://studio.example"),
        ("http://127.0.0.1:8000", b"http://127.0.0.1:8000"),
        ("http://[::1]:8000", b"http://[::1]:8000"),
    ],
)
async def test_the_studios_own_pages_may_open_sockets(listed: str, origin: bytes) -> None:
    assert await is_let_in(listed, origin)


@pytest.mark.parametrize(
    "origin",
    [
        b"",
        b"null",
        b"http://evil",
        b"https://studio.evil",
        b"https://studio.example.evil",
        b"https://evil.studio.example",
        b"https://studio.example:8443",
        b"http://studio.example",
        b"javascript://studio.example",
        b"https://studio.example:99999",
        b"https://studio.example:port",
        b"https://user@studio.example",
        b"https://studio.example/",
        b"https://[::1",
        b"https://[v1.x]",
        b"https://studio.example\xff",
        b"//studio.example",
    ],
)
async def test_no_other_page_may(origin: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "studio.refused"):
        assert not await is_let_in("https://studio.example", origin)
    assert caplog.messages == [
        "Refused a request from a local socket: A page from another origin cannot open a socket."
    ]


async def test_a_socket_without_an_origin_or_with_two_is_refused() -> None:
    assert not await is_let_in("https://studio.example")
    assert not await is_let_in("https://studio.example", b"https://studio.example", b"https://evil.example")


@pytest.mark.parametrize("origins", [[], ["*"], ["https://*"], ["studio.example"]])
def test_a_list_that_is_no_list_of_origins_stops_the_start(origins: list[str]) -> None:
    with pytest.raises(ImproperlyConfigured):
        FullOriginValidator(None, origins)  # type: ignore[arg-type]
