"""What the server accepts: real bytes to a real daphne."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from engine.configuration import setting
from studio.supervisor.address import answers
from tests.live import LiveStack, free_port
from tests.platform.visitor import FORM, At, SignedIn, post, status_of, talk
from tests.processes import marked

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

LIMIT = setting("MAX_BODY_BYTES")
MEBIBYTE = 1024 * 1024


def _talk(stack: LiveStack, head: str, body: bytes = b"", *, repeat: int = 1, timeout: float = 20) -> bytes:
    """Send a request, its body `repeat` times, and read to the end of the answer or the connection."""
    with socket.create_connection(("127.0.0.1", stack.port), timeout=timeout) as connection:
        connection.sendall(f"{head}\r\nHost: 127.0.0.1:{stack.port}\r\nConnection: close\r\n\r\n".encode())
        try:
            for _ in range(repeat if body else 0):
                connection.sendall(body)
        except (BrokenPipeError, ConnectionResetError):
            pass
        answer = b""
        try:
            while chunk := connection.recv(65536):
                answer += chunk
        except ConnectionResetError:
            pass
        return answer


def _status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def _web_memory(stack: LiveStack) -> int:
    (pid,) = [pid for pid, command in marked(stack.run).items() if "daphne" in command]
    line = next(
        line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM")
    )
    return int(line.split()[1]) * 1024


def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_sent(live_stack: LiveStack) -> None:
    answer = _talk(live_stack, f"POST /sign-in/ HTTP/1.1\r\nContent-Length: {LIMIT + 1}")
    assert _status(answer) == 413
    assert b"frame-ancestors 'none'" in answer


def test_four_hundred_mebibytes_cost_next_to_no_memory(live_stack: LiveStack) -> None:
    _talk(live_stack, "GET /sign-in/ HTTP/1.1")
    before = _web_memory(live_stack)
    said = f"POST /sign-in/ HTTP/1.1\r\nContent-Length: {400 * MEBIBYTE}"
    chunked = "POST /sign-in/ HTTP/1.1\r\nTransfer-Encoding: chunked"
    chunk = b"%x\r\n%s\r\n" % (MEBIBYTE, b"x" * MEBIBYTE)

    assert _status(_talk(live_stack, said, b"x" * MEBIBYTE, repeat=400)) == 413
    assert _status(_talk(live_stack, chunked, chunk, repeat=400)) == 413
    assert _web_memory(live_stack) - before < 50 * MEBIBYTE


def test_a_length_that_is_too_short_starts_no_second_request(live_stack: LiveStack) -> None:
    answer = _talk(live_stack, "POST /sign-in/ HTTP/1.1\r\nContent-Length: 1", b"x" * (2 * LIMIT))
    assert answer.count(b"HTTP/1.1") == 1
    assert _status(answer) == 403


@pytest.mark.parametrize("encoding", ["gzip", "br", "identity"])
def test_an_encoded_body_is_refused(live_stack: LiveStack, encoding: str) -> None:
    head = f"POST /sign-in/ HTTP/1.1\r\nContent-Encoding: {encoding}\r\nContent-Length: 3"
    assert _status(_talk(live_stack, head, b"abc")) == 415


def test_no_continue_is_promised_for_a_body_that_is_refused(live_stack: LiveStack) -> None:
    head = f"POST /sign-in/ HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: {LIMIT + 1}"
    answer = _talk(live_stack, head)
    assert _status(answer) == 413
    assert b"100 Continue" not in answer


@pytest.fixture
def hasty_port() -> Iterator[int]:
    """The port of a server that waits one second for a request."""
    with _serving(seconds=1) as port:
        yield port


@pytest.fixture
def patient_port() -> Iterator[int]:
    """The port of a server that waits a minute."""
    with _serving(seconds=60) as port:
        yield port


@contextmanager
def _serving(seconds: int) -> Iterator[int]:
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "tests.platform.tiny_server", str(port), str(seconds)])
    try:
        deadline = time.monotonic() + 60
        while not answers("127.0.0.1", port):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield port
    finally:
        process.kill()
        process.wait()


SLOW = {
    "first line": b"GET /",
    "headers": b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
    "body": b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n",
    "chunks": b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
}
WHOLE = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


def _trickle(connection: socket.socket) -> bytes:
    """Send a byte every tenth of a second until there is an answer."""
    deadline = time.monotonic() + 60
    connection.settimeout(0.1)
    while time.monotonic() < deadline:
        connection.sendall(b"0")
        try:
            return connection.recv(4096)
        except TimeoutError:
            continue
    raise AssertionError("It was never answered.")


@pytest.mark.parametrize("start", SLOW.values(), ids=SLOW)
def test_a_slow_request_runs_out_of_time_and_hinders_nobody(hasty_port: int, start: bytes) -> None:
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", hasty_port), timeout=60) as slow:
        slow.sendall(start)
        with socket.create_connection(("127.0.0.1", hasty_port), timeout=60) as quick:
            quick.sendall(WHOLE)
            assert _status(quick.recv(4096)) == 200
        assert _status(_trickle(slow)) == 408
    assert time.monotonic() - began >= 1


@pytest.mark.parametrize("start", SLOW.values(), ids=SLOW)
def test_so_does_a_slow_one_that_follows_another(hasty_port: int, start: bytes) -> None:
    with socket.create_connection(("127.0.0.1", hasty_port), timeout=60) as slow:
        slow.sendall(WHOLE)
        assert _status(slow.recv(4096)) == 200
        slow.sendall(start)
        assert _status(_trickle(slow)) == 408


@pytest.mark.parametrize("first", [b"", WHOLE], ids=["new", "kept"])
def test_a_silent_connection_is_closed_without_a_word(hasty_port: int, first: bytes) -> None:
    with socket.create_connection(("127.0.0.1", hasty_port), timeout=60) as silent:
        silent.sendall(first)
        if first:
            assert _status(silent.recv(4096)) == 200
        assert silent.recv(4096) == b""


def test_connections_that_send_nothing_whole_make_room_for_others(hasty_port: int) -> None:
    most = 20
    with ExitStack() as opened:
        silent = [
            opened.enter_context(socket.create_connection(("127.0.0.1", hasty_port), timeout=60))
            for _ in range(most + 5)
        ]
        with socket.create_connection(("127.0.0.1", hasty_port), timeout=60) as quick:
            quick.sendall(WHOLE)
            assert _status(quick.recv(4096)) == 200
        # The oldest have had to go; they were not older than a second.
        assert silent[0].recv(1) == b""


def test_the_kept_connection_of_somebody_who_is_signed_in_makes_room_last(patient_port: int) -> None:
    request = b"GET / HTTP/1.1\r\nHost: localhost\r\nCookie: known\r\n\r\n"
    with ExitStack() as opened:
        mine, kept = (
            opened.enter_context(socket.create_connection(("127.0.0.1", patient_port), timeout=60))
            for _ in range(2)
        )
        for connection, asks in ((mine, request), (kept, WHOLE)):
            connection.sendall(asks)
            assert _status(connection.recv(4096)) == 200
        for _ in range(25):
            opened.enter_context(socket.create_connection(("127.0.0.1", patient_port), timeout=60))
        assert kept.recv(1) == b""
        mine.sendall(request)
        assert _status(mine.recv(4096)) == 200


LARGE = 100_000


def _large(path: str, *, is_chunked: bool) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n".encode()
    if is_chunked:
        return head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (LARGE, b"x" * LARGE)
    return head + b"Content-Length: %d\r\n\r\n" % LARGE + b"x" * LARGE


@pytest.mark.parametrize("is_chunked", [False, True])
@pytest.mark.parametrize(("path", "status"), [("/large", 200), ("/l%61rge?x", 200), ("/small", 413)])
def test_a_large_body_is_let_in_where_somebody_says_so(
    hasty_port: int, path: str, status: int, is_chunked: bool
) -> None:
    with socket.create_connection(("127.0.0.1", hasty_port), timeout=60) as connection:
        connection.sendall(_large(path, is_chunked=is_chunked))
        answer = connection.recv(4096)
        assert _status(answer) == status
        assert status == 200 or b"65536 bytes" in answer


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        (b"", b"", 200),
        (b"Content-Length: 200000", b"x" * 200_000, 200),
        (b"Content-Length: 200001", b"", 413),
        (b"Content-Length: " + b"9" * 5000, b"", 400),
        (
            b"Transfer-Encoding: chunked",
            b"186a0\r\n" + b"x" * 100_000 + b"\r\n186a1\r\n" + b"x" * 100_001,
            413,
        ),
        (b"Content-Encoding: gzip\r\nContent-Length: 1", b"x", 415),
    ],
)
def test_a_body_over_the_limit_or_encoded_is_refused(
    hasty_port: int, headers: bytes, body: bytes, status: int
) -> None:
    head = b"POST /large HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    request = head + (headers + b"\r\n" if headers else b"") + b"\r\n" + body
    assert status_of(talk(At(hasty_port), request)) == status


def test_a_large_body_is_asked_about_with_the_prefix_that_the_header_sets(hasty_port: int) -> None:
    for prefix, status in ((b"/x", 200), (b"/%78", 200), (b"/y", 413)):
        headers = b" HTTP/1.1\r\nDaphne-Root-Path: " + prefix
        request = _large("/x/large", is_chunked=False).replace(b" HTTP/1.1", headers)
        assert status_of(talk(At(hasty_port), request)) == status


def test_a_large_body_is_asked_about_before_it_is_sent(hasty_port: int) -> None:
    with socket.create_connection(("127.0.0.1", hasty_port), timeout=60) as connection:
        connection.sendall(_large("/small", is_chunked=False)[:200])
        assert _status(connection.recv(4096)) == 413


def test_a_large_body_is_refused_while_too_many_wait_to_be_asked_about(hasty_port: int) -> None:
    answer = talk(At(hasty_port), _large("/full", is_chunked=False))
    assert status_of(answer) == 503
    assert b"Retry-After: 5" in answer


def test_a_large_body_that_cannot_be_asked_about_is_refused(hasty_port: int) -> None:
    assert status_of(talk(At(hasty_port), _large("/broken", is_chunked=False))) == 500


def test_a_connection_that_ends_asks_about_its_body_no_longer(hasty_port: int) -> None:
    asking = b"GET /asking HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", hasty_port), timeout=60) as connection:
        connection.sendall(_large("/queue", is_chunked=False)[:200])
        deadline = time.monotonic() + 60
        while not talk(At(hasty_port), asking).endswith(b"\r\n1"):
            assert time.monotonic() < deadline
        # The limit on the time of a request ends it.
        assert _status(connection.recv(4096)) == 408
    while not talk(At(hasty_port), asking).endswith(b"\r\n0"):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_somebody_who_is_signed_in_may_send_what_a_form_takes(live_stack: LiveStack) -> None:
    somebody = SignedIn(live_stack)
    try:
        params = f"params={'x' * LARGE}&csrfmiddlewaretoken={somebody.token}".encode()
        assert somebody.ask("POST", "/workflows/tick/start/", params, FORM).status == 422
        assert somebody.ask("POST", "/theme/", params, FORM).status == 413
    finally:
        somebody.close()
    cookie = f"Cookie: {somebody.cookie}".replace("reprise-session=", "reprise-session=x").encode()
    assert (
        status_of(talk(live_stack, post(live_stack, "/workflows/tick/start/", params, FORM, cookie))) == 413
    )
    assert status_of(talk(live_stack, post(live_stack, "/workflows/tick/start/", params, FORM))) == 413


def _open_socket(stack: LiveStack, origin: str | None) -> int:
    head = (
        "GET /no-such-socket/ HTTP/1.1\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="
    )
    if origin is not None:
        head += f"\r\nOrigin: {origin}"
    with socket.create_connection(("127.0.0.1", stack.port), timeout=60) as connection:
        connection.sendall(f"{head}\r\nHost: 127.0.0.1:{stack.port}\r\nConnection: Upgrade\r\n\r\n".encode())
        return _status(connection.recv(4096))


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "null",
        "http://evil.example",
        "http://127.0.0.1.evil.example",
        "http://127.0.0.1",
        "http://127.0.0.1:1",
        "https://127.0.0.1:{port}",
        "javascript://127.0.0.1:{port}",
    ],
)
def test_a_socket_from_another_origin_is_refused(live_stack: LiveStack, origin: str | None) -> None:
    text = origin.format(port=live_stack.port) if origin else None
    assert _open_socket(live_stack, text) == 403


def test_no_refusal_was_a_failure(live_stack: LiveStack) -> None:
    assert _open_socket(live_stack, f"http://127.0.0.1:{live_stack.port}") == 403
    assert "Traceback" not in live_stack.output()
