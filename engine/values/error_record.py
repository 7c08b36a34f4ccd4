"""The record of an exception: bounded, storable texts, whatever the exception does."""

import itertools
import json
import math
import re
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import FrameType, TracebackType

from pydantic_core import ValidationError

from engine.values.json_type import JSON

MAX_BYTES = 16 * 1024  # for each of message, details and traceback
RAISED = "raised"  # a key of the details of an exception group: type and message of the failed step's error

_MAX_CHAIN = 8  # exceptions of a chain or group shown in a traceback
_HEAD_FRAMES, _TAIL_FRAMES = 10, 30
_MAX_ATTRIBUTES, _MAX_NODES, _MAX_DEPTH = 50, 500, 8
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ErrorRecord:
    """An exception as it is stored and shown."""

    type: str
    """The name of the exception's class."""
    message: str
    """Its text, at most 16 KiB."""
    details: "dict[str, JSON]" = field(default_factory=dict)
    """Those of its attributes that are JSON."""
    traceback: str = ""
    """The traceback, at most 16 KiB; empty if there is none."""

    @classmethod
    def of(cls, exc: BaseException) -> "ErrorRecord":
        """Record an exception. Never raises, even if the exception's own `__str__` does."""
        return cls(_type_name(exc), _message(exc), _details(exc), _traceback(exc))

    def to_json(self) -> "dict[str, JSON]":
        return {
            "type": self.type,
            "message": self.message,
            "details": self.details,
            "traceback": self.traceback,
        }

    @classmethod
    def from_json(cls, data: "Mapping[str, JSON]") -> "ErrorRecord":
        """Read what `to_json` wrote; missing fields and fields of another type become empty."""
        details = data.get("details")
        return cls(
            _text_or(data.get("type"), "Error"),
            _text_or(data.get("message"), ""),
            details if isinstance(details, dict) else {},
            _text_or(data.get("traceback"), ""),
        )


def raised_in(error: object) -> "tuple[object, object]":
    """Return type and message of what the failed step raised, from an instance's recorded error.

    An exception group has type and message of its own.
    """
    if not isinstance(error, dict):
        return None, None
    details = error.get("details")
    inner = details.get(RAISED) if error.get("step") and isinstance(details, dict) else None
    is_group = str(error.get("type", "")).endswith("Group") and isinstance(inner, dict)
    one = inner if is_group and isinstance(inner, dict) else error
    return one.get("type"), one.get("message")


def storable(text: str) -> str:
    """Replace what PostgreSQL cannot store (NUL, lone surrogates) with U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text)


def cut(text: str, limit: int = MAX_BYTES) -> str:
    """Make a text storable and at most `limit` bytes of UTF-8 long. A cut is marked."""
    head = storable(text[:limit])
    if len(text) <= limit and len(head.encode()) <= limit:
        return head
    note = f"… (cut, {len(text):,} characters)"
    return _first_bytes(head, limit - len(note.encode())) + note


def _type_name(exc: BaseException) -> str:
    name = type.__dict__["__qualname__"].__get__(type(exc))  # a metaclass may lie or raise
    return cut(str(name).rpartition("<locals>.")[2], 256)


def _message(exc: BaseException) -> str:
    # User code, which may even exit: its error must not replace the recorded one.
    try:
        return cut(_without_values(exc) if isinstance(exc, ValidationError) else str(exc))
    except BaseException as problem:  # noqa: BLE001
        return f"(its text cannot be shown: __str__ raised {_type_name(problem)})"


def _without_values(exc: ValidationError) -> str:
    """Return pydantic's message without values: for one missing field it shows the whole input, secrets included."""
    errors = exc.errors(include_url=False, include_context=False, include_input=False)
    lines = [f"{len(errors)} validation error{'' if len(errors) == 1 else 's'} for {exc.title}"]
    for error in errors:
        lines += [".".join(map(str, error["loc"])), f"  {error['msg']} [type={error['type']}]"]
    return "\n".join(line for line in lines if line)


def _details(exc: BaseException) -> "dict[str, JSON]":
    """Return the public attributes that are JSON and fit into the limit."""
    kept: dict[str, JSON] = {}
    room = MAX_BYTES - 2
    for name, value in _attributes(exc):
        try:
            name, plain = storable(name), _plain(value, itertools.count(), depth=0)
            size = len(json.dumps({name: plain}, ensure_ascii=False).encode())
        except Exception:  # noqa: BLE001, S112 - not JSON, too large, or an object of the user's that raises
            continue
        if size <= room:
            kept[name] = plain
            room -= size
    return kept


def _attributes(exc: BaseException) -> Iterator[tuple[str, object]]:
    try:
        items = list(itertools.islice(vars(exc).items(), _MAX_ATTRIBUTES))
    except Exception:  # noqa: BLE001 - a class may replace __dict__ by a property of its own
        return
    for name, value in items:
        if type(name) is str and len(name) <= 256 and not name.startswith("_"):
            yield name, value


def _plain(value: object, nodes: Iterator[int], depth: int) -> "JSON":
    """Copy a value of exact JSON types, so that no user code runs. Raises ValueError for any other value."""
    if next(nodes) > _MAX_NODES or depth > _MAX_DEPTH:
        raise ValueError("too large")
    exact = type(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and exact is str and len(value) <= MAX_BYTES:
        return storable(value)
    if isinstance(value, int) and exact is int and -(2**63) <= value < 2**63:
        return value
    if isinstance(value, float) and exact is float and math.isfinite(value):
        return value
    if isinstance(value, list | tuple) and exact in (list, tuple):
        return [_plain(item, nodes, depth + 1) for item in value]
    if isinstance(value, dict) and exact is dict:
        return {_key(key): _plain(item, nodes, depth + 1) for key, item in value.items()}
    raise ValueError("not JSON")


def _key(key: object) -> str:
    if not isinstance(key, str) or type(key) is not str or len(key) > 256:
        raise ValueError("not JSON")
    return storable(key)


def _traceback(exc: BaseException) -> str:
    try:
        return _cut_middle("\n".join(_trace_chain(exc)))
    # User code again (a module's __loader__, notes of odd types); see _message.
    except BaseException as problem:  # noqa: BLE001
        return f"(the traceback cannot be shown: {_type_name(problem)})"


def _trace_chain(exc: BaseException) -> Iterator[str]:
    """Show causes first, as Python does, but in a loop and only the last few."""
    chain, links = [exc], list[str]()
    while len(chain) < _MAX_CHAIN:
        link = _previous(chain[-1])
        if link is None or any(link[0] is known for known in chain):
            break
        chain.append(link[0])
        links.append(link[1])
    if len(chain) == _MAX_CHAIN and _previous(chain[-1]) is not None:
        yield "… (earlier causes omitted)\n"
    for index in range(len(chain) - 1, -1, -1):
        yield from _trace_one(chain[index])
        if index > 0:
            yield f"\n{links[index - 1]}\n"


def _previous(exc: BaseException) -> tuple[BaseException, str] | None:
    if exc.__cause__ is not None:
        return exc.__cause__, "The above exception was the direct cause of the following exception:"
    if exc.__context__ is not None and not exc.__suppress_context__:
        return exc.__context__, "During handling of the above exception, another exception occurred:"
    return None


def _trace_one(exc: BaseException) -> Iterator[str]:
    if exc.__traceback__ is not None:
        yield "Traceback (most recent call last):"
        yield from _frames(exc.__traceback__)
    message = _message(exc)
    yield f"{_type_name(exc)}: {message}" if message else _type_name(exc)
    notes = getattr(exc, "__notes__", None)
    if isinstance(notes, list):
        yield from (cut(str(note)) for note in notes[:_MAX_CHAIN])
    if isinstance(exc, BaseExceptionGroup):
        for number, (inner, depth) in enumerate(_inner(exc), start=1):
            if number > _MAX_CHAIN:
                yield "  … (more omitted)"
                break
            yield f"{'  ' * depth}+ {number}: {_type_name(inner)}: {_message(inner)}"
            if inner.__traceback__ is not None and not isinstance(inner, BaseExceptionGroup):
                yield from _frames(inner.__traceback__)


def _inner(group: BaseExceptionGroup[BaseException]) -> Iterator[tuple[BaseException, int]]:
    """Walk a group depth first, without recursion."""
    waiting = [(exc, 1) for exc in reversed(group.exceptions)]
    while waiting:
        exc, depth = waiting.pop()
        yield exc, depth
        if isinstance(exc, BaseExceptionGroup):
            waiting.extend((inner, depth + 1) for inner in reversed(exc.exceptions))


def _frames(tb: TracebackType) -> Iterator[str]:
    frames = list(traceback.walk_tb(tb))
    left_out = len(frames) - _HEAD_FRAMES - _TAIL_FRAMES
    if left_out <= 0:
        yield from _format(frames)
        return
    yield from _format(frames[:_HEAD_FRAMES])
    yield f"  … ({left_out:,} frames omitted)"
    yield from _format(frames[-_TAIL_FRAMES:])


def _format(frames: list[tuple[FrameType, int]]) -> Iterator[str]:
    for line in traceback.StackSummary.extract(iter(frames)).format():
        yield line.rstrip("\n")


def _cut_middle(text: str) -> str:
    """Keep the beginning, and more of the end, where the cause usually is."""
    data = storable(text).encode()
    if len(data) <= MAX_BYTES:
        return data.decode()
    note = f"\n… (cut, {len(text):,} characters)\n".encode()
    head = MAX_BYTES // 4
    tail = MAX_BYTES - head - len(note)
    return (data[:head] + note + data[-tail:]).decode(errors="ignore")


def _first_bytes(text: str, limit: int) -> str:
    return text.encode()[:limit].decode(errors="ignore")


def _text_or(value: object, default: str) -> str:
    return value if isinstance(value, str) else default
