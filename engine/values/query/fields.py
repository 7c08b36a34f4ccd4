"""The fields of a search: what may stand before and after the colon of a term."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable

from engine.values.query import literals, ranges
from engine.values.query.problems import NotATermError as NotATermError
from engine.values.query.terms import (
    AtPath,
    Condition,
    Errors,
    FailedAlike,
    Free,
    Ids,
    Literal,
    Names,
    Operator,
    Statuses,
    System,
)
from engine.values.shown import GROUPS, SHOWN

# A key, and what compares: `status:`, `params.total>=`, `output.total:>`.
_HEAD = re.compile(r"([A-Za-z_][\w.-]*)(?::(?!/)(>=|<=|!=|=|<|>)?|(>=|<=|!=|=|<|>))", re.ASCII)
_FINGERPRINT = re.compile("[0-9a-f]{16}")
_PART = re.compile(r"[^.\s\"]{1,100}")
LONGEST_PATH = 200
DEEPEST = 10
ROOTS = ("params", "output")
_SYNONYMS = {"finished": "closed", "ended": "closed", "pausing": "running", "waiting_for_pause": "running"}


def condition_of(text: str) -> Condition | None:
    """Read a term with a field; None if the text has none. Raises NotATermError."""
    head = _HEAD.match(text)
    if head is None:
        return None
    key, rest = head[1], text[head.end() :]
    operator = Operator(head[2] or head[3] or "=")
    if key.split(".", 1)[0] in ROOTS:
        return _at_path(key, operator, rest)
    read = _READERS.get(key.lower())
    if read is None:
        raise NotATermError(_unknown(key, text))
    if not rest:
        raise NotATermError(f"A value is missing. Write it like {EXAMPLES[key.lower()]}.")
    return read(key.lower(), operator, rest)


def free_text(text: str) -> Free:
    """Read a term without a field."""
    found = literals.one_literal(text, '"two words"').text if text.startswith('"') else text.rstrip("*")
    if not found.strip():
        raise NotATermError("Write a text to search for: the beginning of an ID, or words of an error.")
    if len(found) > literals.LONGEST_VALUE:
        raise NotATermError(f"A text to search for may have up to {literals.LONGEST_VALUE} characters.")
    return Free(found)


def _at_path(key: str, operator: Operator, rest: str) -> AtPath:
    path = tuple(key.split("."))
    if len(path) < 2 or not all(_PART.fullmatch(part) for part in path):
        raise NotATermError(f"A path is missing. Write it like {path[0]}.customer.id=4711.")
    if len(path) > DEEPEST or len(key) > LONGEST_PATH:
        raise NotATermError(f"A path may have up to {DEEPEST} parts and {LONGEST_PATH} characters.")
    if rest == "*" and operator is Operator.IS:
        return AtPath(path, Operator.EXISTS, ())
    example = f"{key}=value"
    if operator in (Operator.IS, Operator.IS_NOT):
        found = literals.literals(rest, example)
    else:
        found = (literals.one_literal(rest, f"{key}>100"),)
        if found[0].is_prefix:
            raise NotATermError(f"A * cannot be compared. Write it like {key}>100.")
    return AtPath(path, operator, found)


def _names(key: str, operator: Operator, rest: str) -> Names:
    _only_is(key, operator)
    return Names(key, literals.patterns(rest, EXAMPLES[key]))


def _statuses(key: str, operator: Operator, rest: str) -> Statuses:
    _only_is(key, operator)
    found = list[str]()
    for literal in literals.literals(rest, EXAMPLES[key]):
        found += _shown(literal)
    return Statuses(tuple(name for name in SHOWN if name in found))


def _shown(literal: Literal) -> tuple[str, ...]:
    name = literal.text.lower()
    name = _SYNONYMS.get(name, name)
    if name in GROUPS:
        return GROUPS[name]
    if name in SHOWN and not literal.is_prefix:
        return (name,)
    near = difflib.get_close_matches(name, [*SHOWN, *GROUPS], n=1)
    hint = f' Did you mean "{near[0]}"?' if near else ""
    known = ", ".join([*SHOWN, *GROUPS])
    raise NotATermError(f'There is no status "{literal.text}".{hint} There are {known}.')


def _ids(key: str, operator: Operator, rest: str) -> Ids:
    _only_is(key, operator)
    return Ids(literals.texts(rest, EXAMPLES[key]))


def _errors(key: str, operator: Operator, rest: str) -> Errors:
    _only_is(key, operator)
    return Errors(literals.texts(rest, EXAMPLES[key]))


def _failed_alike(key: str, operator: Operator, rest: str) -> FailedAlike:
    _only_is(key, operator)
    found = tuple(text.lower() for text in literals.texts(rest, EXAMPLES[key]))
    wrong = [text for text in found if not _FINGERPRINT.fullmatch(text)]
    if wrong:
        rule = f'"{wrong[0]}" is not the fingerprint of a group of errors: it has 16 digits from 0 to f.'
        raise NotATermError(f"{rule} Write it like {EXAMPLES[key]}.")
    return FailedAlike(found)


def _system(key: str, operator: Operator, rest: str) -> System:
    _only_is(key, operator)
    said = rest.strip('"').lower()
    if said not in ("yes", "no"):
        raise NotATermError(f"It is yes or no. Write it like {EXAMPLES[key]}.")
    return System(said == "yes")


def _only_is(key: str, operator: Operator) -> None:
    if operator is Operator.IS:
        return
    hint = f" Write -{EXAMPLES[key]} to exclude." if operator is Operator.IS_NOT else ""
    raise NotATermError(f'"{key}" cannot be compared with {operator}.{hint} Write it like {EXAMPLES[key]}.')


def _moments(key: str, operator: Operator, rest: str) -> Condition:
    return ranges.moments(key, operator, rest.strip('"'))


def _took(key: str, operator: Operator, rest: str) -> Condition:
    return ranges.took(operator, rest.strip('"'))


def _unknown(key: str, text: str) -> str:
    if "." in key:
        return f'There is no field "{key}". Write params.{key} or output.{key} for a value of an instance.'
    near = difflib.get_close_matches(key.lower(), [*EXAMPLES, *ROOTS], n=1)
    hint = f' Did you mean "{near[0]}"?' if near else ""
    known = ", ".join(EXAMPLES)
    return (
        f'There is no field "{key}".{hint} There are {known}, params.PATH and output.PATH. '
        f'To search for the text itself, put it in quotes: "{text.replace(chr(34), "")}".'
    )


EXAMPLES = {
    "workflow": "workflow:orders",
    "status": "status:errored",
    "error": "error:Timeout",
    "error-group": "error-group:9f3c1a5b7d2e4f60",
    "step": "step:charge_card",
    "tag": "tag:eu",
    "id": "id:order-47",
    "started": "started:<2h",
    "finished": "finished:<2h",
    "duration": "duration:>5m",
    "by": "by:ana",
    "system": "system:yes",
}
_READERS: dict[str, Callable[[str, Operator, str], Condition]] = {
    "workflow": _names,
    "status": _statuses,
    "error": _errors,
    "error-group": _failed_alike,
    "step": _names,
    "tag": _names,
    "id": _ids,
    "started": _moments,
    "finished": _moments,
    "duration": _took,
    "by": _names,
    "system": _system,
}
