"""A form and a text of JSON that edit one document, for params wherever they are typed.

The document is the truth: it is posted as `params`, as text. With `tab=form`, the inputs of the form are read over it.
Works without JavaScript: a button posts the form, and the answer is the form after the change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from studio.forms import reading
from studio.forms.building import build
from studio.forms.changes import UnknownChangeError, change
from studio.forms.checked import Problem
from studio.forms.controls import Control, within
from studio.forms.document import MISSING, Path, dump, parse
from studio.forms.json_text import read_text
from studio.forms.shape import shape_of
from studio.forms.typed_secrets import hidden

FORM, JSON = "form", "json"
CHECK = "check"  # the button that only checks
LONGEST = 200_000  # characters; a form sends each twice
TOO_LONG = f"This is too large for the form, which takes {LONGEST:,} characters. Edit it as JSON."
Root = Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class JsonForm:
    """What was posted, or what a page begins with."""

    root: Root
    text: str  # the document
    tab: str = JSON
    op: str = ""  # the button that was pressed; empty: send it
    problems: tuple[Problem, ...] = ()  # of what cannot be read
    raw: Mapping[str, str] | None = None  # texts of JSON as typed, by pointer, if one cannot be read
    picks: Mapping[str, int] | None = None
    focus: Path | None = None

    @classmethod
    def fresh(cls, root: Root, text: str, tab: str = FORM) -> JsonForm:
        """Return what a page begins with: the form, if there is one for this text."""
        is_short = len(text) <= LONGEST
        may_be_form = tab != JSON and has_form(root) and is_short and document_of(text) is not None
        return cls(root, text, FORM if may_be_form else JSON)

    @classmethod
    def posted(cls, root: Root, given: Mapping[str, str]) -> JsonForm:
        """Return the form after what was typed and pressed."""
        op = given.get("op", "")[:2_000]
        text = given.get("params", "").replace("\r\n", "\n")
        if given.get("tab") != FORM or not has_form(root):
            return cls(root, text, JSON, op)._turned()
        return cls._read(root, text, given, op)._turned()

    @classmethod
    def _read(cls, root: Root, text: str, given: Mapping[str, str], op: str) -> JsonForm:
        found = document_of(text)
        if root is None or found is None:
            return cls(root, text, JSON, op)
        picks = reading.picks(given)
        before = build(root, found.value, picks)
        document, problems = reading.read(before, found.value, given)
        raw = reading.raw_texts(before, given) if problems else {}
        union = reading.repicked(before, given)
        if union is not None:
            op = f"pick:{union.name}"
        focus: Path | None = None
        verb, _, name = op.partition(":")
        if verb not in ("", CHECK, "tab") and not problems:
            try:
                chosen = given.get((reading.PICK if verb == "pick" else reading.NEW) + name, "")
                document, focus = change(root, before, document, verb, name, chosen)
            except UnknownChangeError:
                focus = None
            picks = _picks_after(picks, verb, name, given)
        made = text if _is_same(document, found.value) else dump(document)
        return cls(root, made, FORM, op, tuple(problems), raw, picks, focus)

    def _turned(self) -> JsonForm:
        """Change the tab, unless that would lose what cannot be read."""
        if not self.op.startswith("tab:") or self.problems:
            return self
        wanted = self.op.removeprefix("tab:")
        if wanted == JSON:
            return replace(self, tab=JSON)
        if not has_form(self.root) or document_of(self.text) is None:
            return self
        if len(self.text) > LONGEST:
            return replace(self, problems=(Problem("params", TOO_LONG),))
        return replace(self, tab=FORM)

    @property
    def is_sent(self) -> bool:
        """Whether this is to be done, and not only changed or checked."""
        return not self.op

    @property
    def has_form(self) -> bool:
        return has_form(self.root)

    @property
    def is_form(self) -> bool:
        return self.tab == FORM

    def without_secrets(self) -> JsonForm:
        """Return it without secrets that were typed: none is ever sent back to a page."""
        return replace(self, text=hidden(self.text, self.root))

    def controls(self, problems: Iterable[Problem] = ()) -> Control | None:
        """Return the controls to show, each with its problems."""
        found = document_of(self.text)
        if not self.is_form or self.root is None or found is None:
            return None
        form = build(self.root, found.value, self.picks)
        return _marked(form, list(problems), self.raw or {}, self.focus)

    def placed(self, problems: Iterable[Problem]) -> list[Problem]:
        """Return the problems, each with the nearest input around its path."""
        form = self.controls()
        if form is None:
            return list(problems)
        return [
            one if one.target or one.field != "params" else replace(one, target=_nearest(form, one.path).id)
            for one in problems
        ]


@dataclass(frozen=True, slots=True)
class Document:
    value: Any


def document_of(text: str) -> Document | None:
    """Return the document of a text, or None if it is not JSON that may be stored. An empty text has no value."""
    if not text.strip():
        return Document(MISSING)
    return Document(parse(text)) if read_text(text, "params").is_good else None


def has_form(root: Root) -> bool:
    """Return whether a document of this schema has more of a form than one text of JSON."""
    return root is not None and shape_of(root, root).kind != "json"


def _is_same(one: Any, other: Any) -> bool:
    return one is other or (one is not MISSING and other is not MISSING and dump(one) == dump(other))


def _picks_after(picks: dict[str, int], verb: str, name: str, given: Mapping[str, str]) -> dict[str, int]:
    """Return the alternatives that still count. Moving items moves what was picked in them, so it is found anew."""
    around = name if verb == "pick" else name.rpartition("/")[0]
    left = {at: pick for at, pick in picks.items() if not f"{at}/".startswith(f"{around}/")}
    chosen = given.get(reading.PICK + name, "")
    return {**left, name: int(chosen)} if verb == "pick" and chosen.isdecimal() else left


def _nearest(form: Control, path: str) -> Control:
    """Return the control at a path, or the nearest around it."""
    parts, here = [part for part in path.split("/") if part], form
    for part in parts:
        inner = here.children[0] if here.kind == "union" else here
        found = next((one for one in inner.children if str(one.path[-1]) == part), None)
        if found is None and here.kind != "union":
            break
        # Paths of pydantic name the alternative, too.
        here = found or here
    return here


def _marked(form: Control, problems: list[Problem], raw: Mapping[str, str], focus: Path | None) -> Control:
    said: dict[str, list[str]] = {}
    for one in problems:
        if one.field == "params":
            near = _nearest(form, one.path)
            inner = one.path.removeprefix(near.where).strip("/")
            said.setdefault(near.id, []).append(f"{inner}: {one.message}" if inner else one.message)
    aim = _focus(form, focus)

    def mark(control: Control, *, is_inner: bool = False) -> Control:
        text = raw.get(control.name) if control.kind == "json" else None
        return replace(
            control,
            text=control.text if text is None else text,
            problems=() if is_inner and control.kind != "union" else tuple(said.get(control.id, ())),
            has_focus=control is aim,
            children=tuple(mark(child, is_inner=control.kind == "union") for child in control.children),
        )

    return mark(form)


def _focus(form: Control, path: Path | None) -> Control | None:
    """Return what has the focus after a change: the first input at its path, or the nearest control around it."""
    if path is None:
        return None
    for length in range(len(path), -1, -1):
        found = [one for one in within(form) if one.path == path[:length]]
        if found:
            inner = [
                one for one in within(found[-1]) if not one.is_compound and one.kind not in ("add", "fixed")
            ]
            return inner[0] if inner and length == len(path) else found[0]
    return None
