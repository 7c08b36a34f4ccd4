"""Requests to the API that no honest program sends: real bytes to a real daphne."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from engine.configuration import setting
from tests.live import LiveStack
from tests.platform.conftest import BODY_SECONDS
from tests.platform.programs import API, JSON, Answer, Program, program, talk_on
from tests.platform.test_request_limits import MEBIBYTE, _talk, _web_memory
from tests.platform.visitor import Log, SignedIn, head, post, status_of, talk

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

LIMIT = setting("MAX_BODY_BYTES")
START = f"{API}/workflows/tick/instances"
WRONG = "rpr_" + "a" * 8 + "_" + "b" * 43


@pytest.fixture(scope="module")
def known(api_stack: LiveStack) -> Program:
    return program(api_stack)


@pytest.fixture(params=["no token", "a wrong token", "a token"])
def sender(request: pytest.FixtureRequest, api_stack: LiveStack, known: Program) -> str:
    """Return the header that a sender brings, with the line break before it."""
    token = {"no token": "", "a wrong token": WRONG, "a token": known.token}[request.param]
    return f"\r\nAuthorization: Bearer {token}" if token else ""


@pytest.fixture(autouse=True)
def _without_failures(api_stack: LiveStack) -> Iterator[None]:
    before = api_stack.output().count("Traceback")
    yield
    assert api_stack.output().count("Traceback") == before


class TestBodies:
    def test_over_the_limit_are_refused_before_they_are_sent(self, api_stack: LiveStack, sender: str) -> None:
        answer = _talk(api_stack, f"POST {START} HTTP/1.1{sender}\r\nContent-Length: {LIMIT + 1}")
        assert status_of(answer) == 413

    def test_of_four_hundred_mebibytes_cost_next_to_no_memory(
        self, api_stack: LiveStack, sender: str
    ) -> None:
        _talk(api_stack, f"GET {API}/me HTTP/1.1{sender}")
        before = _web_memory(api_stack)
        said = f"POST {START} HTTP/1.1{sender}\r\nContent-Length: {400 * MEBIBYTE}"
        chunked = f"POST {START} HTTP/1.1{sender}\r\nTransfer-Encoding: chunked"
        chunk = b"%x\r\n%s\r\n" % (MEBIBYTE, b"x" * MEBIBYTE)
        assert status_of(_talk(api_stack, said, b"x" * MEBIBYTE, repeat=400)) == 413
        assert status_of(_talk(api_stack, chunked, chunk, repeat=400)) == 413
        assert _web_memory(api_stack) - before < 50 * MEBIBYTE

    def test_over_64_kib_need_a_token(self, api_stack: LiveStack, known: Program) -> None:
        body = b'{"reason":"%s"}' % (b"x" * 70_000)
        lengthy = [b"Authorization: Bearer " + one for one in (WRONG.encode(), b"", b"x")]
        for headers in ([], *([one] for one in lengthy)):
            assert status_of(talk(api_stack, post(api_stack, START, body, JSON, *headers))) == 413
        answer = known.ask("POST", START.removeprefix(API), body)
        assert (answer.status, answer.document["errors"][0]["path"]) == (422, "reason")

    def test_with_a_length_that_is_too_short_start_no_second_request(
        self, api_stack: LiveStack, sender: str
    ) -> None:
        head = f"POST {START} HTTP/1.1{sender}\r\nContent-Type: {JSON}\r\nContent-Length: 1"
        answer = _talk(api_stack, head, b"{" + b"x" * (2 * LIMIT))
        assert answer.count(b"HTTP/1.1") == 1
        assert status_of(answer) in (400, 401)

    def test_with_a_length_that_is_too_long_run_out_of_time(self, api_stack: LiveStack, sender: str) -> None:
        request = f"POST {START} HTTP/1.1{sender}\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{{}}"
        began = time.monotonic()
        assert status_of(talk(api_stack, request.encode())) == 408
        assert time.monotonic() - began >= BODY_SECONDS

    def test_that_trickle_run_out_of_time(self, api_stack: LiveStack, sender: str) -> None:
        with socket.create_connection(("127.0.0.1", api_stack.port), timeout=60) as slow:
            slow.sendall(f"POST {START} HTTP/1.1{sender}\r\nHost: x\r\nContent-Length: 1000\r\n\r\n".encode())
            slow.settimeout(1)
            for _ in range(60):
                slow.sendall(b" ")
                try:
                    answer = slow.recv(4096)
                    break
                except TimeoutError:
                    continue
        assert status_of(answer) == 408

    @pytest.mark.parametrize("encoding", ["gzip", "br", "deflate", "identity", "x"])
    def test_that_are_encoded_are_refused(self, api_stack: LiveStack, sender: str, encoding: str) -> None:
        head = f"POST {START} HTTP/1.1{sender}\r\nContent-Encoding: {encoding}\r\nContent-Length: 3"
        assert status_of(_talk(api_stack, head, b"abc")) == 415

    def test_that_no_operation_sees_are_refused_with_problems(
        self, api_stack: LiveStack, sender: str
    ) -> None:
        start = f"POST {START} HTTP/1.1{sender}\r\n"
        for given, status, code in (
            (f"{start}Content-Encoding: gzip\r\nContent-Length: 3", 415, "content_not_accepted"),
            (f"{start}Content-Length: {LIMIT + 1}", 413, "body_too_large"),
            (f"{start}X-Long: {'x' * 70_000}", 431, "headers_too_large"),
        ):
            answer = Answer.of(_talk(api_stack, given, b""))
            assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
            assert (answer.document["status"], answer.document["code"]) == (status, code)

    @pytest.mark.parametrize(
        "kind",
        [
            *(
                "text/plain",
                "application/x-www-form-urlencoded",
                "multipart/form-data; boundary=x",
                "x",
                "text/json",
            ),
            *("application/json; charset=utf-7", "application/json; charset=rot13", "application/xml"),
        ],
    )
    def test_of_another_type_are_refused(self, api_stack: LiveStack, known: Program, kind: str) -> None:
        answer = talk(api_stack, post(api_stack, START, b"{}", kind, known.authorization))
        assert status_of(answer) == 415

    @pytest.mark.parametrize(
        "body", [b"", b"{", b"[]", b"null", b'"x"', b"\xff", b'{"a":1,"a":2}', b"\x00", b"a=1"]
    )
    def test_that_are_no_object_say_where_they_are_wrong(self, known: Program, body: bytes) -> None:
        answer = known.ask("POST", "/workflows/process_order/instances".replace("_", "-"), body)
        assert answer.status in (400, 422)
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.document["code"]


class TestMethods:
    ACTION = f"{START}/nothing/pause"

    @pytest.mark.parametrize(
        "method", ["GET", "HEAD", "PUT", "PATCH", "DELETE", "TRACE", "OPTIONS", "PROPFIND"]
    )
    def test_of_an_action_is_only_post(self, known: Program, method: str) -> None:
        answer = known.ask(method, self.ACTION.removeprefix(API))
        assert (answer.status, answer.headers["allow"]) == (405, "POST")

    @pytest.mark.parametrize(
        "header", ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "_method"]
    )
    def test_are_changed_by_nothing(self, known: Program, header: str) -> None:
        made = known.ask("POST", "/workflows/tick/instances", {}).document["instance"]["id"]
        path = f"/workflows/tick/instances/{made}"
        for method in ("POST", "DELETE"):
            answer = known.ask("GET", f"{path}/pause", None, f"{header}: {method}".encode())
            assert answer.status == 405
            assert known.ask("GET", path, None, f"{header}: {method}".encode()).status == 200
        assert known.ask("GET", f"{path}?_method=DELETE").status == 422


class TestAddresses:
    @pytest.mark.parametrize(
        "path",
        [
            *(
                "/api/v1",
                "/api/v1/",
                "//api/v1/me",
                "/api//v1/me",
                "/api/v1//me",
                "/api/v1/me/",
                "/API/V1/me",
            ),
            *("/api/v1/%6de", "/%61pi/v1/me", "/api/v1/./me", "/api/v1/../v1/me", "/api/v1/%2e%2e/v1/me"),
            *(
                "/api/v1/me%00",
                "/api/v1/me%0a",
                "/api/v1/me;x",
                "/api/v1/me%2f",
                "/api/v1/Me",
                "/x/../api/v1/me",
            ),
            *(
                "/api/v1/workflows/tick",
                "/api/v1/nothing",
                "/api/v1/workflows/%ff",
                "/api/v1/%c0%ae%c0%ae/me",
            ),
        ],
    )
    def test_in_other_spellings_tell_strangers_nothing(
        self, api_stack: LiveStack, known: Program, path: str
    ) -> None:
        for headers in ((), (f"Authorization: Bearer {WRONG}".encode(),)):
            answer = Answer.of(talk(api_stack, head(api_stack, f"GET {path} HTTP/1.1", *headers)))
            assert answer.status in (401, 404)
            if answer.status == 401:
                assert answer.headers["www-authenticate"].startswith("Bearer realm=")
                assert answer.document["code"] == "not_authenticated"
            assert b"tick" not in answer.body

    @pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "HEAD"])
    def test_that_exist_look_to_strangers_like_any_other(self, api_stack: LiveStack, method: str) -> None:
        paths = (
            "me",
            "workflows/tick",
            "workflows/nothing",
            "workflows/tick/instances/x/pause",
            "nothing",
            "x" * 3_000,
        )
        answers = [
            Answer.of(talk(api_stack, head(api_stack, f"{method} {API}/{path} HTTP/1.1"))) for path in paths
        ]
        assert {(one.status, one.body) for one in answers} == {(401, answers[0].body)}

    @pytest.mark.parametrize(
        "name", ["<script>alert(1)</script>", "a%00b", "%ff", "x" * 10_000, "%3Cimg%20src=x%3E"]
    )
    def test_of_nothing_are_not_repeated_in_the_answer(self, known: Program, name: str) -> None:
        for path in (f"/workflows/{name}", f"/workflows/tick/instances/{name}", f"/{name}"):
            answer = known.ask("GET", path)
            assert answer.status == (414 if len(name) > 2_000 else 404)
            assert answer.headers["content-type"] == "application/problem+json"
            assert b"<" not in answer.body
            assert b"xxx" not in answer.body

    def test_do_not_take_a_token(self, api_stack: LiveStack, known: Program) -> None:
        for name in ("token", "access_token", "api_key", "authorization", "Authorization"):
            for value in (known.token, f"Bearer%20{known.token}"):
                answer = talk(api_stack, head(api_stack, f"GET {API}/me?{name}={value} HTTP/1.1"))
                assert status_of(answer) == 401


class TestCredentials:
    def test_of_a_browser_open_nothing(self, api_stack: LiveStack) -> None:
        person = SignedIn(api_stack)
        try:
            for method, path in (
                ("GET", "/me"),
                ("POST", "/workflows/tick/instances"),
                ("GET", "/instances"),
            ):
                body = b"{}" if method == "POST" else None
                assert person.ask(method, API + path, body, JSON).status == 401
                assert person.ask(method, API + path, body, "text/plain").status == 401
        finally:
            person.close()

    def test_in_two_headers_open_nothing(self, api_stack: LiveStack, known: Program) -> None:
        other = f"Authorization: Bearer {WRONG}".encode()
        for pair in (
            (known.authorization, other),
            (other, known.authorization),
            (known.authorization, known.authorization),
            (known.authorization, b"Authorization: "),
            (known.authorization, b"authorization: Basic YTpi"),
        ):
            assert status_of(talk(api_stack, head(api_stack, f"GET {API}/me HTTP/1.1", *pair))) == 401

    @pytest.mark.parametrize(
        "value",
        [
            *(
                "Basic YTpi",
                "Bearer",
                "Bearer ",
                "{token}",
                "Token {token}",
                "Bearer {token}x",
                "Bearer x{token}",
            ),
            *(
                "Bearer {short}",
                "Bearer {token} {token}",
                "Bearer {token},",
                'Bearer "{token}"',
                "Bearer {upper}",
            ),
            *(
                "Bearer\t{token}x",
                "Bearer {token}\xa0",
                "Bearer \xff",
                "Bearer rpr_",
                "Bearer '; DROP TABLE studio_token",
            ),
        ],
    )
    def test_that_are_no_token_open_nothing(self, api_stack: LiveStack, known: Program, value: str) -> None:
        text = value.format(token=known.token, short=known.token[:-1], upper=known.token.upper())
        header = f"Authorization: {text}".encode("latin1")
        answer = Answer.of(talk(api_stack, head(api_stack, f"GET {API}/me HTTP/1.1", header)))
        assert (answer.status, answer.document["code"]) == (401, "not_authenticated")

    def test_may_be_written_as_the_standard_allows(self, api_stack: LiveStack, known: Program) -> None:
        for text in (f"bearer {known.token}", f"BEARER   {known.token}", f"Bearer {known.token}  "):
            header = f"authorization: {text}".encode()
            assert status_of(talk(api_stack, head(api_stack, f"GET {API}/me HTTP/1.1", header))) == 200


class TestLines:
    @pytest.mark.parametrize(
        "lines",
        [
            b"X\x0bY: 1",
            b"X: 1\x0b2",
            b"X: 1\x852",
            b"no colon",
            b"X : 1",
            b"Content-Length: 2\r\nContent-Length: 3",
            b"Content-Length: 2\r\nTransfer-Encoding: chunked",
            b"Content-Length: -1",
            b"Content-Length: +2",
            b"Content-Length: 0x2",
            b"Content-Length: 2, 2",
            b"Transfer-Encoding: gzip, chunked",
            b"Transfer-Encoding: chunked, identity",
            b"Transfer-Encoding: x",
            b"X: " + b"x" * 20_000,
            b"X: 1\r\n" * 600 + b"X: 1",
            b"Authorization: Bearer " + b"x" * 20_000,
            b"Idempotency-Key: " + b"x" * 20_000,
        ],
    )
    def test_that_smuggle_are_refused(self, api_stack: LiveStack, known: Program, lines: bytes) -> None:
        request = b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n%s\r\n\r\n{}" % (
            START.encode(),
            known.authorization,
            lines,
        )
        log = Log(api_stack)
        answer = talk(api_stack, request)
        assert status_of(answer) in (400, 431), answer[:200]
        assert answer.count(b"HTTP/1.1") == 1
        (line,) = log.lines()
        assert len(line) < 1_000

    def test_of_the_first_line_are_refused(self, api_stack: LiveStack, known: Program) -> None:
        for path in (b"/api/v1/\x00", b"/api/v1/\xff", b"/api/v1/me?\xff", b"/api/v1/" + b"x" * 20_000):
            request = b"GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n" % (path, known.authorization)
            assert status_of(talk(api_stack, request)) in (400, 404, 431)

    def test_of_an_old_client_are_answered(self, api_stack: LiveStack, known: Program) -> None:
        for version in (b"1.0", b"1.1"):
            request = b"GET /api/v1/me HTTP/%s\r\nHost: 127.0.0.1\r\n%s\r\n\r\n" % (
                version,
                known.authorization,
            )
            answer = Answer.of(talk(api_stack, request))
            assert (answer.status, answer.document["verbs"]) == (200, ["operate", "view"])

    def test_that_come_at_once_are_answered_in_order(self, api_stack: LiveStack, known: Program) -> None:
        get = b"GET /api/v1/%s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n\r\n"
        kind = b"Content-Type: application/json\r\nContent-Length: 2"
        start = b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n%s\r\n\r\n{}"
        request = (get % (b"me", known.authorization)) + (
            start % (START.encode(), known.authorization, kind)
        ) * 2
        request += (get % (b"nothing", known.authorization)) + (get % (b"me", b"X: 1"))
        answers = talk_on(api_stack, request, 5)
        assert [one.status for one in answers] == [200, 201, 201, 404, 401]
        assert len({one.document["instance"]["id"] for one in answers[1:3]}) == 2


class TestRates:
    def test_of_one_token_leave_the_others_alone(self, api_stack: LiveStack, known: Program) -> None:
        greedy, most = program(api_stack), setting("API_RATE")
        one = b"GET /api/v1/me HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n\r\n" % greedy.authorization
        began = time.monotonic()
        answers = talk_on(api_stack, one * (most + 100), most + 100)
        took = time.monotonic() - began
        statuses = [answer.status for answer in answers]
        assert took < 60, "the minute of the limit is over"
        assert statuses == [200] * most + [429] * 100
        late = answers[-1]
        assert 1 <= int(late.headers["retry-after"]) <= 60
        assert late.headers["ratelimit"].startswith('"default";r=0;t=')
        assert late.document["code"] == "too_many_requests"
        assert known.ask("GET", "/me").status == 200
        assert greedy.ask("GET", "/me").status == 429
