"""A server that answers as it is told, for what no Studio does on purpose: failing, redirecting, dropping."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DROP = "drop"  # close the connection without an answer


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    kind: str = "application/json"
    is_cut: bool = False  # the connection ends before the body does


@dataclass(frozen=True)
class Seen:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Stub:
    """Gives its replies in order, the last one again and again. `seen` has what was asked."""

    port: int
    replies: list[Reply | str]
    seen: list[Seen] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def next(self) -> Reply | str:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


def problem(status: int, code: str = "a_code", detail: str = "A sentence.", **more: Any) -> Reply:
    headers = more.pop("headers", {})
    document = {
        "type": f"urn:reprise:problem:{code}",
        "status": status,
        "code": code,
        "detail": detail,
        **more,
    }
    return Reply(status, document, headers, "application/problem+json")


@contextmanager
def serving(*replies: Reply | str) -> Iterator[Stub]:
    """Serve on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            stub.seen.append(Seen(self.command, self.path, dict(self.headers), self.rfile.read(size)))
            reply = stub.next()
            self.close_connection = True
            if isinstance(reply, str):
                self.connection.close()
                return
            body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for name, value in {"Content-Type": reply.kind, **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body) + (1000 if reply.is_cut else 0)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = answer  # noqa: N815  names of the standard library

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  a dropped connection is no failure here
    stub = Stub(server.server_port, list(replies))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
