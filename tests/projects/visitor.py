"""A browser without a screen: it keeps cookies, follows redirects, and sends forms with their tokens."""

from __future__ import annotations

import html
import re
import urllib.error
import urllib.request
from dataclasses import dataclass
from email.message import Message
from http.cookiejar import CookieJar
from urllib.parse import urlencode, urljoin, urlsplit

from tests.chaos.sockets import Socket

TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
SOCKET = re.compile(r'hx-ws:connect="([^"]+)"')


@dataclass(frozen=True)
class Page:
    """An answer, after all redirects. `path` is the address that gave it, with its query."""

    status: int
    path: str
    text: str
    headers: Message

    @property
    def token(self) -> str:
        found = TOKEN.search(self.text)
        assert found is not None, self.text[:2000]
        return found[1]

    @property
    def socket(self) -> str:
        """Return the address of its socket."""
        found = SOCKET.search(self.text)
        assert found is not None, self.text[:2000]
        return html.unescape(found[1])


class Visitor:
    """One person's browser."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._jar = CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self._jar))

    @property
    def cookie(self) -> str:
        """Return the header that a socket sends."""
        return "; ".join(f"{one.name}={one.value}" for one in self._jar)

    def get(self, path: str, **headers: str) -> Page:
        return self._ask(urllib.request.Request(urljoin(self.url, path), headers=headers))

    def post(self, path: str, page: Page | None = None, **fields: str) -> Page:
        """Send a form of `page`, by default of the page at `path`."""
        token = (page or self.get(path)).token
        data = urlencode(fields | {"csrfmiddlewaretoken": token}).encode()
        address = urljoin(self.url, path)
        return self._ask(urllib.request.Request(address, data, {"Referer": address}))

    def sign_in(self, name: str, password: str, *, path: str = "/ops/") -> Page:
        """Ask for a page, and fill in the form that comes instead."""
        form = self.get(path)
        query = dict(one.split("=", 1) for one in urlsplit(form.path).query.split("&") if one)
        back = urllib.request.unquote(query.get("next", ""))
        return self.post(form.path, form, username=name, password=password, next=back)

    def watch(self, page: Page) -> Socket:
        """Open the socket of a page."""
        return Socket(self, page.socket)  # type: ignore[arg-type]

    def _ask(self, request: urllib.request.Request) -> Page:
        try:
            answer = self._opener.open(request, timeout=60)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            parts = urlsplit(answer.url)
            path = parts.path + (f"?{parts.query}" if parts.query else "")
            return Page(answer.status, path, answer.read().decode(errors="replace"), answer.headers)
