"""The headline: whether the workers are the reason why something waits. Pure: plain data in, sentences out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.values.durations import format_duration
from studio.display.at_least import AtLeast
from studio.workers.clusters import Cluster, Line
from studio.workers.waiting import Waiting

SOON = timedelta(seconds=30)  # for so long, something may wait though slots are free


@dataclass(frozen=True, slots=True)
class Fact:
    """A further fact, with the row that it is about."""

    subject: str
    text: str
    target: str


@dataclass(frozen=True, slots=True)
class Headline:
    """The sentence. `look` is the status that gives its color."""

    text: str
    look: str
    facts: tuple[Fact, ...] = ()


def headline(
    clusters: Sequence[Cluster] | None,
    queues: Sequence[Waiting] | None,
    now: datetime,
    *,
    is_starting: bool = False,
) -> Headline:
    """Return the most serious true sentence. What could not be read is None."""
    if clusters is None:
        return Headline("Whether the workers are up could not be read.", "retrying")
    lines = [line for cluster in clusters for line in cluster.lines]
    text, look = _worst(lines, queues or (), now, is_starting=is_starting, knows_queues=queues is not None)
    return Headline(text, look, tuple(_facts(clusters, lines, queues or (), text)))


def _worst(
    lines: Sequence[Line], queues: Sequence[Waiting], now: datetime, *, is_starting: bool, knows_queues: bool
) -> tuple[str, str]:
    # Those at their limit wait for each other, not for a worker.
    waiting = [one for one in queues if one.count and not one.is_at_limit]
    total = sum(one.count for one in waiting)
    wait = f"{many(total, 'instance')} {'waits' if total == 1 else 'wait'}"
    if not lines:
        if is_starting:
            return "Workers are starting.", "retrying"
        end = f" {wait}." if total else ""
        return f"No worker is running, so no workflow runs.{end}", "errored"
    silent = [line for line in lines if line.state == "silent"]
    living = [line for line in lines if line.state != "silent"]
    if not living:
        return f"{_all(len(lines), 'worker')} {'is' if len(lines) == 1 else 'are'} silent.", "errored"
    taking = [line for line in living if line.state != "draining"]
    if not taking:
        return f"{_all(len(living), 'worker')} {_is(living)} draining, so nothing new begins.", "retrying"
    unserved = [one for one in waiting if not one.is_served]
    if unserved:
        return f"No worker serves {_names(unserved)}, so {_waits(unserved)}.", "errored"
    if silent:
        return f"{len(silent)} of {many(len(lines), 'worker')} {_is(silent)} silent.", "errored"
    slots, busy = sum(one.process.slots for one in taking), sum(one.busy for one in taking)
    if busy >= slots and total:
        return f"{_all(slots, 'slot')} {'is' if slots == 1 else 'are'} busy, and {wait}.", "retrying"
    late = [one for one in waiting if one.oldest_at is not None and now - one.oldest_at > SOON]
    if late:
        since = format_duration(now - min(one.oldest_at for one in late if one.oldest_at is not None))
        return f"{busy:,} of {slots:,} slots are busy, but {wait}, the oldest for {since}.", "retrying"
    return _well(len(taking), busy, slots, queues, is_idle=knows_queues and not total)


def _well(
    workers: int, busy: int, slots: int, queues: Sequence[Waiting], *, is_idle: bool
) -> tuple[str, str]:
    paused = sum(one.paused for one in queues)
    are = f"{_all(workers, 'worker')} {'is' if workers == 1 else 'are'} up"
    if is_idle and paused and not busy:
        held = f"{many(paused, 'instance')} {'is' if paused == 1 else 'are'} held by a pause"
        return f"Nothing waits for a worker; {held}.", "complete"
    if is_idle and not busy:
        return f"{are}, and nothing waits.", "complete"
    return f"{are}; {busy:,} of {slots:,} slots {'is' if busy == 1 else 'are'} busy.", "complete"


def _facts(
    clusters: Sequence[Cluster], lines: Sequence[Line], queues: Sequence[Waiting], said: str
) -> Iterator[Fact]:
    for state, word in (("silent", "silent"), ("late", "late")):
        found = [line for line in lines if line.state == state]
        if found and f"{word}." not in said:
            yield Fact(
                many(len(found), "heartbeat"), f"{_is(found)} {word}", f"worker-{found[0].process.key}"
            )
    older = [line for line in lines if line.is_older]
    if older:
        runs = "runs" if len(older) == 1 else "run"
        yield Fact(many(len(older), "worker"), f"{runs} older code", f"worker-{older[0].process.key}")
    draining = [line for line in lines if line.state == "draining"]
    if draining and "draining" not in said:
        yield Fact(
            many(len(draining), "worker"),
            f"{_is(draining)} draining",
            f"worker-{draining[0].process.key}",
        )
    for one in queues:
        full = [cluster for cluster in clusters if cluster.name in one.clusters]
        if (
            one.count
            and full
            and all(cluster.is_full for cluster in full)
            and "slots are busy, and" not in said
        ):
            yield Fact(one.workflow, "waits: its workers have no free slot", one.row_id)
            break  # the oldest


def many(count: int, one: str) -> str:
    """Return a number with its noun."""
    return f"{number(count)} {one}{'' if count == 1 else 's'}"


def number(count: int) -> str:
    """Return a count with separators; one that reached its cap ends in a plus sign."""
    return str(count) if isinstance(count, AtLeast) else f"{count:,}"


def _all(count: int, one: str) -> str:
    return f"The only {one}" if count == 1 else f"All {count:,} {one}s"


def _is(found: Sequence[object]) -> str:
    return "is" if len(found) == 1 else "are"


def _names(found: Sequence[Waiting]) -> str:
    rest = f" and {many(len(found) - 1, 'other workflow')}" if len(found) > 1 else ""
    return f"{found[0].workflow}{rest}"


def _waits(found: Sequence[Waiting]) -> str:
    total = sum(one.count for one in found)
    return f"{many(total, 'instance')} {'waits' if total == 1 else 'wait'}"
