"""What an instance of the kitchen sink is told to do, and what each operation returns. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal[
    "work",
    "block",
    "stubborn",
    "nested",
    "atomic",
    "undo",
    "poison",
    "flaky",
    "broken",
    "nasty",
    "sleep",
    "event",
    "child",
    "together",
]

TIMED_OUT = "timed out"
REFUSED = "refused"
ATTEMPTS_OF_THE_BROKEN = 2


@dataclass
class Op:
    """One operation. `seconds`: of a body, a sleep, or the timeout of a wait; `times`: how often a body fails.

    `ops` are those of a group, or the program of a child.
    """

    kind: Kind
    name: str = ""
    seconds: float = 0.0
    times: int = 0
    what: str = ""
    ops: list[Op] = field(default_factory=list)


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


# Outputs that must come back as they went in (RELIABILITY.md, F).
GOOD: dict[str, Any] = {
    "large float": 1e16,
    "negative zero": -0.0,
    "beyond JavaScript": 2**53 + 1,
    "64 bits": [2**63 - 1, -(2**63)],
    "nesting of 60": _nested(60),
    "key order": {"zz": 1, "b": 2, "": 3},
    "names of JavaScript": {"__proto__": {}, "a.b[0]$": 1},
    "markup": "<img src=x onerror=alert(1)>\u202e</script>{{7*7}}",
    "characters": "\x01\x7f\u2028\U0001f600\ufffd",
    "100 kB": "x" * 100_000,
    "nothing": None,
    "empty text": "",
}
# Outputs that cannot be stored: they fail their step at once, and nothing else.
BAD: dict[str, Callable[[], Any]] = {
    "NUL": lambda: {"a": "x\0y"},
    "lone surrogate": lambda: ["\ud800"],
    "NaN": lambda: {"a": [1, math.nan]},
    "infinity": lambda: math.inf,
    "over 64 bits": lambda: 2**63,
    "nesting of 65": lambda: _nested(66),
    "set": lambda: {1, 2},
    "bytes": lambda: b"x",
    "2 MB": lambda: "x" * 2_000_000,
}


def nasty(what: str) -> Any:
    """Make the value of that name."""
    return BAD[what]() if what in BAD else GOOD[what]


def made_by(instance: str, step: str) -> str:
    """Return what a body returns: another value for every step of every instance."""
    return f"{step} of {instance}"


def oracle(instance: str, op: Op, payloads: dict[str, Any]) -> Any:
    """Return what the operation has to yield; `payloads` are those of the events that are sent, by wait."""
    match op.kind:
        case "together":
            return [oracle(instance, one, payloads) for one in op.ops]
        case "sleep":
            return None
        case "child":
            return len(op.ops)
        case "event":
            return payloads.get(op.name, TIMED_OUT)
        case "nasty":
            return REFUSED if op.what in BAD else GOOD[op.what]
        case _:
            return made_by(instance, op.name)


def flat(ops: list[Op]) -> list[Op]:
    """Return the operations with those of groups in their places."""
    return [one for op in ops for one in (flat(op.ops) if op.kind == "together" else [op])]
