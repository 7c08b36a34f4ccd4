import socket

import pytest

from studio.supervisor.address import AddressError, answers, require_free, url
from tests.live import free_port


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0"])
def test_a_taken_port_is_told_from_a_free_one(host: str) -> None:
    port = free_port()
    require_free(host, port)
    assert not answers(host, port)
    with socket.create_server(("127.0.0.1", port)):
        assert answers(host, port)
        with pytest.raises(AddressError, match=f"Port {port} on {host} is taken"):
            require_free(host, port)
    require_free(host, port)


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_an_address_of_another_machine_is_named(host: str) -> None:
    with pytest.raises(AddressError, match="not an address of this machine"):
        require_free(host, free_port())


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000/"),
        ("0.0.0.0", "http://127.0.0.1:8000/"),
        ("::", "http://[::1]:8000/"),
        ("studio.example", "http://studio.example:8000/"),
    ],
)
def test_the_address_shown_is_one_to_type(host: str, expected: str) -> None:
    assert url(host, 8000) == expected
