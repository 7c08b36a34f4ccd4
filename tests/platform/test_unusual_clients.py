"""Requests that are valid HTTP, and that few libraries send: real bytes to a real daphne."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from tests.live import LiveStack
from tests.platform.conftest import BODY_SECONDS
from tests.platform.programs import API, JSON, Answer, Program, program
from tests.platform.visitor import head, status_of, talk

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

START = f"{API}/workflows/tick/instances"
PROBLEM = "application/problem+json"


@pytest.fixture(scope="module")
def known(api_stack: LiveStack) -> Program:
    return program(api_stack)


@pytest.fixture(autouse=True)
def _without_failures(api_stack: LiveStack) -> Iterator[None]:
    before = api_stack.output().count("Traceback")
    yield
    assert api_stack.output().count("Traceback") == before


def whole(stack: LiveStack, request: bytes) -> bytes:
    """Send bytes, and read until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", stack.port), timeout=60) as connection:
        connection.sendall(request)
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
        return answer


class TestHead:
    """Daphne sends all of a body but its first 64 KiB."""

    @pytest.mark.parametrize("path", ["/api/v1/openapi.json", "/static/studio/vendor/codemirror.js"])
    def test_of_a_large_answer_has_no_body(self, api_stack: LiveStack, known: Program, path: str) -> None:
        asked = b"HEAD %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % path.encode()
        then = head(api_stack, f"GET {API}/me HTTP/1.1", known.authorization)
        first, second = whole(api_stack, asked + then).split(b"\r\n\r\n", 1)
        assert status_of(first) == 200
        assert int(Answer.of(first).headers["content-length"]) > 64 * 1024
        assert Answer.of(second).document["verbs"] == ["operate", "view"]


class TestContentEncoding:
    @pytest.mark.parametrize("first", ["GET /", f"GET {API}/me", f"HEAD {API}/me", f"DELETE {START}/x"])
    @pytest.mark.parametrize("length", [[], [b"Content-Length: 0"]], ids=["no body", "an empty body"])
    def test_without_a_body_is_answered_and_the_connection_ends(
        self, api_stack: LiveStack, known: Program, first: str, length: list[bytes]
    ) -> None:
        """It was never answered, and the connection stayed open until its client closed it."""
        about = [b"Content-Encoding: gzip", *length]
        began = time.monotonic()
        answer = whole(api_stack, head(api_stack, f"{first} HTTP/1.1", known.authorization, *about))
        assert status_of(answer) == 415
        assert answer.count(b"HTTP/1.1") == 1
        assert time.monotonic() - began < 2 * BODY_SECONDS


class TestContentType:
    @pytest.mark.parametrize(
        "parameter",
        [
            *("x*=nothing''y", "x*=idna''y%FF", "x*=punycode''%ff", "x*0*=undefined''%ff", "x*=0''"),
            *("y*0*=x''1;y*1=2", "x*=\x80''z"),
        ],
    )
    @pytest.mark.parametrize("first", [f"GET {API}/me", f"POST {START}", "GET /sign-in/", "POST /hooks/x"])
    def test_that_django_cannot_read_is_refused(
        self, api_stack: LiveStack, known: Program, first: str, parameter: str
    ) -> None:
        about = f"Content-Type: {JSON}; {parameter}".encode("latin1")
        request = head(api_stack, f"{first} HTTP/1.1", known.authorization, about, b"Content-Length: 2")
        answer = Answer.of(talk(api_stack, request + b"{}"))
        assert answer.status == 415
        assert answer.headers["content-type"] == (PROBLEM if API in first else "text/plain; charset=utf-8")

    @pytest.mark.parametrize("charset", ["utf-8", "UTF-8", "utf8", '"utf-8"', "UTF8; x=y"])
    def test_of_utf_8_in_any_spelling_is_taken(
        self, api_stack: LiveStack, known: Program, charset: str
    ) -> None:
        about = (f"Content-Type: {JSON}; charset={charset}".encode(), b"Content-Length: 2")
        request = head(api_stack, f"POST {START} HTTP/1.1", known.authorization, *about)
        assert status_of(talk(api_stack, request + b"{}")) == 201


class TestHosts:
    @pytest.mark.parametrize("host", ["evil.example", "a/b", "127.0.0.1, evil.example", "["])
    def test_that_are_not_allowed_get_a_problem(
        self, api_stack: LiveStack, known: Program, host: str
    ) -> None:
        request = f"GET {API}/me HTTP/1.1\r\nHost: {host}\r\nConnection: close".encode()
        answer = talk(api_stack, request + b"\r\n" + known.authorization + b"\r\n\r\n")
        assert Answer.of(answer).headers["content-type"] == PROBLEM
        assert status_of(answer) == 403
        assert b'"code": "host_not_allowed"' in answer

    def test_of_a_page_get_a_page(self, api_stack: LiveStack) -> None:
        answer = talk(api_stack, b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
        assert status_of(answer) == 400
        assert Answer.of(answer).headers["content-type"].startswith("text/html")


class TestBodies:
    CHUNKS = (b"1\r\n{\r\n", b'1;a="b"\r\n}\r\n', b"0\r\nX-Trailer: 1\r\n\r\n")

    def sent(
        self, stack: LiveStack, known: Program, about: bytes, *parts: bytes, version: str = "1.1"
    ) -> bytes:
        """Send the parts one after the other."""
        kind = f"Content-Type: {JSON}".encode()
        first = head(stack, f"POST {START} HTTP/{version}", known.authorization, kind, about)
        with socket.create_connection(("127.0.0.1", stack.port), timeout=60) as connection:
            for part in (first, *parts):
                connection.sendall(part)
                time.sleep(0.05)
            answer = b""
            while chunk := connection.recv(65536):
                answer += chunk
            return answer

    @pytest.mark.parametrize("version", ["1.0", "1.1"])
    def test_in_chunks_are_taken(self, api_stack: LiveStack, known: Program, version: str) -> None:
        about = b"Transfer-Encoding: chunked"
        assert status_of(self.sent(api_stack, known, about, *self.CHUNKS, version=version)) == 201

    def test_that_are_announced_are_asked_for(self, api_stack: LiveStack, known: Program) -> None:
        about = b"Expect: 100-continue\r\nContent-Length: 2"
        asked, answer = self.sent(api_stack, known, about, b"{}").split(b"\r\n\r\n", 1)
        assert (status_of(asked), status_of(answer)) == (100, 201)

    def test_of_a_get_are_not_looked_at(self, api_stack: LiveStack, known: Program) -> None:
        assert known.ask("GET", "/me", b"not JSON").status == 200


class TestQueries:
    @pytest.mark.parametrize("query", ["&".join(f"a{n}=1" for n in range(1_200)), "&".join(["a"] * 5_000)])
    def test_with_thousands_of_parameters_are_refused(self, known: Program, query: str) -> None:
        answer = known.ask("GET", f"/instances?{query}")
        assert (answer.status, answer.headers["content-type"]) == (400, PROBLEM)

    @pytest.mark.parametrize("text", ["%ff%fe", "%ed%a0%80", "%F0%9F%92%A9", "%", "%zz", "%0d%0aX:%201"])
    def test_of_any_bytes_find_nothing(self, known: Program, text: str) -> None:
        answer = known.ask("GET", f"/instances?q={text}")
        assert (answer.status, answer.document["instances"]) == (200, [])
        assert "x" not in answer.headers
