"""A JSON parser that tracks its position. It is slower than Python's, and runs only if that one is in doubt.

`locate` checks the rules for values, `spans_of` maps a text, and `read_beginning` reads a truncated text.
"""

import math
import re
from json import JSONDecodeError
from json.decoder import scanstring  # type: ignore[attr-defined]  # public in CPython, unknown to typeshed

from engine.values.json_type import JSON
from engine.values.serialization import rules
from engine.values.serialization.rules import MAX_DEPTH, MAX_INTEGER, MAX_KEY, MIN_INTEGER, show_path

_BLANKS = re.compile(r"[ \t\n\r]*+")
_NUMBER = re.compile(r"(-?(?:0|[1-9][0-9]*+))(\.[0-9]++)?([eE][-+]?[0-9]++)?")
_WORDS: dict[str, JSON] = {"true": True, "false": False, "null": None}
_CONSTANTS = ("NaN", "Infinity", "-Infinity")
# What may be at the end of a truncated text: a string without its closing quote; a number, a word or nothing.
_CUT_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+\\?\Z', re.DOTALL)
_CUT_ATOM = re.compile(r'[^\s,:"\[\]{}]*+\Z')
_HALF_ESCAPE = re.compile(r"(\\u[dD][89abAB][0-9a-fA-F]{2})?\\*$")
_LONGEST_ESCAPE = 12  # characters of a surrogate pair

Spans = dict[tuple[str | int, ...], tuple[int, int]]


class Fault(Exception):
    """A broken rule and its position in the text."""

    def __init__(self, position: int, path: str, code: str, message: str) -> None:
        super().__init__(message)
        self.position = position
        self.path = path
        self.code = code
        self.message = message


def locate(text: str, depth: int = MAX_DEPTH) -> JSON:
    """Return the value of a text, or raise a Fault with the path to the error."""
    parser = _Parser(text, depth)
    if not text.strip(" \t\n\r"):
        raise parser.fault(0, "not_json", "The text is empty.")
    value, end = parser.value(_after_blanks(text, 0))
    end = _after_blanks(text, end)
    if end != len(text):
        raise parser.fault(end, "not_json", "There is extra data after the end of the value.")
    return value


def spans_of(text: str) -> Spans:
    """Return where each value of a valid JSON text starts and ends, by its path."""
    parser = _Mapper(text)
    parser.value(_after_blanks(text, 0))
    return parser.spans


def read_beginning(text: str) -> tuple[JSON, int] | None:
    """Return the object or list of a truncated text, and how many containers are still open.

    A truncated string keeps its beginning and gets an ellipsis; a truncated number or key is dropped. None if there is
    no container, or the text is not the beginning of JSON.
    """
    parser = _Beginning(text)
    try:
        value, _ = parser.value(_after_blanks(text, 0))
    except Fault as fault:
        if fault.position < len(text) or not parser.open:
            return None
        return parser.join(), len(parser.open)
    except ValueError:  # more digits than Python converts
        return None
    return (value, 0) if isinstance(value, dict | list) else None


class _Parser:
    def __init__(self, text: str, depth: int = MAX_DEPTH) -> None:
        self.text = text
        self.depth = depth
        self.path: list[str | int] = []
        self.open: list[list[JSON] | dict[str, JSON]] = []  # the containers around the current value

    def fault(self, position: int, code: str, message: str) -> Fault:
        return Fault(position, show_path(self.path), code, message)

    def reject(self, position: int, code: str, message: str) -> None:
        """Raise a Fault for valid JSON that breaks one of our rules."""
        raise self.fault(position, code, message)

    def value(self, at: int) -> tuple[JSON, int]:
        first = self.text[at : at + 1]
        if first == '"':
            return self.string(at)
        if first in ("[", "{") and first:
            if len(self.path) >= self.depth:
                raise self.fault(at, "too_deep", rules.DEEP)
            items: list[JSON] | dict[str, JSON] = [] if first == "[" else {}
            self.open.append(items)
            end = self.array(items, at) if isinstance(items, list) else self.object(items, at)
            self.open.pop()
            return items, end
        for word, value in _WORDS.items():
            if self.text.startswith(word, at):
                return value, at + len(word)
        return self.number(at)

    def array(self, items: list[JSON], at: int) -> int:
        at = _after_blanks(self.text, at + 1)
        if self.text.startswith("]", at):
            return at + 1
        while True:
            self.path.append(len(items))
            item, at = self.value(at)
            self.path.pop()
            items.append(item)
            at = _after_blanks(self.text, at)
            if self.text.startswith("]", at):
                return at + 1
            at = self.after(",", at, "Expected a comma or the closing bracket of the list.")

    def object(self, items: dict[str, JSON], at: int) -> int:
        at = _after_blanks(self.text, at + 1)
        if self.text.startswith("}", at):
            return at + 1
        while True:
            key, at = self.key(at, items)
            self.path.append(key)
            at = self.after(":", _after_blanks(self.text, at), "Expected a colon after the key.")
            items[key], at = self.value(at)
            self.path.pop()
            at = _after_blanks(self.text, at)
            if self.text.startswith("}", at):
                return at + 1
            at = self.after(",", at, "Expected a comma or the closing brace of the object.")

    def key(self, at: int, items: dict[str, JSON]) -> tuple[str, int]:
        if not self.text.startswith('"', at):
            raise self.fault(at, "not_json", "Expected a key in double quotes.")
        key, end = self.string(at)
        if len(key) > MAX_KEY:
            self.reject_key(key, at, "key_too_long", rules.LONG_KEY)
        if key in items:
            self.reject_key(key, at, "duplicate_key", "Duplicate key in the same object.")
        return key, end

    def reject_key(self, key: str, at: int, code: str, message: str) -> None:
        self.path.append(key)
        self.reject(at, code, message)
        self.path.pop()

    def string(self, at: int) -> tuple[str, int]:
        try:
            text, end = scanstring(self.text, at + 1, True)
        except JSONDecodeError as problem:
            raise self.fault(
                problem.pos, "not_json", f"{problem.msg.removesuffix(' at').removesuffix(' starting')}."
            ) from None
        broken = rules.text_fault(text)
        if broken:
            self.reject(at, *broken)
        return text, end

    def number(self, at: int) -> tuple[JSON, int]:
        match = _NUMBER.match(self.text, at)
        if match is None:
            if self.text.startswith(_CONSTANTS, at):
                raise self.fault(at, "not_finite", rules.NOT_FINITE)
            raise self.fault(at, "not_json", "Expected a value.")
        whole, fraction, exponent = match.groups()
        if fraction or exponent:
            number = float(match.group())
            if not math.isfinite(number):
                self.reject(at, "not_finite", rules.OVERFLOW)
            return number, match.end()
        # The length first: Python refuses to convert more than 4,300 digits.
        if len(whole) > 20 or not MIN_INTEGER <= int(whole) <= MAX_INTEGER:
            self.reject(at, "integer_too_large", rules.INTEGER)
        return int(whole), match.end()

    def after(self, sign: str, at: int, message: str) -> int:
        if not self.text.startswith(sign, at):
            raise self.fault(at, "not_json", message)
        return _after_blanks(self.text, at + 1)


class _Mapper(_Parser):
    """Records the position of each value. Does not check the rules: the text has been read before."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.spans: Spans = {}

    def reject(self, position: int, code: str, message: str) -> None:
        pass

    def value(self, at: int) -> tuple[JSON, int]:
        value, end = super().value(at)
        self.spans[tuple(self.path)] = at, end
        return value, end


class _Beginning(_Parser):
    """Reads a stored text up to where it was truncated. An incomplete value raises a Fault at its end."""

    def reject(self, position: int, code: str, message: str) -> None:
        pass

    def value(self, at: int) -> tuple[JSON, int]:
        if _CUT_ATOM.match(self.text, at):
            raise self.cut()
        if _CUT_STRING.match(self.text, at):
            return self.half_string(at), len(self.text)
        return super().value(at)

    def key(self, at: int, items: dict[str, JSON]) -> tuple[str, int]:
        if _CUT_STRING.match(self.text, at):
            raise self.cut()
        return super().key(at, items)

    def half_string(self, at: int) -> str:
        # Drop what may be half of an escape sequence.
        escape = self.text.find("\\", max(at + 1, len(self.text) - _LONGEST_ESCAPE))
        whole = _HALF_ESCAPE.sub("", self.text[at + 1 : escape] if escape > 0 else self.text[at + 1 :])
        try:
            return str(scanstring(f'{whole}…"', 0, True)[0])
        except JSONDecodeError:
            raise self.fault(0, "not_json", "The string cannot be read.") from None

    def cut(self) -> Fault:
        return self.fault(len(self.text), "not_json", "The text ends here.")

    def join(self) -> JSON:
        """Put each open container into its parent."""
        for outer, inner, part in zip(self.open, self.open[1:], self.path, strict=False):
            if isinstance(outer, list):
                outer.append(inner)
            else:
                outer[str(part)] = inner
        return self.open[0]


def _after_blanks(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at
