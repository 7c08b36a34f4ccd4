"""Read JSON texts: strictly if they come from outside, without ever raising if they come from the database."""

import json
import math
import re
from dataclasses import dataclass
from typing import NoReturn

from engine.values.errors import InvalidValueError
from engine.values.json_type import JSON
from engine.values.serialization import rules
from engine.values.serialization.parser import Fault, locate
from engine.values.serialization.rules import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_INTEGER,
    MAX_KEY,
    MAX_TOKENS,
    MIN_INTEGER,
)

# What may break a rule although `json.loads` accepts it; most texts have none of it.
_SUSPICIOUS = re.compile(r"\\u0000|\\u[dD][89a-fA-F]|[\ud800-\udfff]|NaN|Infinity")
_LARGE_NUMBER = re.compile(r"[0-9]{19}|[0-9][eE]")
# Possessive, and an unterminated string matches too: each character is read once, whatever the text.
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]|[,:]|[^\s"\[\]{},:]++', re.DOTALL)


class InvalidJSON(InvalidValueError):
    """The text is not JSON that can be stored. `line` and `column` say where.

    Correct the text there. NaN, infinity, NUL, lone surrogates and duplicate keys are refused, too.
    """

    def __init__(
        self, path: str, code: str, message: str, *, line: int, column: int, what: str = "value"
    ) -> None:
        super().__init__(path, code, message, what=what)
        self.line = line
        self.column = column
        place = f"line {line}, column {column}" + ("" if path == "$" else f", {path}")
        self.args = (f"The {what} cannot be read as JSON ({place}): {message}",)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A stored text that the engine cannot have written, so that a page can show it as such."""

    text: str
    reason: str


def read_json(
    data: bytes | str, *, limit: int = MAX_BYTES, what: str = "value", depth: int = MAX_DEPTH
) -> JSON:
    """Return the value of a text from outside. Raises InvalidJSON with the position and the broken rule.

    `depth` is how many lists and objects may hold each other. It is more for a body around values that may be nested
    as deeply as they are everywhere.
    """
    text = _text_of(data, limit, what)
    _check_tokens(text, what)
    if _is_deep(text, depth) or _SUSPICIOUS.search(text):
        return _slowly(text, what, depth)
    try:
        decoder = _checking if _LARGE_NUMBER.search(text) else _strict
        value: JSON = decoder.decode(text)
        return value
    except (ValueError, RecursionError):
        return _slowly(text, what, depth)


def decode(text: str) -> "JSON | Unreadable":
    """Return the value of a stored text. Never raises, because one bad row must not break a page."""
    try:
        return decode_strict(text)
    except InvalidJSON as problem:
        return Unreadable(text, problem.message)


def decode_strict(text: str, *, what: str = "stored value") -> JSON:
    """Return the value of a stored text. Raises InvalidJSON if something else wrote it."""
    try:
        if not _is_deep(text, MAX_DEPTH):
            value: JSON = _stored.decode(text)
            return value
    except (ValueError, RecursionError):
        pass
    return _slowly(text, what, MAX_DEPTH)


def _text_of(data: bytes | str, limit: int, what: str) -> str:
    try:
        raw = data if isinstance(data, bytes) else data.encode()
    except UnicodeEncodeError as problem:
        _refuse(data[: problem.start], problem.start, "lone_surrogate", rules.SURROGATE, what)  # type: ignore[arg-type]
    if len(raw) > limit:
        _refuse("", 0, "too_large", f"It is {len(raw):,} bytes; the limit is {limit:,} bytes.", what)
    if raw.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        _refuse("", 0, "byte_order_mark", "It begins with a byte order mark. Send UTF-8 without one.", what)
    try:
        return data if isinstance(data, str) else raw.decode()
    except UnicodeDecodeError as problem:
        before = raw[: problem.start].decode()
        _refuse(before, len(before), "invalid_utf8", "The bytes are not UTF-8.", what)


def _check_tokens(text: str, what: str) -> None:
    opened = text.count("[") + text.count("{")
    # A text of this length cannot have more tokens, so most texts are never scanned.
    if 3 * opened + 2 * (text.count(",") + text.count(":")) < MAX_TOKENS:
        return
    for number, token in enumerate(_TOKEN.finditer(text), start=1):
        if number > MAX_TOKENS:
            _refuse(text, token.start(), "too_many_tokens", rules.TOKENS, what)


def _is_deep(text: str, most: int) -> bool:
    if text.count("[") + text.count("{") <= most:
        return False
    depth = 0
    for token in _TOKEN.finditer(text):
        first = text[token.start()]
        if first in "[{":
            depth += 1
            if depth > most:
                return True
        elif first in "]}":
            depth -= 1
    return False


def _slowly(text: str, what: str, depth: int) -> JSON:
    """Parse and track the path, to find where a text is wrong, or that it is valid after all."""
    try:
        return locate(text, depth)
    except Fault as fault:
        _refuse(text, fault.position, fault.code, fault.message, what, fault.path)


def _refuse(text: str, position: int, code: str, message: str, what: str, path: str = "$") -> NoReturn:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    raise InvalidJSON(path, code, message, line=line, column=column, what=what)


def _unique(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    value = dict(pairs)
    if len(value) != len(pairs) or (value and max(map(len, value)) > MAX_KEY):
        raise ValueError("duplicate or long key")  # the slow parser finds which, and where
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a valid JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(rules.OVERFLOW)
    return number


def _small(digits: str) -> int:
    if len(digits) > 20 or not MIN_INTEGER <= int(digits) <= MAX_INTEGER:
        raise ValueError(rules.INTEGER)
    return int(digits)


_strict = json.JSONDecoder(object_pairs_hook=_unique)
_checking = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_int=_small)
_stored = json.JSONDecoder(parse_constant=_no_constant)
