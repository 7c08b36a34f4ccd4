"""What a browser knows of a page: its forms, as they would be sent, and the files that it loads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urldefrag

from tests.projects.visitor import Page, Visitor

LOADED = {"link": "href", "script": "src", "img": "src", "use": "href"}


@dataclass
class Form:
    """A form of a page: where it is sent, and its fields with what they hold."""

    address: str
    fields: dict[str, str] = field(default_factory=dict)
    options: dict[str, list[str]] = field(default_factory=dict)

    def choose(self, name: str) -> None:
        """Choose the first of some radio buttons."""
        self.fields[name] = self.options[name][0]

    def send(self, visitor: Visitor, page: Page) -> Page:
        return visitor.post(self.address, page, **self.fields)


def form_with(page: Page, name: str) -> Form:
    """Return the only form of the page with a field of that name."""
    [found] = [form for form in _read(page).forms if name in form.fields or name in form.options]
    return found


def loaded_by(page: Page) -> Iterator[str]:
    """Yield the addresses of the files that the page loads from its own server."""
    return (urldefrag(address).url for address in sorted(_read(page).loaded) if address.startswith("/"))


def _read(page: Page) -> _Reader:
    reader = _Reader(page.path)
    reader.feed(page.text)
    return reader


class _Reader(HTMLParser):
    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
        self.forms: list[Form] = []
        self.loaded: set[str] = set()
        self._area = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if address := given.get(LOADED.get(tag, "")):
            self.loaded.add(address)
        name = given.get("name", "")
        if tag == "form":
            self.forms.append(Form(given.get("action") or self.path))
        elif tag == "textarea":
            self._area = name
            self.forms[-1].fields[name] = ""
        elif tag == "input" and name and self.forms:
            self._add(name, given)

    def handle_data(self, data: str) -> None:
        if self._area:
            self.forms[-1].fields[self._area] += data.removeprefix("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._area = ""

    def _add(self, name: str, given: dict[str, str]) -> None:
        if given.get("type") in ("radio", "checkbox"):
            self.forms[-1].options.setdefault(name, []).append(given.get("value", "on"))
        else:
            self.forms[-1].fields[name] = given.get("value", "")
