from urllib.parse import urlparse

import pytest
from django.core.exceptions import ImproperlyConfigured

from studio.origins import FullOriginValidator

STUDIO = FullOriginValidator(None, ["https://studio.example"])


@pytest.mark.parametrize("origin", ["https://studio.example", "https://studio.example:443"])
def test_the_studios_own_pages_may_open_sockets(origin: str) -> None:
    assert STUDIO.valid_origin(urlparse(origin))


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "http://evil",
        "https://studio.evil",
        "https://studio.example.evil",
        "https://evil.studio.example",
        "https://studio.example:8443",
        "http://studio.example",
        "javascript://studio.example",
        "https://studio.example:99999",
        "https://studio.example:port",
        "//studio.example",
    ],
)
def test_no_other_page_may(origin: str) -> None:
    assert not STUDIO.valid_origin(urlparse(origin))


def test_a_socket_without_an_origin_is_refused() -> None:
    assert not STUDIO.valid_origin(None)


@pytest.mark.parametrize("origins", [[], ["*"], ["https://*"], ["studio.example"]])
def test_a_list_that_is_no_list_of_origins_stops_the_start(origins: list[str]) -> None:
    with pytest.raises(ImproperlyConfigured):
        FullOriginValidator(None, origins)
