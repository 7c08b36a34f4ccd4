"""What can be written at the caret of a search: fields first, then values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.values.shown import GROUPS, SHOWN

MOST = 14  # all fields
# As `parse` splits it; the last quote may be open.
_WORD = re.compile(r'(?:"(?:[^"\\]|\\.)*(?:"|\\?$)|[^\s"])+', re.DOTALL)
_HEAD = re.compile(r"(-?)([A-Za-z_][\w.-]*)(?::(?!/)(?:>=|<=|!=|=|<|>)?|>=|<=|!=|=|<|>)", re.ASCII)
_PLAIN = re.compile(r"[^\s\",*]+")

FIELDS = {
    "workflow": "name of the workflow",
    "status": "open, errored, retrying …",
    "error": "words of its error",
    "error-group": "the fingerprint of an error group",
    "step": "name of a step",
    "tag": "a tag",
    "id": "beginning of the ID",
    "started": "when it was started",
    "finished": "when it ended",
    "duration": "how long it took",
    "by": "who started it",
    "system": "yes: Reprise's own workflows",
}
ROOTS = {"params": "a value of its parameters", "output": "a value of its output"}
_AGES = {
    "<1h": "in the last hour",
    "<24h": "in the last 24 hours",
    "<7d": "in the last 7 days",
    "<30d": "in the last 30 days",
    ">1h": "more than an hour ago",
}
_SPANS = {">1m": "longer than a minute", ">5m": "longer than 5 minutes", ">1h": "longer than an hour"}


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A text to put at the caret. `is_whole` ends its term; else more has to follow, such as a value."""

    text: str
    about: str = ""
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Completion:
    """Suggestions, and the part of the text that they replace."""

    start: int
    end: int
    suggestions: tuple[Suggestion, ...] = ()


class Source(Protocol):
    """What there is to suggest."""

    @property
    def workflows(self) -> Sequence[str]: ...

    def tags(self) -> list[str]: ...
    def people(self) -> list[str]: ...
    def steps(self) -> list[str]: ...
    def errors(self) -> list[str]: ...
    def paths(self) -> list[str]: ...
    def values(self, path: str) -> list[str]: ...


def complete(text: str, at: int, *, names: Sequence[str], seen: Source) -> Completion:
    """Return what can be written at a caret. `names` are the workflows that can be searched for."""
    start, end = _word_at(text, at)
    typed = text[start:at]
    head = _HEAD.match(typed)
    if head is None:
        start += typed.startswith("-")
        return Completion(start, end, _fields(text[start:at], seen))
    start += _begin_of_value(typed, head.end())
    values = _values(head[2], text[start:at], names, seen)
    return Completion(start, end, _fitting(values, text[start:at].lstrip('"')))


def _word_at(text: str, at: int) -> tuple[int, int]:
    for word in _WORD.finditer(text):
        if word.start() <= at <= word.end():
            return word.span()
    return at, at


def _begin_of_value(typed: str, begin: int) -> int:
    """Return where the last value of a list begins: after the last comma that is not in quotes."""
    is_quoted = False
    for at in range(begin, len(typed)):
        if typed[at] == '"' and typed[at - 1] != "\\":
            is_quoted = not is_quoted
        elif typed[at] == "," and not is_quoted:
            begin = at + 1
    return begin


def _fields(typed: str, seen: Source) -> tuple[Suggestion, ...]:
    fields = [Suggestion(f"{name}:", about, is_whole=False) for name, about in FIELDS.items()]
    fields += [Suggestion(f"{root}.", about, is_whole=False) for root, about in ROOTS.items()]
    found = [one for one in fields if one.text.startswith(typed.lower()) and one.text != typed.lower()]
    if len(typed) > 1:
        found += [_path(path, seen) for path in seen.paths() if _names_path(path, typed.lower())]
    return tuple(found[:MOST])


def _names_path(path: str, typed: str) -> bool:
    """Return whether a text is the beginning of a path, or of its last part."""
    path = path.lower()
    return path.startswith(typed) or path.rpartition(".")[2].startswith(typed)


def _path(path: str, seen: Source) -> Suggestion:
    values = seen.values(path)[:3]
    return Suggestion(f"{path}=", f"as in {', '.join(values)}" if values else "", is_whole=False)


def _values(field: str, typed: str, names: Sequence[str], seen: Source) -> Iterable[Suggestion]:
    if field.split(".")[0] in ROOTS:
        return _quoted(seen.values(field))
    listed: dict[str, Callable[[], Sequence[str]]] = {
        "workflow": lambda: names,
        "error": seen.errors,
        "step": seen.steps,
        "tag": seen.tags,
        "by": seen.people,
    }
    if field in listed:
        return _quoted(listed[field]())
    known = {"status": _STATUSES, "started": _AGES, "finished": _AGES, "duration": _SPANS}.get(field, {})
    return [Suggestion(value, about) for value, about in known.items()]


_STATUSES = {**{name: f"{', '.join(of)}" for name, of in GROUPS.items()}, **dict.fromkeys(SHOWN, "")}


def _quoted(values: Iterable[str]) -> list[Suggestion]:
    return [Suggestion(value if _PLAIN.fullmatch(value) else _in_quotes(value)) for value in values]


def _in_quotes(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _fitting(found: Iterable[Suggestion], typed: str) -> tuple[Suggestion, ...]:
    """Return what begins with the typed text, then what contains it. What is typed already needs no suggestion."""
    wanted = typed.lower()
    begins, contains = [], []
    for one in found:
        text = one.text.lower().lstrip('"')
        if text.rstrip('"') == wanted:
            continue
        if text.startswith(wanted):
            begins.append(one)
        elif wanted in text:
            contains.append(one)
    return tuple([*begins, *contains][:MOST])
