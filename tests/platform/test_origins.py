"""Which pages may open a socket."""

import logging
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings
from pytest_django.fixtures import Settings

from studio.server.headers import OriginCheck


async def is_let_in(listed: str | None, *origins: bytes, host: bytes = b"", scheme: str = "ws") -> bool:
    opened: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        opened.append(scope)

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        assert message == {"type": "websocket.close"}

    headers = [(b"origin", origin) for origin in origins] + [(b"host", host)]
    scope = {"type": "websocket", "scheme": scheme, "headers": headers}
    with override_settings(REPRISE={"ORIGINS": listed and [listed]}):
        await OriginCheck(application)(scope, receive, send)
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
    with override_settings(REPRISE={"ORIGINS": origins}), pytest.raises(ImproperlyConfigured):
        OriginCheck(None)  # type: ignore[arg-type]


class TestWithoutAList:
    """The address of the socket counts, and CSRF_TRUSTED_ORIGINS, as for a form."""

    HOST = b"testserver:8000"

    @pytest.mark.parametrize(
        ("origin", "scheme", "is_in"),
        [
            (b"http://testserver:8000", "ws", True),
            (b"https://testserver:8000", "wss", True),
            (b"https://testserver:8000", "ws", False),
            (b"http://testserver:8001", "ws", False),
            (b"http://testserver", "ws", False),
            (b"http://evil:8000", "ws", False),
            (b"null", "ws", False),
        ],
    )
    async def test_a_page_of_the_same_host_may(self, origin: bytes, scheme: str, is_in: bool) -> None:
        assert await is_let_in(None, origin, host=self.HOST, scheme=scheme) is is_in

    async def test_a_page_of_a_trusted_origin_may(self, settings: Settings) -> None:
        settings.CSRF_TRUSTED_ORIGINS = ["https://studio.example", "https://*.example"]
        assert await is_let_in(None, b"https://studio.example", host=self.HOST)
        assert not await is_let_in(None, b"https://other.example", host=self.HOST)

    async def test_tls_in_front_of_the_server_counts_as_the_settings_say(self, settings: Settings) -> None:
        settings.SECURE_PROXY_SSL_HEADER = ("HTTP_ORIGIN", "https://testserver:8000")
        assert await is_let_in(None, b"https://testserver:8000", host=self.HOST)
