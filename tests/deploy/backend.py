"""A server that answers with the request it got, to see what a proxy passes on."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Mirror(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        if headers.get("transfer-encoding") == "chunked":
            # The proxies read a body to its end, and know its length.
            self.send_error(411)
            return
        size = len(self.rfile.read(int(headers.get("content-length", "0"))))
        body = json.dumps({"path": self.path, "headers": headers, "size": size}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    """Counts the connections that it has accepted."""

    accepted = 0

    def process_request(self, *arguments: object) -> None:
        self.accepted += 1
        super().process_request(*arguments)  # type: ignore[arg-type]


@contextmanager
def mirror() -> Iterator[Server]:
    """Run one until the block ends."""
    with Server(("127.0.0.1", 0), Mirror) as server:
        thread = threading.Thread(target=server.serve_forever, name="mirror")
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
