"""What the clients of a run do: which instances they start, what they do to each, and how each must end. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal

from tests.chaos.ops import BAD, GOOD, Kind, Op, flat, oracle

Verb = Literal["send", "pause", "resume", "terminate", "restart", "delete"]
EVENT = "go"
NEVER = "never-sent"
HOURS = 6 * 3600.0
CHILD = "child"

# Of a thousand steps so many kill their own process, once.
POISON = 0.002
TOGETHER = 0.15
ATOMIC = 0.05
SENT_TWICE = 0.2
NEVER_SENT = 0.1
STARTED_TWICE = 0.05
HELD_OPEN = 0.03
THROUGH_THE_STUDIO = 0.15


@dataclass(frozen=True)
class Deed:
    """What a client does to an instance, so many seconds after its start was accepted.

    `key` is an event's, or the step from which it is restarted; `payload` an event's, or how many restarts came before.
    """

    after: float
    verb: Verb
    key: str = ""
    payload: Any = None
    is_repeated: bool = False
    is_held: bool = False


@dataclass
class Story:
    """An instance: its program, the deeds of its client, and the end that both lead to."""

    id: str
    kind: str
    at: float
    ops: list[Op]
    deeds: list[Deed] = field(default_factory=list)
    status: str = "complete"
    is_in_studio: bool = False
    is_repeated: bool = False

    @property
    def output(self) -> list[Any] | None:
        if self.status != "complete":
            return None
        payloads = {deed.key: deed.payload for deed in self.deeds if deed.verb == "send"}
        return [oracle(self.id, op, payloads) for op in self.ops]

    @property
    def is_steered(self) -> bool:
        return any(deed.verb != "send" for deed in self.deeds)

    def steps(self) -> dict[str, Op]:
        return {op.name: op for op in flat(self.ops)}

    def of_child(self, id: str, step: str) -> Story:
        """Return the story of the child that this step has started."""
        deeds = [deed for deed in self.deeds if deed.verb == "terminate"]
        return Story(id, CHILD, self.at, self.steps()[step].ops, deeds, status=self.status)


class Teller:
    """Tells one story; `longest` is the longest sleep, in seconds."""

    def __init__(self, rng: Random, id: str, at: float, longest: float) -> None:
        self.rng, self.longest = rng, longest
        self.made = 0
        self.story = Story(id, "", at, [])

    def tell(self, kind: str) -> Story:
        story = self.story
        story.kind = kind
        story.is_in_studio = self.rng.random() < THROUGH_THE_STUDIO
        story.is_repeated = self.rng.random() < STARTED_TWICE
        TELLERS[kind](self)
        return story

    def name(self, what: str) -> str:
        self.made += 1
        return f"{what}-{self.made}"

    def body(self) -> Op:
        if self.rng.random() < POISON:
            return Op("poison", self.name("poison"))
        if self.rng.random() < ATOMIC:
            return Op("atomic", self.name("atomic"), round(self.rng.uniform(0, 0.3), 3))
        kinds: list[Kind] = ["work", "block"]
        kind = self.rng.choice(kinds)
        return Op(kind, self.name(kind), self._seconds())

    def child(self, *last: Op) -> None:
        """A child that does some of what its parent might have done, and these in the end."""
        self.story.ops.append(
            Op(
                "child",
                self.name("child"),
                ops=[*(self.body() for _ in range(self.rng.randint(1, 3))), *last],
            )
        )

    def _seconds(self) -> float:
        ranges = ((0, 0.02), (0.1, 0.5), (2, 4))
        (chosen,) = self.rng.choices(ranges, (80, 15, 5))
        return round(self.rng.uniform(*chosen), 3)

    def bodies(self, least: int, most: int) -> None:
        for _ in range(self.rng.randint(least, most)):
            self.story.ops.append(self._group() if self.rng.random() < TOGETHER else self.body())

    def _group(self) -> Op:
        ops = [self.body() for _ in range(self.rng.randint(2, 3))]
        if self.rng.random() < 0.3:
            ops.append(Op("sleep", self.name("sleep"), round(self.rng.uniform(0.2, 1), 2)))
        return Op("together", ops=ops)


def _steps(teller: Teller) -> None:
    teller.bodies(3, 8)


def _sleeps(teller: Teller) -> None:
    for _ in range(teller.rng.randint(1, 3)):
        teller.bodies(0, 2)
        seconds = round(teller.rng.uniform(0.5, teller.longest), 2)
        teller.story.ops.append(Op("sleep", teller.name("sleep"), seconds))
    teller.bodies(1, 1)


def _waits(teller: Teller) -> None:
    """All events have one type: their order is what gives each wait its own."""
    rng, story, sent_at = teller.rng, teller.story, 0.0
    for _ in range(rng.randint(1, 3)):
        teller.bodies(0, 2)
        name = teller.name("event")
        if rng.random() < NEVER_SENT:
            story.ops.append(Op("event", name, round(rng.uniform(0.5, 3), 2), what=NEVER))
            continue
        story.ops.append(Op("event", name, HOURS, what=EVENT))
        sent_at += rng.choice((0.0, rng.uniform(0.5, 5)))
        payload = {"for": f"{story.id}/{name}"}
        twice, held = rng.random() < SENT_TWICE, rng.random() < HELD_OPEN
        story.deeds.append(Deed(sent_at, "send", name, payload, is_repeated=twice, is_held=held))
    teller.bodies(1, 1)


def _flaky(teller: Teller) -> None:
    teller.bodies(0, 2)
    teller.story.ops.append(Op("flaky", teller.name("flaky"), 0.01, times=teller.rng.randint(1, 3)))
    teller.bodies(1, 2)


def _broken(teller: Teller) -> None:
    teller.bodies(1, 4)
    teller.story.ops.append(Op("broken", teller.name("broken"), 0.01))
    teller.story.status = "errored"


def _undone(teller: Teller) -> None:
    """Everything that can be taken back is, in reverse order."""
    for _ in range(teller.rng.randint(1, 4)):
        teller.bodies(0, 1)
        teller.story.ops.append(Op("undo", teller.name("undo"), round(teller.rng.uniform(0, 0.4), 3)))
    _broken(teller)


def _parent(teller: Teller) -> None:
    for _ in range(teller.rng.randint(1, 2)):
        teller.bodies(0, 2)
        teller.child()
    teller.bodies(0, 1)


def _orphaned(teller: Teller) -> None:
    """The child waits for ever, until it is terminated with its parent."""
    teller.bodies(0, 2)
    teller.child(Op("event", teller.name("event"), HOURS, what=NEVER))
    teller.story.deeds.append(Deed(teller.rng.uniform(0.1, 4), "terminate"))
    teller.story.status = "terminated"


def _paused(teller: Teller) -> None:
    teller.bodies(4, 8)
    teller.story.ops.insert(2, Op("sleep", teller.name("sleep"), round(teller.rng.uniform(0.5, 3), 2)))
    at = 0.0
    for _ in range(teller.rng.randint(1, 3)):
        at += teller.rng.uniform(0.1, 1.5)
        teller.story.deeds.append(Deed(at, "pause"))
        at += teller.rng.uniform(0.2, 3)
        teller.story.deeds.append(Deed(at, "resume"))


def _terminated(teller: Teller) -> None:
    """It waits for ever in the end, so that it is never too late to terminate it."""
    teller.bodies(2, 6)
    teller.story.ops.append(Op("event", teller.name("event"), HOURS, what=NEVER))
    teller.story.deeds.append(Deed(teller.rng.uniform(0.1, 4), "terminate"))
    teller.story.status = "terminated"


def _restarted(teller: Teller) -> None:
    """From the start or from a step, while it runs or when it has ended; it does the rest again."""
    teller.bodies(3, 8)
    story, rng = teller.story, teller.rng
    story.is_in_studio = False
    targets = [op.name for op in story.ops if op.kind in ("work", "block", "atomic")]
    target = rng.choice(targets) if targets and rng.random() < 0.7 else ""
    story.deeds.append(Deed(rng.uniform(0.1, 5), "restart", target))


def _steered(teller: Teller) -> None:
    """Pauses, ends and restarts in quick succession, over bodies that go on whatever they are told."""
    story, rng = teller.story, teller.rng
    story.is_in_studio = False
    kinds: list[Kind] = ["block", "stubborn", "nested", "atomic"]
    for _ in range(rng.randint(2, 4)):
        kind = rng.choice(kinds)
        story.ops.append(Op(kind, teller.name(kind), round(rng.uniform(0.05, 0.3), 3)))
    story.ops.insert(1, Op("sleep", teller.name("sleep"), 0.15))
    at, restarts, is_paused = 0.0, 0, False
    for _ in range(rng.randint(4, 8)):
        at += rng.uniform(0.02, 0.5)
        verb: Verb = rng.choice(["resume" if is_paused else "pause", "restart", "terminate"])
        story.deeds.append(Deed(at, verb, payload=restarts))
        if verb == "terminate":
            at += rng.uniform(0.0, 0.2)
            story.deeds.append(Deed(at, "restart", payload=restarts))
        restarts += verb in ("restart", "terminate")
        is_paused = verb == "pause"
    if is_paused:
        story.deeds.append(Deed(at + rng.uniform(0.0, 0.5), "resume"))


def _deleted(teller: Teller) -> None:
    """As soon as it has ended, of which one can be sure when one ends it."""
    _terminated(teller)
    story = teller.story
    story.is_in_studio = False
    story.deeds.append(Deed(story.deeds[-1].after + teller.rng.uniform(0, 1), "delete"))


def _nasty(teller: Teller) -> None:
    for what in teller.rng.sample([*GOOD, *BAD], 3):
        teller.story.ops.append(Op("nasty", teller.name("nasty"), what=what))
    teller.bodies(1, 1)


TELLERS: dict[str, Callable[[Teller], None]] = {
    "steps": _steps,
    "sleeps": _sleeps,
    "waits": _waits,
    "flaky": _flaky,
    "broken": _broken,
    "undone": _undone,
    "parent": _parent,
    "orphaned": _orphaned,
    "paused": _paused,
    "terminated": _terminated,
    "restarted": _restarted,
    "steered": _steered,
    "deleted": _deleted,
    "nasty": _nasty,
}
# Their shares, in percent.
MIX = {
    "steps": 28,
    "sleeps": 20,
    "waits": 16,
    "parent": 8,
    "orphaned": 2,
    "flaky": 5,
    "broken": 2,
    "undone": 4,
    "paused": 3,
    "terminated": 2,
    "restarted": 4,
    "steered": 3,
    "deleted": 2,
    "nasty": 1,
}


def stories(seed: int, count: int, rate: float, longest: float) -> list[Story]:
    """Return the stories of a run, in the order of their starts, `rate` of them a second."""
    kinds = Random(f"{seed} kinds").choices(list(MIX), list(MIX.values()), k=count)
    return [
        Teller(Random(f"{seed} {number}"), f"i{number}", number / rate, longest).tell(kind)
        for number, kind in enumerate(kinds)
    ]
