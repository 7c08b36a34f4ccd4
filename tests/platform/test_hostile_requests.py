"""Requests that no browser sends get a 4xx and one line in the log, not a failure."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.live import LiveStack
from tests.platform.visitor import FORM, Log, SignedIn, handshake, head, post, status_of, talk

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

CSRF = "a" * 32
TOKEN = f"Cookie: reprise-csrf={CSRF}".encode()
SURROGATES = b"+2AA-"  # in UTF-7, a lone one


def told(log: Log, status: int, answer: bytes) -> None:
    assert status_of(answer) == status
    (line,) = log.lines()
    assert "Traceback" not in line


@pytest.fixture(scope="module")
def somebody(live_stack: LiveStack) -> Iterator[SignedIn]:
    who = SignedIn(live_stack)
    yield who
    who.close()


COOKIES = [
    rb'reprise-session="\000aaaaaaaaaa"',
    rb'reprise-session="\012aaaaaaaaaa"',
    rb'reprise-session="\377\376aaaaaaaa"',
    b"reprise-session=\xff\xfeaaaaaaaa",
    b"reprise-session=aaaa\x7faaaaaaa",
    rb'reprise-csrf="\000aaaaaaaaaa"',
    rb'x=1; reprise-session="\000aaaaaaaaaa"; y=2',
]


class TestCookies:
    @pytest.mark.parametrize("cookie", COOKIES)
    @pytest.mark.parametrize("path", ["/", "/sign-in/"])
    def test_that_nobody_was_given_is_refused_and_deleted(
        self, live_stack: LiveStack, path: str, cookie: bytes
    ) -> None:
        log = Log(live_stack)
        answer = talk(live_stack, head(live_stack, f"GET {path} HTTP/1.1", b"Cookie: " + cookie))
        told(log, 400, answer)
        name = cookie.split(b"reprise-")[1].split(b"=")[0]
        assert re.search(rb'set-cookie: reprise-%s="";.* max-age=0; path=/' % name, answer.lower())

    @pytest.mark.parametrize("cookie", COOKIES)
    def test_opens_no_socket(self, live_stack: LiveStack, cookie: bytes) -> None:
        log = Log(live_stack)
        told(log, 403, talk(live_stack, handshake(live_stack, b"Cookie: " + cookie)))

    @pytest.mark.parametrize(
        "cookie",
        [
            b"reprise-session=" + b"a" * 10_000,
            b"reprise-session=../../x",
            b"reprise-session=",
            rb'other="\000\377"',
            b"other=\xff\xfe; =; ;;",
        ],
    )
    def test_of_others_or_without_a_session_is_a_stranger(self, live_stack: LiveStack, cookie: bytes) -> None:
        answer = talk(live_stack, head(live_stack, "GET / HTTP/1.1", b"Cookie: " + cookie))
        assert status_of(answer) == 302


class TestCharsets:
    KINDS = (
        "rot13",
        "hex",
        "base64",
        "zlib",
        "bz2",
        "idna",
        "undefined",
        "utf-7",
        "unicode_escape",
        "latin-1",
    )

    @pytest.mark.parametrize("charset", [*KINDS, '"utf-7"', "UTF8\x00", "utf-8; charset=utf-7"])
    @pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", FORM, "text/plain"])
    def test_but_utf_8_are_refused(
        self, live_stack: LiveStack, somebody: SignedIn, kind: str, charset: str
    ) -> None:
        if "\x00" in charset:
            charset = "utf-8\\x00"
        log = Log(live_stack)
        cookie = f"Cookie: {somebody.cookie}".encode()
        request = post(live_stack, "/theme/", b"theme=" + SURROGATES, f"{kind}; charset={charset}", cookie)
        told(log, 415, talk(live_stack, request))

    def test_named_in_an_odd_way_are_refused(self, live_stack: LiveStack) -> None:
        log = Log(live_stack)
        kind = "multipart/form-data; boundary=x; charset*=rot13''%41"
        told(log, 415, talk(live_stack, post(live_stack, "/sign-in/", b"--x--", kind, TOKEN)))

    def test_as_browsers_send_them_are_taken(self, live_stack: LiveStack, somebody: SignedIn) -> None:
        body = f"theme=dark&next=/&csrfmiddlewaretoken={somebody.token}".encode()
        assert somebody.ask("POST", "/theme/", body, f"{FORM}; charset=UTF-8").status == 302
        assert somebody.cookies["studio-theme"] == "dark"


MALFORMED = [
    b"",
    b"--x--\r\n",
    b"--x\r\n",
    b"--x\r\nContent-Disposition: form-data; name*=x\r\n\r\n1\r\n--x--\r\n",
    b"--x\r\nContent-Disposition: form-data; name*=rot13''%41\r\n\r\n1\r\n--x--\r\n",
    b"--x\r\nContent-Disposition: form-data; name*=utf-7''%2B2AA-\r\n\r\n1\r\n--x--\r\n",
    b"--x\r\nContent-Disposition: form-data; name=\xff\xfe\r\n\r\n1\r\n--x--\r\n",
    b"--x\r\nContent-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: base64\r\n\r\n!!!\r\n--x--\r\n",
    b"--x\r\nContent-Disposition: form-data; name=f; filename=f\r\n\r\n1\r\n--x--\r\n",
    b"--x\r\nContent-Disposition: form-data; name=a\r\nContent-Type: x; charset*=rot13''%41\r\n\r\n1\r\n--x--\r\n",
    b"nothing of the kind",
]


class TestForms:
    @pytest.mark.parametrize("body", MALFORMED)
    def test_of_strangers_in_many_parts_are_not_read(self, live_stack: LiveStack, body: bytes) -> None:
        log = Log(live_stack)
        request = post(live_stack, "/sign-in/", body, "multipart/form-data; boundary=x", TOKEN)
        told(log, 415, talk(live_stack, request))

    @pytest.mark.parametrize(
        ("boundary", "body"),
        [
            *(("; boundary=x", body) for body in MALFORMED),
            ("; boundary=" + "x" * 300, b"--x--"),
            ("; boundary=", b"--x--"),
            ("", b"--x--"),
        ],
    )
    def test_that_cannot_be_read_are_answered(
        self, live_stack: LiveStack, somebody: SignedIn, body: bytes, boundary: str
    ) -> None:
        log = Log(live_stack)
        cookie = f"Cookie: {somebody.cookie}".encode()
        request = post(live_stack, "/theme/", body, f"multipart/form-data{boundary}", cookie)
        answer = talk(live_stack, request)
        assert 400 <= status_of(answer) < 500
        (line,) = log.lines()
        assert "Traceback" not in line

    @pytest.mark.parametrize("body", [b"a=&" * 1_001, b"&" * 60_000])
    def test_of_too_many_fields_are_refused(self, live_stack: LiveStack, body: bytes) -> None:
        log = Log(live_stack)
        told(log, 413, talk(live_stack, post(live_stack, "/sign-in/", body, FORM, TOKEN)))


class TestHosts:
    @pytest.mark.parametrize(
        "host", ["evil.example", "127.0.0.1.evil.example", "a b", "[", "x" * 300, "127.0.0.1:x"]
    )
    def test_that_are_not_ours_are_refused(self, live_stack: LiveStack, host: str) -> None:
        log = Log(live_stack)
        told(log, 400, talk(live_stack, head(live_stack, "GET /sign-in/ HTTP/1.1", host=host)))
        log = Log(live_stack)
        told(log, 400 if host.endswith(":x") else 403, talk(live_stack, handshake(live_stack, host=host)))


class TestHandshakes:
    @pytest.mark.parametrize(
        ("origin", "status"),
        [("null", 403), ("http://evil.example", 403), ("http://[::1", 400), ("\xff", 400)],
    )
    def test_of_other_pages_are_refused(self, live_stack: LiveStack, origin: str, status: int) -> None:
        log = Log(live_stack)
        told(log, status, talk(live_stack, handshake(live_stack, origin=origin)))


class TestLines:
    @pytest.mark.parametrize(
        ("request_line", "status"),
        [
            (b"GET / HTTP/1.1\r\nX\x0bY: 1\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nX: 1\x0b2\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
            (b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            (b"GET /?\xff HTTP/1.1\r\nHost: x\r\n\r\n", 400),
            (b"nonsense\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
            (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
            (b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 400),
            (b"GET /" + b"x" * 20_000, 431),
            (b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000, 431),
            (b"GET / HTTP/1.1\r\n" + b"X: 1\r\n" * 600 + b"\r\n", 400),
        ],
    )
    def test_that_are_none_are_answered(
        self, live_stack: LiveStack, request_line: bytes, status: int
    ) -> None:
        log = Log(live_stack)
        told(log, status, talk(live_stack, request_line))
