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
from studio.forms.checked import Problem
from studio.forms.controls import Control, id_of
from studio.forms.document import MISSING, Path, dump, parse, pointer
from studio.forms.json_text import read_text
from studio.forms.marking import marked, nearest
from studio.forms.pressing import press, where
from studio.forms.shape import shape_of
from studio.forms.typed_secrets import hidden

FORM, JSON = "form", "json"
CHECK = "check"  # the button that only checks
CHANGED = "changed"  # instead of a button: it was to be sent, but now shows something new
LONGEST = 200_000  # characters; a form sends each twice
TOO_LONG = f"This is too large for the form, which takes {LONGEST:,} characters. Edit it as JSON."
NOT_YET = "Not sent yet: look at what is new in the form, then send it again."
Root = Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class JsonForm:
    """What was posted, or what a page begins with."""

    root: Root
    text: str  # the document
    tab: str = JSON
    op: str = ""  # the button that was pressed; empty: send it
    problems: tuple[Problem, ...] = ()  # of what cannot be read
    again: Mapping[str, str] | None = None  # texts to show as they were typed, by name of input
    picks: Mapping[str, int] | None = None
    secrets: Mapping[str, str] | None = None  # where each secret was on the page before, by pointer
    typed_secrets: frozenset[str] = frozenset()  # the ids of their inputs
    focus: Path | None = None
    said: str = ""

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
        before = build(root, found.value, reading.picks(given))
        verb, _, name = op.partition(":")
        read = reading.read(before, found.value, given, name if verb in ("remove", "leave-out") else None)
        made = where(before, read) if read.problems else press(root, before, read, given, op)
        typed = (path for path, place in made.secrets.items() if given.get(reading.FIELD + place))
        return cls(
            root,
            text if _is_same(made.document, found.value) else _text(made.document),
            FORM,
            op or (CHANGED if made.has_new else ""),
            problems=read.problems,
            again=read.again,
            picks=made.picked,
            secrets={pointer(path): place for path, place in made.secrets.items()},
            typed_secrets=frozenset(map(id_of, typed)),
            focus=made.focus,
            said=NOT_YET if made.has_new and not op else "",
        )

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
        return marked(form, list(problems), self.again or {}, self.secrets, self.focus)

    def placed(self, problems: Iterable[Problem]) -> list[Problem]:
        """Return the problems, each with the nearest input around its path."""
        form = self.controls()
        if form is None:
            return list(problems)
        return [
            one if one.target or one.field != "params" else replace(one, target=nearest(form, one.path).id)
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


def _text(document: Any) -> str:
    return "" if document is MISSING else dump(document)
