"""A browser without a screen: cookies, forms, and every answer noted in the ledger."""

from __future__ import annotations

import re
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage
from http.cookiejar import CookieJar
from typing import IO, Any
from urllib.parse import urlencode

from tests.process import ledger

TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
PATIENCE = 20.0
NO_ANSWER = 0
SIGNING_IN = threading.Lock()


@dataclass(frozen=True)
class Page:
    """`status` is 0 where nothing answered."""

    status: int
    text: str = ""
    location: str = ""
    retry_after: str = ""


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an answer: it tells that a form was accepted."""

    def redirect_request(
        self, req: Any, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


class Browser:
    """One person's browser at one machine's Studio."""

    def __init__(self, machine: str, url: str, account: tuple[str, str]) -> None:
        self.machine, self.url, self.account = machine, url, account
        self.token = ""
        self._cookies = CookieJar()
        self._opener = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor(self._cookies), NoRedirect
        )

    @property
    def cookie(self) -> str:
        """Return the header that a socket sends."""
        return "; ".join(f"{one.name}={one.value}" for one in self._cookies)

    @property
    def is_signed_in(self) -> bool:
        return any(one.name.endswith("session") for one in self._cookies)

    def get(self, path: str) -> Page:
        """Ask for a page, signing in first where that is what it takes."""
        page = self._ask("GET", path, None)
        if page.status == 302 and page.location.startswith("/sign-in/"):
            self.sign_in()
            page = self._ask("GET", path, None)
        return page

    def post(self, path: str, **fields: str) -> Page:
        """Send a form. Without a token of this session it fetches one first."""
        if not self.token and not self._fetch_token(path):
            return Page(NO_ANSWER)
        page = self._ask("POST", path, fields | {"csrfmiddlewaretoken": self.token})
        if page.status == 403 or page.location.startswith("/sign-in/"):
            self.token = ""  # of an earlier session
        return page

    def sign_in(self) -> None:
        """Sign in; one at a time, since a password takes the server a second."""
        with SIGNING_IN:
            token = TOKEN.search(self._ask("GET", "/sign-in/", None).text)
            if token:
                name, password = self.account
                fields = {"username": name, "password": password, "csrfmiddlewaretoken": token[1]}
                self._ask("POST", "/sign-in/", fields)

    def _fetch_token(self, path: str) -> bool:
        # A page with a form: that of the start, or of the instance whose action this is.
        place = path if path.endswith("/start/") else path.rsplit("/", 2)[0] + "/"
        token = TOKEN.search(self.get(place).text)
        self.token = token[1] if token else ""
        return bool(token)

    def _ask(self, method: str, path: str, fields: dict[str, str] | None) -> Page:
        began = time.monotonic()
        data = None if fields is None else urlencode(fields).encode()
        request = urllib.request.Request(self.url + path, data, method=method)
        try:
            page = self._read(request)
        except (OSError, HTTPException):
            page = Page(NO_ANSWER)
        took = f"{time.monotonic() - began:.4f} {page.retry_after}".strip()
        ledger.write(
            "http", instance=self.machine, step=f"{method} {path}"[:120], attempt=page.status, key=took
        )
        return page

    def _read(self, request: urllib.request.Request) -> Page:
        try:
            with self._opener.open(request, timeout=PATIENCE) as answer:
                return Page(answer.status, answer.read().decode(errors="replace"))
        except urllib.error.HTTPError as error:
            with error:
                location = error.headers.get("Location", "")
                retry_after = error.headers.get("Retry-After", "")
                return Page(error.code, error.read().decode(errors="replace"), location, retry_after)
