"""The address that the web process listens on."""

import errno
import http.client
import socket
from pathlib import Path

from studio.environment.folder import start

FIRST_OPEN_PORT = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")


class AddressError(Exception):
    """The web process cannot listen at HOST and PORT: the port is in use, or the address is not one of this
    machine.

    Stop what uses the port, or set another: PORT=8001.
    """


def require_free(host: str, port: int) -> None:
    """Raise AddressError unless `host`:`port` can be listened on."""
    _bound(host, port).close()


def listen(host: str, port: int) -> socket.socket:
    """Listen there for a program that is not allowed to. Raise AddressError if we are not allowed to either."""
    listener = _bound(host, port)
    listener.listen(128)
    return listener


def is_reserved(port: int) -> bool:
    """Return whether only root may listen on it."""
    try:
        return port < int(FIRST_OPEN_PORT.read_text())
    except (OSError, ValueError):
        return port < 1024


def _bound(host: str, port: int) -> socket.socket:
    family, address = _resolve(host, port)
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        # As the server does: lingering connections of an earlier run do no harm.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise AddressError(_explain(error, host, port)) from None
    return listener


def answers(host: str, port: int) -> bool:
    """Return whether something accepts connections there."""
    family, address = _resolve(_reachable(host), port)
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        return probe.connect_ex(address) == 0


def url(host: str, port: int) -> str:
    """Return the address as users type it."""
    name = _reachable(host)
    return f"http://{f'[{name}]' if ':' in name else name}:{port}/"


def _reachable(host: str) -> str:
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  compared, not bound


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str, int]]:
    # Use the IPv4 address of a name, as the server does.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        found = socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
    except OSError as error:
        raise AddressError(
            f'HOST is "{host}", which is not an address of this machine: {error.strerror}.'
        ) from None
    return family, (str(found[0][4][0]), port)


def _explain(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        other = f"PORT={port + 1 if port < 65535 else 8000} {start()}"
        if _is_reprise(host, port):
            return (
                f"Port {port} on {host} is taken by another Reprise, with a REPRISE_HOME of its own: {url(host, port)} "
                f"Stop that one, or choose another port: {other}"
            )
        return f"Port {port} on {host} is taken by another program. Stop that one, or choose another port: {other}"
    if error.errno == errno.EACCES:
        return (
            f"Port {port} needs more rights than this account has. Choose one above 1023: PORT=8000 {start()}"
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return (
            f'HOST is "{host}", which is not an address of this machine. Use 127.0.0.1, or 0.0.0.0 for all.'
        )
    return f"Cannot listen on {host} port {port}: {error.strerror}."


def _is_reprise(host: str, port: int) -> bool:
    """Return whether the Studio answers there: its sign-in page sets our cookie."""
    connection = http.client.HTTPConnection(_reachable(host), port, timeout=2)
    try:
        connection.request("GET", "/sign-in/")
        return "reprise-csrf=" in connection.getresponse().headers.get("Set-Cookie", "")
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
