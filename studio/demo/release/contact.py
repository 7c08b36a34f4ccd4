"""Find out whether the server of a directory runs, and ask it."""

from __future__ import annotations

import fcntl
import http.client
import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ASK_TIMEOUT = 5.0


class ServerTrouble(Exception):
    """A server does not do what it should; another attempt may find it well."""


@dataclass(frozen=True)
class Address:
    """Where a server listens, and what it obeys to."""

    port: int
    token: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def address(directory: Path) -> Address:
    """Return where the server of a directory listens. Raises ServerTrouble when it does not run."""
    if is_running(directory):
        with suppress(OSError, ValueError, KeyError):
            recorded = json.loads((directory / "server.json").read_text())
            return Address(recorded["port"], recorded["token"])
    raise ServerTrouble(f"{directory.name} does not run.")


def ask(directory: Path, path: str, *, method: str = "GET") -> tuple[int, bytes]:
    """Send the server a request; return status and body. Raises ServerTrouble when it does not answer."""
    server = address(directory)
    # Not urllib: it would go through the proxy that the environment names.
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=ASK_TIMEOUT)
    try:
        headers = (
            {} if method == "GET" else {"Authorization": f"Bearer {server.token}", "Content-Length": "0"}
        )
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise ServerTrouble(
            f"{directory.name} did not answer {method} {path}: {error or type(error).__name__}"
        ) from error
    finally:
        connection.close()


def ask_json(directory: Path, path: str, *, method: str = "GET") -> dict[str, Any]:
    """The same for an answer in JSON. Raises ServerTrouble for any status but 200."""
    status, body = ask(directory, path, method=method)
    if status != http.client.OK:
        said = body.decode(errors="replace")[:200]
        raise ServerTrouble(f"{directory.name} answered {method} {path} with {status}: {said}")
    facts: dict[str, Any] = json.loads(body)
    return facts


def is_running(directory: Path) -> bool:
    """Tell whether a server holds the lock of its directory: true as long as it lives, whatever it answers."""
    try:
        lock = (directory / "lock").open("rb")
    except FileNotFoundError:
        return False
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False
