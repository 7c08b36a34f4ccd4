"""A small web server that serves a release: `python -m studio.demo.release.server DIRECTORY IDLE_SECONDS OVERSEER`.

The directory is the server's own, and its whole identity: a worker that starts it and another one that finds it again
after a crash need nothing else.

    current       a link to the release that is served, followed anew at POST /reload
    lock          locked as long as the server lives; holds its process id
    server.json   where it listens, and the token for POST /reload and /stop

It goes into the background as soon as it listens, and ends by itself when its directory is gone, when the process
OVERSEER is (0: there is none), or when nobody has asked it anything for that many seconds: its worker and everybody
who knew of it may be dead.
"""

import fcntl
import hmac
import json
import os
import secrets
import sys
import threading
import time
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any

from studio.demo.release.contents import checksums, version

TURN_SECONDS = 0.2
LOCK_PATIENCE = 0.5


class ReleaseServer(ThreadingHTTPServer):
    daemon_threads = True
    timeout = TURN_SECONDS

    def __init__(self, directory: Path, idle_seconds: float, overseer: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.directory = directory
        self.token = secrets.token_hex(16)
        self.idle_seconds = idle_seconds
        self.overseer = overseer
        self.asked_at = time.monotonic()
        self.stopping = threading.Event()
        self.load()

    def load(self) -> None:
        """Follow the link to the release; what it names is served until the next call, whatever becomes of the link."""
        self.root = (self.directory / "current").resolve(strict=True)
        files = checksums(self.root)
        self.facts = {"version": version(files), "files": len(files), "release": self.root.name}

    def record(self) -> None:
        draft = self.directory / ".server.json"
        draft.touch(mode=0o600)
        draft.write_text(json.dumps({"pid": os.getpid(), "port": self.server_port, "token": self.token}))
        draft.replace(self.directory / "server.json")

    def serve(self) -> None:
        while not self.stopping.is_set() and not self._is_forgotten():
            self.handle_request()

    def _is_forgotten(self) -> bool:
        is_idle = time.monotonic() - self.asked_at > self.idle_seconds
        return is_idle or not self.directory.exists() or not (self.overseer == 0 or is_alive(self.overseer))


class Handler(SimpleHTTPRequestHandler):
    server: ReleaseServer
    timeout = 10

    def __init__(self, request: Any, client_address: Any, server: ReleaseServer) -> None:
        super().__init__(request, client_address, server, directory=str(server.root))

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        # A page of another site may have this address under a name of its own.
        port = self.server.server_port
        if self.headers.get("Host") not in (f"127.0.0.1:{port}", f"localhost:{port}"):
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return False
        self.server.asked_at = time.monotonic()
        return True

    def do_GET(self) -> None:
        if self.path == "/health":
            is_well = (self.server.root / "index.html").is_file()
            status = HTTPStatus.OK if is_well else HTTPStatus.SERVICE_UNAVAILABLE
            self._answer({"status": "ok" if is_well else "no index.html", "pid": os.getpid()}, status)
        elif self.path == "/version":
            self._answer(self.server.facts)
        else:
            super().do_GET()

    def do_POST(self) -> None:
        given = self.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self.server.token}".encode()):
            self.send_error(HTTPStatus.FORBIDDEN)
        elif self.path == "/reload":
            self.server.load()
            self._answer(self.server.facts)
        elif self.path == "/stop":
            self._answer({"status": "stopping"})
            self.server.stopping.set()
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def list_directory(self, path: Any) -> None:
        self.send_error(HTTPStatus.NOT_FOUND)

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        """Keep the log for errors: it is never cut."""

    def _answer(self, facts: dict[str, Any], status: HTTPStatus = HTTPStatus.OK) -> None:
        body = json.dumps(facts).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> int:
    directory, idle_seconds, overseer = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    lock = (directory / "lock").open("a+")
    if not _take(lock):
        return 0  # another one serves this directory
    # What the one before us said of itself is true no more.
    lock.truncate(0)
    (directory / "server.json").unlink(missing_ok=True)
    server = ReleaseServer(directory, idle_seconds, overseer)
    ready, tell = os.pipe()
    if os.fork():
        # Whoever started us waits for this process: it ends when the server can be found, or has died.
        os.close(tell)
        return 0 if os.read(ready, 1) else 1
    os.close(ready)
    _go_to_background(directory)
    lock.write(str(os.getpid()))
    lock.flush()
    server.record()
    os.write(tell, b".")
    os.close(tell)
    server.serve()
    return 0


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _take(lock: IO[str]) -> bool:
    """Lock for life. Somebody who looks whether we live holds the lock for a moment, so try for a moment."""
    ends_at = time.monotonic() + LOCK_PATIENCE
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > ends_at:
                return False
            time.sleep(0.02)
        else:
            return True


def _go_to_background(directory: Path) -> None:
    os.setsid()
    os.chdir("/")
    log = os.open(directory / "server.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for standard in (1, 2):
        os.dup2(log, standard)
    os.close(log)


if __name__ == "__main__":
    sys.exit(main())
