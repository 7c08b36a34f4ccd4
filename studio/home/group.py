"""A group of what needs attention, as its row shows it, and the order of severity. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum

from engine.status.failures import CurrentGroup
from engine.status.sentences.sentence import Sentence
from studio.display.bars import SmallBars, small_bars
from studio.errors.address import ErrorAddress
from studio.instances.address import address_of
from studio.workflows.pauses import Pauses

SHOWN_ERRORS = 10  # rows of errors and their back-offs
SHOWN_OTHERS = 5  # rows of each other kind
MOST_NAMES = 4
LONGEST_TITLE = 140
FEW = 2  # in the last hour; fewer are said in words
SOON = timedelta(hours=1)  # in which an approval expires
OF_ERRORS = ("errored", "rollback")  # kinds


class Rank(IntEnum):
    """How severe a group is, the worst first."""

    NOT_ROLLED_BACK = 0
    GROWING = 1
    ERRORED = 2
    PAUSED = 3
    EXPIRING = 4  # an approval, within the hour
    STUCK = 5  # or without a worker
    RETRYING = 6
    OVERDUE = 7
    ASKING = 8


@dataclass(frozen=True, slots=True)
class Share:
    """How much of a group is of one workflow."""

    workflow: str
    count: int


@dataclass(frozen=True, slots=True)
class Hour:
    """The last hour: bars where something changes, otherwise words."""

    words: str
    bars: SmallBars | None = None

    @classmethod
    def of(cls, count: int, counts: Sequence[int] = ()) -> Hour:
        words = f"{count:,} new" if count else "none new"
        return cls(words, small_bars(counts) if sum(counts) >= FEW else None)


@dataclass(frozen=True, slots=True)
class Group:
    """What needs attention for one reason: how many, of which workflows, since when, and where to act."""

    kind: str
    rank: Rank
    key: str  # of the row
    count: int
    look: str
    title: str
    shares: tuple[Share, ...]
    line: tuple[Sentence, ...]
    since: datetime | None
    then: Sentence
    hour: Hour
    page: str = ""  # its address, unless it is one of these:
    query: str = ""  # a search of the list of instances
    error: str = ""  # an error, by its fingerprint
    verb: str = "Open"
    where: str = ""  # what comes before the latest message of the error in the title
    only: str = ""  # the id of the instance of a group of one
    only_key: int | None = None  # its key, until the id is read
    step: str = ""
    is_new: bool = False
    follows: bool = False  # the back-offs of the group before
    is_leading: bool = False
    fingerprints: tuple[str, ...] = ()
    soonest: tuple[int, ...] = ()  # keys of instances whose next attempt is the soonest
    next_at: datetime | None = None
    own_count: int = 0  # of approvals: those that the user may answer
    pauses: Pauses | None = None  # of the worst error, while it goes on and not all its workflows are paused
    may_pause: bool = False
    retry_address: str = ""  # of an error with several instances
    may_retry: bool = False
    is_well: bool = False  # the step of the leading error succeeds again

    @property
    def address(self) -> str:
        """Its page. Made when it is asked for: there may be hundreds of errors, and few have a row."""
        if self.query:
            return address_of({"query": self.query})
        return ErrorAddress(self.error).url() if self.error else self.page

    @property
    def short_title(self) -> str:
        return self.title if len(self.title) <= LONGEST_TITLE else f"{self.title[: LONGEST_TITLE - 1]}…"

    @property
    def word(self) -> str:
        return {"stuck": "running", "unserved": "queued", "overdue": "overdue"}.get(self.kind, "")

    @property
    def named(self) -> tuple[Share, ...]:
        return self.shares[:MOST_NAMES]

    @property
    def unnamed(self) -> int:
        return len(self.shares) - len(self.named)

    @property
    def is_retried_first(self) -> bool:
        """Whether to retry is what the leading error needs now; while it still fails, it is to pause."""
        return self.is_leading and (self.is_well or self.pauses is None)

    @property
    def is_paused_first(self) -> bool:
        return self.is_leading and not self.is_retried_first

    @property
    def is_of_one(self) -> bool:
        return bool(self.only)


@dataclass(frozen=True, slots=True)
class Latest:
    """What is read of errors before their rows are made."""

    seen: Mapping[str, datetime] = field(default_factory=dict)  # when a group failed last, by its fingerprint
    soonest: Mapping[tuple[str, str], Sequence[int]] = field(
        default_factory=dict
    )  # keys, by workflow and fingerprint


@dataclass(frozen=True, slots=True)
class Entry:
    """A group of errors without a row: its place, and what the headline says of it. There may be hundreds."""

    kind: str
    rank: Rank
    count: int
    since: datetime | None
    of: tuple[CurrentGroup, ...]
    make: Callable[[Latest], Group]
    next_at: datetime | None = None
    own_count: int = 0

    @property
    def address(self) -> str:
        return self.make(Latest()).address

    @property
    def shares(self) -> tuple[Share, ...]:
        return self.make(Latest()).shares


Block = tuple[Group | Entry, ...]  # a group, and its back-offs


def sort(blocks: Iterable[Block]) -> list[Group | Entry]:
    """Sort by severity; within a kind the larger, then the newer. Approvals: the first to expire."""
    return [group for block in sorted(blocks, key=lambda one: _place(one[0])) for group in block]


def cut(groups: Sequence[Group | Entry]) -> tuple[list[Group | Entry], list[Group | Entry]]:
    """Return the groups that are shown, and the others: no kind crowds out another."""
    shown, others = list[Group | Entry](), list[Group | Entry]()
    left = {"errors": SHOWN_ERRORS}
    for group in groups:
        kind = "errors" if group.kind in (*OF_ERRORS, "retrying") else group.kind
        room = left.setdefault(kind, SHOWN_OTHERS)
        (shown if room > 0 else others).append(group)
        left[kind] = room - 1
    return shown, others


def shares_of(pairs: Iterable[tuple[str, int]]) -> tuple[Share, ...]:
    """Add up by workflow, the most first."""
    counts: dict[str, int] = {}
    for workflow, count in pairs:
        counts[workflow] = counts[workflow] + count if workflow in counts else count
    return tuple(Share(name, n) for name, n in sorted(counts.items(), key=lambda one: (-one[1], one[0])))


def _place(group: Group | Entry) -> tuple[float, ...]:
    at = group.since.timestamp() if group.since else 0.0
    if group.rank in (Rank.EXPIRING, Rank.ASKING):
        soon = group.next_at.timestamp() if group.next_at else float("inf")
        return (group.rank, soon, -group.count, -at)
    return (group.rank, -group.count, -at)
