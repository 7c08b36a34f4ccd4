"""What a browser without JavaScript sends of a form."""

from __future__ import annotations

from html.parser import HTMLParser


def as_sent(page: str, form: str = "start-form") -> dict[str, str]:
    """Return the fields of a form as they are sent if nobody changes them. A button is not pressed."""
    reader = _Reader(form)
    reader.feed(page)
    return reader.sent


class _Reader(HTMLParser):
    def __init__(self, form: str) -> None:
        super().__init__()
        self.sent: dict[str, str] = {}
        self._form = form
        self._is_in = False
        self._area: str | None = None
        self._select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._is_in = given.get("id") == self._form
        if not self._is_in or "disabled" in given:
            return
        name = given.get("name", "")
        if tag == "textarea":
            self._area, self.sent[name] = name, ""
        elif tag == "select":
            self._select = name
        elif tag == "option" and ("selected" in given or self._select not in self.sent):
            self.sent[self._select] = given.get("value", "")
        elif (
            tag == "input" and name and (given.get("type") not in ("radio", "checkbox") or "checked" in given)
        ):
            self.sent[name] = given.get("value", "on" if given.get("type") == "checkbox" else "")

    def handle_data(self, data: str) -> None:
        if self._area is not None:
            self.sent[self._area] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._area is not None:
            # As browsers do: the first line break is not part of the text, and the others are sent as two characters.
            text = self.sent[self._area].removeprefix("\n")
            self.sent[self._area], self._area = text.replace("\n", "\r\n"), None
        elif tag == "form":
            self._is_in = False
