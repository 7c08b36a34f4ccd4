"""nginx and Caddy, as docs/deploy sets them up, pass on what the Studio needs and nothing that clients invent."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.backend import Server, mirror
from tests.deploy.proxies import HOST, Proxy, read_all, running, write_caddy, write_nginx

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

SOCKET = "/ws/?topic=home"
UPGRADE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: AA==",
)


@pytest.fixture(scope="module")
def backend() -> Iterator[Server]:
    with mirror() as server:
        yield server


@pytest.fixture(scope="module", params=[write_nginx, write_caddy], ids=["nginx", "caddy"])
def proxy(request: pytest.FixtureRequest, backend: Server) -> Iterator[Proxy]:
    with (
        tempfile.TemporaryDirectory(prefix="proxy-") as directory,
        running(request.param, Path(directory), backend.server_port) as proxy,
    ):
        yield proxy


@pytest.fixture
def nginx(backend: Server, tmp_path: Path) -> Iterator[Proxy]:
    with running(write_nginx, tmp_path, backend.server_port) as proxy:
        yield proxy


def request(
    path: str, *headers: str, method: str = "GET", connection: str = "close", host: str = HOST
) -> bytes:
    ways = [] if any(one.startswith("Connection") for one in headers) else [f"Connection: {connection}"]
    return "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {host}", *ways, *headers, "", ""]).encode()


def arrived(answer: bytes) -> dict[str, Any]:
    """Return the request as the backend got it."""
    found = re.search(rb"\{.*\}", answer, re.DOTALL)
    assert answer.startswith(b"HTTP/1.1 200"), answer
    assert found is not None, answer
    return json.loads(found[0])


def read_one(connection: socket.socket) -> bytes:
    """Read the answer of a backend that keeps the connection open."""
    answer = b""
    while b'"size"' not in answer and (chunk := connection.recv(65536)):
        answer += chunk
    return answer


def headers_of(proxy: Proxy, path: str, *headers: str, source: str = "127.0.0.1") -> dict[str, str]:
    return arrived(proxy.ask(request(path, *headers), source=source))["headers"]


def test_nginx_finds_nothing_wrong_with_the_file(tmp_path: Path) -> None:
    command, _ = write_nginx(tmp_path, 8000)
    done = subprocess.run([*command, "-t"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "warn" not in done.stderr, done.stderr


def test_caddy_finds_nothing_wrong_with_the_file_and_its_format(tmp_path: Path) -> None:
    command, _ = write_caddy(tmp_path, 8000)
    caddy = command[0]
    for arguments in (["validate", "--adapter", "caddyfile", "--config"], ["fmt", "--diff"]):
        done = subprocess.run(
            [caddy, *arguments, str(tmp_path / "Caddyfile")],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_address_and_the_scheme_are_those_of_the_connection(proxy: Proxy) -> None:
    said = ("X-Forwarded-For: 203.0.113.9", "X-Forwarded-Proto: http")
    headers = headers_of(proxy, "/", *said, source="127.0.0.7")
    assert headers["x-forwarded-for"] == "127.0.0.7"
    assert headers["x-forwarded-proto"] == "https"
    assert headers["host"] == HOST


@pytest.mark.parametrize("header", ["X-Forwarded-Host", "Forwarded", "Daphne-Root-Path"])
def test_what_only_a_proxy_may_say_does_not_pass(proxy: Proxy, header: str) -> None:
    value = headers_of(proxy, "/", f"{header}: evil.example").get(header.lower(), "")
    assert "evil" not in value


def test_the_socket_may_leave_http(proxy: Proxy) -> None:
    # The backend answers it like a page, and closes.
    with proxy.open() as connection:
        connection.sendall(request(SOCKET, *UPGRADE))
        answer = read_one(connection)
    headers = arrived(answer)["headers"]
    assert (headers["upgrade"], headers["connection"].lower()) == ("websocket", "upgrade")


@pytest.mark.parametrize("path", ["/", "/workflows/ws/", "/ws/more/"])
def test_nothing_else_may(proxy: Proxy, path: str) -> None:
    with proxy.open() as connection:
        connection.sendall(request(path, *UPGRADE))
        answer = read_one(connection)
    headers = arrived(answer)["headers"]
    assert "upgrade" not in headers
    assert "upgrade" not in headers.get("connection", "").lower()


def test_a_request_without_tls_is_redirected(proxy: Proxy) -> None:
    with socket.create_connection(("127.0.0.1", proxy.plain_port), timeout=60) as connection:
        connection.sendall(request("/instances/?status=waiting"))
        answer = read_all(connection)
    assert re.match(rb"HTTP/1\.1 30[18] ", answer), answer
    assert re.search(
        rb"(?i)\r\nlocation: https://studio\.example(:\d+)?/instances/\?status=waiting\r\n", answer
    )


def test_nginx_refuses_a_body_above_the_studios_limit(nginx: Proxy) -> None:
    answer = nginx.ask(request("/", f"Content-Length: {4 * 1024 * 1024 + 1}", method="POST"))
    assert answer.startswith(b"HTTP/1.1 413 "), answer


def test_nginx_keeps_a_slow_client_to_itself(nginx: Proxy, backend: Server) -> None:
    before = backend.accepted
    body = b"x" * 100
    with nginx.open() as connection:
        connection.sendall(request("/slow", f"Content-Length: {len(body)}", method="POST"))
        for index in range(len(body) - 1):
            connection.sendall(body[index : index + 1])
        time.sleep(0.3)
        assert backend.accepted == before, "the backend waits for a slow client"
        # Meanwhile others are served.
        assert headers_of(nginx, "/")["host"] == HOST
        connection.sendall(body[-1:])
        assert arrived(read_all(connection))["size"] == len(body)
