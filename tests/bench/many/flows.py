"""The fourteen workflows of a made-up shop, and the steps that an instance of each takes."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from engine.values.states import StepKind
from tests.bench.many.lines import NULL, stored

MAX_ATTEMPTS = 3
RETRY: dict[str, object] = {
    "max_attempts": MAX_ATTEMPTS,
    "delay": 1.0,
    "backoff": "exponential",
    "max_delay": 300.0,
    "jitter": 0.0,
    "timeout": 600.0,
}
QUESTION = {
    "message": "Go ahead?",
    "assignees": ["group:support"],
    "schema": {"title": "Decision", "type": "boolean"},
}
CHILD_FLOW = "print-label"
# What bodies return, by name of the step: a number in hexadecimal, and an amount in cents.
OUTPUTS = {
    "charge": '{"charge":"ch_%x","cents":%d}',
    "reserve": '{"shelf":"%x","pieces":%d}',
    "ship": '{"tracking":"JD%x","grams":%d}',
}
OUTPUT = '{"ref":"%x","size":%d}'


@dataclass(frozen=True, slots=True)
class Call:
    """A call of `step` in a handler, with the texts of its row's columns that are the same for every instance."""

    kind: str
    name: str
    count: int = 1
    identity: str = ""
    options: str = NULL
    output: str = OUTPUT
    event: str = ""

    @property
    def is_undone(self) -> bool:
        """Return whether it is recorded with a rollback."""
        return "rollback" in self.options


@dataclass(frozen=True, slots=True)
class Flow:
    """A workflow: its share of all instances, and its steps; an instance with more steps repeats the last bodies."""

    name: str
    prefix: str
    share: int
    steps: str
    schedule: str = ""
    expression: str = ""
    code: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", hashlib.md5(self.name.encode(), usedforsecurity=False).hexdigest())


FLOWS = (
    Flow(
        "fulfil-order",
        "order",
        340,
        "validate reserve charge child:label event:packed sleep:cooling-off ship progress:Shipped notify",
    ),
    Flow(
        "send-invoice",
        "invoice",
        180,
        "collect render upload send sleep:until-due remind event:paid book archive",
    ),
    Flow(
        "renew-subscription",
        "subscription",
        120,
        "load charge extend sleep:grace notify event:confirmed book",
    ),
    Flow("sync-customer", "customer", 110, "read compare merge write progress:Merged notify"),
    Flow("screen-payment", "payment", 60, "score lookup charge request:release book notify"),
    Flow("approve-refund", "refund", 50, "load check request:approve charge book notify"),
    Flow("import-catalog", "import", 40, "download parse check write progress:Imported reindex"),
    Flow("ship-return", "return", 40, "undo:book-courier undo:reserve label event:returned inspect restock"),
    Flow("answer-ticket", "ticket", 30, "classify draft request:review send event:reply close"),
    Flow("onboard-merchant", "merchant", 20, "register verify request:contract sleep:trial activate notify"),
    Flow("reindex-search", "reindex", 15, "list build swap check progress:Swapped"),
    Flow("nightly-report", "report", 10, "query render upload send", "nightly", "30 2 * * *"),
    Flow("rotate-keys", "rotation", 5, "create spread sleep:overlap revoke check", "hourly", "0 * * * *"),
)
CHILD = Flow(CHILD_FLOW, "", 0, "layout print event:collected file")
WITH_BURST = (FLOWS[0], FLOWS[2])
BURST_STEP = "charge"
NAMES = tuple(sorted([*(flow.name for flow in FLOWS), CHILD_FLOW]))


@lru_cache(maxsize=1024)
def plan(flow: Flow, length: int) -> tuple[Call, ...]:
    """Return the first steps of a handler; after the last one it repeats its bodies."""
    counts = Counter[tuple[str, str]]()
    calls: list[Call] = []
    for kind, name in _endless(flow.steps.split()):
        if len(calls) == length:
            break
        counts[kind, name] += 1
        calls.append(_call(kind, name, counts[kind, name]))
    return tuple(calls)


def _endless(steps: list[str]) -> Iterator[tuple[str, str]]:
    yield from (_split(one) for one in steps)
    bodies = [one for one in steps if ":" not in one]
    while True:
        yield from (_split(one) for one in bodies)


def _split(step: str) -> tuple[str, str]:
    kind, _, name = step.rpartition(":")
    return kind or str(StepKind.DO), name


def _call(kind: str, name: str, count: int) -> Call:
    options, event = NULL, ""
    output = OUTPUT
    if kind in (StepKind.DO, "undo"):
        given = RETRY | {"once": False, "sensitive": False} | ({"rollback": RETRY} if kind == "undo" else {})
        options, output = stored(json.dumps(given)), OUTPUTS.get(name, OUTPUT)
        kind = StepKind.DO
    elif kind == StepKind.REQUEST:
        options = stored(json.dumps(QUESTION, separators=(",", ":")))
    elif kind == StepKind.EVENT:
        event = f"order-{name}"
    elif kind == StepKind.PROGRESS:
        output = json.dumps({"message": name, "percent": 80}, separators=(",", ":"))
    identity = f"0\t{kind}\t{name}\t{count}"
    return Call(str(kind), name, count, identity, options, output, event)
