"""Write plain values as JSON texts that are read back equal, or raise an error that says what cannot be stored."""

import json
import math
from collections.abc import Awaitable, Container
from enum import Enum
from typing import NoReturn

from engine.values.errors import InvalidValueError, LimitError
from engine.values.json_type import JSON
from engine.values.serialization import envelope, rules
from engine.values.serialization.rules import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_INTEGER,
    MAX_KEY,
    MAX_TOKENS,
    MIN_INTEGER,
    show_path,
)

_PLAIN = frozenset({type(None), bool, int, float, str, list, tuple, dict})
_CONTAINERS = frozenset({list, tuple, dict})
_CHECKED = _CONTAINERS | {int, str}

# An oversized value is written up to this size, so that the error names its exact size; beyond it nothing is written.
_FAR_OVER = 8

# No check for cycles: the depth is known before anything is written.
_writer = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))


def encode(
    value: object,
    *,
    what: str = "value",
    limit: int = MAX_BYTES,
    note: str = "",
    envelopes: Container[str] = (),
) -> str:
    """Return the JSON text of a value of JSON types; tuples become lists.

    Raises InvalidValueError with the path to what cannot be stored (`note` is appended), or LimitError if it is too
    large. `what` names the value in the message: `output of step "charge"`. It may contain encrypted values only if
    their tokens are among `envelopes`.
    """
    if not _is_plain(value, limit):
        value = _Copier(what, limit, note).copy(value)
    try:
        text = _writer.encode(value)
    except ValueError:  # NaN or infinity
        _explain(value, what, limit, note)
    if "\\u0000" in text:  # or a backslash before "u0000", which is harmless: the copier decides
        _Copier(what, limit, note).copy(value)
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        _explain(value, what, limit, note)
    if size > limit:
        raise too_large(what, size, limit)
    if envelope.MARK in text:
        envelope.check(value, envelopes, what=what)
    return text


def too_large(what: str, size: int, limit: int) -> LimitError:
    return LimitError(
        what, size, limit, unit="bytes", advice="Store large data elsewhere and pass on a reference to it."
    )


def _is_plain(root: object, limit: int) -> bool:
    """Check quickly, level by level, that a value has exact JSON types and is within the limits.

    Floats, NUL and surrogates are left to the writer. Returns False if in doubt.
    """
    level: list[object] = [root]
    depth = size = 0
    tokens = 1
    while level:
        kinds = set(map(type, level))
        if not kinds <= _PLAIN or (depth >= MAX_DEPTH and not kinds.isdisjoint(_CONTAINERS)):
            return False
        depth += 1
        if kinds.isdisjoint(_CHECKED):
            return True
        deeper: list[object] = []
        for item in level:
            kind = type(item)
            if kind is str:
                size += len(item)  # type: ignore[arg-type]
            elif kind is int:
                if not MIN_INTEGER <= item <= MAX_INTEGER:  # type: ignore[operator]
                    return False
            elif kind is dict:
                tokens += 4 * len(item) or 1  # type: ignore[arg-type]
                for key in item:  # type: ignore[attr-defined]
                    if type(key) is not str or len(key) > MAX_KEY:
                        return False
                    size += len(key)
                if tokens > MAX_TOKENS:
                    return False
                deeper.extend(item.values())  # type: ignore[attr-defined]
            elif kind is list or kind is tuple:
                tokens += 2 * len(item) or 1  # type: ignore[arg-type]
                # Checked before they are added: a list that contains itself twice doubles at each level.
                if tokens > MAX_TOKENS:
                    return False
                deeper.extend(item)  # type: ignore[arg-type]
            if size > _FAR_OVER * limit:
                return False
        level = deeper
    return True


def _explain(value: object, what: str, limit: int, note: str) -> NoReturn:
    _Copier(what, limit, note).copy(value)
    raise AssertionError("The writer refused a valid value.")


class _Copier:
    """Copies a value into exact JSON types, one part at a time, and tracks the path for errors."""

    def __init__(self, what: str, limit: int, note: str) -> None:
        self.what = what
        self.limit = limit
        self.note = note
        self.path: list[str | int] = []
        self.inside: set[int] = set()
        self.tokens = 1
        self.size = 0

    def copy(self, value: object) -> JSON:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, Enum):  # some are also strings or integers, and would be read back as such
            self.refuse_type(value)
        # The plain value of subclasses, through methods that they cannot override.
        if isinstance(value, str):
            return self.text(str.__str__(value))
        if isinstance(value, int):
            return self.integer(int.__int__(value))
        if isinstance(value, float):
            return self.number(float.__float__(value))
        if isinstance(value, list | tuple):
            return self.sequence(value)
        if isinstance(value, dict):
            return self.mapping(value)
        return self.refuse_type(value)

    def text(self, value: str) -> str:
        self.size += len(value)
        if self.size > _FAR_OVER * self.limit:
            raise too_large(self.what, self.size, self.limit)
        broken = rules.text_fault(value)
        if broken:
            self.refuse(*broken)
        return value

    def integer(self, value: int) -> int:
        if not MIN_INTEGER <= value <= MAX_INTEGER:
            self.refuse("integer_too_large", rules.INTEGER)
        return value

    def number(self, value: float) -> float:
        if not math.isfinite(value):
            self.refuse("not_finite", rules.NOT_FINITE)
        return value

    def sequence(self, value: list[object] | tuple[object, ...]) -> JSON:
        self.enter(value, parts=2 * len(value) or 1)
        copied: list[JSON] = []
        for item in value:
            self.path.append(len(copied))
            copied.append(self.copy(item))
            self.path.pop()
        self.inside.discard(id(value))
        return copied

    def mapping(self, value: dict[object, object]) -> JSON:
        self.enter(value, parts=4 * len(value) or 1)
        copied: dict[str, JSON] = {}
        for key, item in value.items():
            name = self.key(key)
            self.path.append(name)
            copied[name] = self.copy(item)
            self.path.pop()
        self.inside.discard(id(value))
        return copied

    def key(self, key: object) -> str:
        if not isinstance(key, str) or isinstance(key, Enum):
            self.refuse(
                "key_not_text",
                f"A key is of type {_type_name(key)}; JSON keys must be strings. Annotate the return type "
                "(such as dict[int, str]) to store other keys and get them back as they were.",
            )
        name = str.__str__(key)
        self.path.append(name)
        if len(name) > MAX_KEY:
            self.refuse("key_too_long", rules.LONG_KEY)
        self.text(name)
        self.path.pop()
        return name

    def enter(self, value: object, *, parts: int) -> None:
        if id(value) in self.inside:
            self.refuse("cyclic", "The value contains itself.")
        if len(self.path) >= MAX_DEPTH:
            self.refuse("too_deep", rules.DEEP)
        self.tokens += parts
        if self.tokens > MAX_TOKENS:
            self.refuse("too_many_tokens", rules.TOKENS)
        self.inside.add(id(value))

    def refuse_type(self, value: object) -> NoReturn:
        if isinstance(value, Awaitable):
            self.refuse("not_awaited", "It was not awaited. Put await before the call.")
        self.refuse(
            "unsupported_type",
            f"A value of type {_type_name(value)} is not a JSON type. Annotate the return type with one "
            "that can be stored (a dataclass, a pydantic model, datetime, Decimal, set[str], …) "
            "to get the value back as that.",
        )

    def refuse(self, code: str, message: str) -> NoReturn:
        text = f"{message} {self.note}" if self.note else message
        raise InvalidValueError(show_path(self.path), code, text, what=self.what)


def _type_name(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
