"""A JSON parser that knows where it is. Slower than Python's, it runs only where that one is in doubt."""

import math
import re
from json import JSONDecodeError
from json.decoder import scanstring  # type: ignore[attr-defined]  # public in CPython, unknown to typeshed

from engine.json_type import JSON
from engine.serialization import rules
from engine.serialization.rules import MAX_DEPTH, MAX_INTEGER, MAX_KEY, MIN_INTEGER, show_path

_BLANKS = re.compile(r"[ \t\n\r]*+")
_NUMBER = re.compile(r"(-?(?:0|[1-9][0-9]*+))(\.[0-9]++)?([eE][-+]?[0-9]++)?")
_WORDS: dict[str, JSON] = {"true": True, "false": False, "null": None}
_CONSTANTS = ("NaN", "Infinity", "-Infinity")


class Fault(Exception):
    """Where a text breaks which rule."""

    def __init__(self, position: int, path: str, code: str, message: str) -> None:
        super().__init__(message)
        self.position = position
        self.path = path
        self.code = code
        self.message = message


def locate(text: str) -> JSON:
    """Return the value of a text, or raise a Fault with the path to what is wrong."""
    parser = _Parser(text)
    if not text.strip(" \t\n\r"):
        raise parser.fault(0, "not_json", "There is no value: the text is empty.")
    value, end = parser.value(_after_blanks(text, 0))
    end = _after_blanks(text, end)
    if end != len(text):
        raise parser.fault(end, "not_json", "There is something after the end of the value.")
    return value


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.path: list[str | int] = []

    def fault(self, position: int, code: str, message: str) -> Fault:
        return Fault(position, show_path(self.path), code, message)

    def value(self, at: int) -> tuple[JSON, int]:
        first = self.text[at : at + 1]
        if first == '"':
            return self.string(at)
        if first in ("[", "{") and first:
            if len(self.path) >= MAX_DEPTH:
                raise self.fault(at, "too_deep", rules.DEEP)
            return self.array(at) if first == "[" else self.object(at)
        for word, value in _WORDS.items():
            if self.text.startswith(word, at):
                return value, at + len(word)
        return self.number(at)

    def array(self, at: int) -> tuple[JSON, int]:
        items: list[JSON] = []
        at = _after_blanks(self.text, at + 1)
        if self.text.startswith("]", at):
            return items, at + 1
        while True:
            self.path.append(len(items))
            item, at = self.value(at)
            self.path.pop()
            items.append(item)
            at = _after_blanks(self.text, at)
            if self.text.startswith("]", at):
                return items, at + 1
            at = self.after(",", at, "Expected a comma or the closing bracket of the list.")

    def object(self, at: int) -> tuple[JSON, int]:
        items: dict[str, JSON] = {}
        at = _after_blanks(self.text, at + 1)
        if self.text.startswith("}", at):
            return items, at + 1
        while True:
            key, at = self.key(at, items)
            self.path.append(key)
            at = self.after(":", _after_blanks(self.text, at), "Expected a colon after the key.")
            items[key], at = self.value(at)
            self.path.pop()
            at = _after_blanks(self.text, at)
            if self.text.startswith("}", at):
                return items, at + 1
            at = self.after(",", at, "Expected a comma or the closing brace of the object.")

    def key(self, at: int, items: dict[str, JSON]) -> tuple[str, int]:
        if not self.text.startswith('"', at):
            raise self.fault(at, "not_json", "Expected a key in double quotes.")
        key, end = self.string(at)
        if len(key) > MAX_KEY:
            self.path.append(key)
            raise self.fault(at, "key_too_long", rules.LONG_KEY)
        if key in items:
            self.path.append(key)
            raise self.fault(at, "duplicate_key", "The key stands twice in the same object.")
        return key, end

    def string(self, at: int) -> tuple[str, int]:
        try:
            text, end = scanstring(self.text, at + 1, True)
        except JSONDecodeError as problem:
            raise self.fault(
                problem.pos, "not_json", f"{problem.msg.removesuffix(' at').removesuffix(' starting')}."
            ) from None
        broken = rules.text_fault(text)
        if broken:
            raise self.fault(at, *broken)
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
                raise self.fault(at, "not_finite", rules.OVERFLOW)
            return number, match.end()
        # The length first: Python refuses to convert more than 4,300 digits.
        if len(whole) > 20 or not MIN_INTEGER <= int(whole) <= MAX_INTEGER:
            raise self.fault(at, "integer_too_large", rules.INTEGER)
        return int(whole), match.end()

    def after(self, sign: str, at: int, message: str) -> int:
        if not self.text.startswith(sign, at):
            raise self.fault(at, "not_json", message)
        return _after_blanks(self.text, at + 1)


def _after_blanks(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at
