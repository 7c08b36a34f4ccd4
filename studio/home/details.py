"""What is read of the errors that are shown only: messages, the last hour, next attempts, what is common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from engine.status import failures
from engine.status.failures import NextAttempt
from engine.status.failures.recent import BARS
from engine.status.sentences.sentence import Moment, Sentence
from studio.errors.common import common_of
from studio.errors.groups import first_line
from studio.home.group import OF_ERRORS, Block, Entry, Group, Hour, Latest, cut, sort

COMPARED = 200  # instances on each side
LOOKED_AT = 50  # instances of a workflow in each status: whether the step succeeds again
LEAST = 5  # instances: fewer have something in common by chance
TOLD, TOLD_MORE = 80, 20  # per cent of the instances, and points above the usual share


def with_details(blocks: Iterable[Block], now: datetime, *, person: str | None = None) -> tuple[Block, ...]:
    """Return the blocks, with the rows of what is shown of them, and their details.

    For any number of them with nine queries at most and those of `shares`. An error in the first place is the leading
    one, with what its instances have in common; no approval comes before it. `person`: whose instances they are.
    """
    found = tuple(blocks)
    shown, _ = cut(sort(found))
    rows = {id(one): row for one, row in zip(shown, _detailed(_made(shown, person), now), strict=True)}
    return tuple(tuple(rows.get(id(one), one) for one in block) for block in found)


def _made(shown: Sequence[Group | Entry], person: str | None) -> list[Group]:
    groups = [group for one in shown if isinstance(one, Entry) for group in one.of]
    waiting = [
        (group.workflow, group.fingerprint)
        for one in shown
        if isinstance(one, Entry) and one.kind == "retrying"
        for group in one.of
    ]
    latest = Latest(
        failures.last_seen({group.fingerprint for group in groups if group.fingerprint}),
        failures.soonest(waiting, person=person),
    )
    return [one.make(latest) if isinstance(one, Entry) else one for one in shown]


def _detailed(groups: Sequence[Group], now: datetime) -> list[Group]:
    errored = [one for group in groups if group.kind in OF_ERRORS for one in group.fingerprints]
    retrying = [one for group in groups if group.kind == "retrying" for one in group.fingerprints]
    hours = failures.last_hour(errored, retrying, now) if errored or retrying else {}
    nexts = failures.next_attempts([key for group in groups for key in group.soonest])
    messages = failures.latest_messages([group.error for group in groups if group.where])
    ids = failures.ids_of([group.only_key for group in groups if group.only_key is not None])
    found = [_with_hour(_named(group, messages.get(group.error, ""), ids), hours, nexts) for group in groups]
    if found and found[0].kind in OF_ERRORS and found[0].fingerprints:
        found[0] = _leading(found[0])
    return found


def _leading(group: Group) -> Group:
    is_well = (
        not group.is_of_one
        and failures.recovered(group.fingerprints, most=1, looked_at=LOOKED_AT) is not None
    )
    return replace(group, is_leading=True, is_well=is_well, line=(*group.line, *_in_common(group)))


def _named(group: Group, message: str, ids: Mapping[int, str]) -> Group:
    """Return a group with the latest message of its error in its title, and with the id of its only instance."""
    said = first_line(message) if group.where else ""
    title = f"{group.where}: {said}" if said else group.title
    return replace(group, title=title, only=ids.get(group.only_key or 0, group.only))


def _with_hour(
    group: Group, hours: dict[tuple[str, bool], tuple[int, ...]], nexts: dict[int, NextAttempt]
) -> Group:
    if group.kind not in (*OF_ERRORS, "retrying"):
        return group
    backs_off = group.kind == "retrying"
    bars = [hours.get((one, backs_off), (0,) * BARS) for one in group.fingerprints]
    counts = [sum(column) for column in zip(*bars, strict=True)]
    if not backs_off:
        return replace(group, hour=Hour(group.hour.words, Hour.of(0, counts).bars))
    soonest = [nexts[key] for key in group.soonest if key in nexts]
    began = min((one.failed_at for one in soonest if one.failed_at), default=None)
    return replace(group, hour=Hour.of(sum(counts), counts), since=began, line=_next(group, soonest))


def _next(group: Group, soonest: Sequence[NextAttempt]) -> tuple[Sentence, ...]:
    if group.next_at is None:
        return ()
    which = f"attempt {soonest[0].number}" if soonest else "the next attempt"
    of = f" of {soonest[0].of}" if soonest and soonest[0].of else ""
    return ((f"{which}{of} starts by itself at ", Moment("minute", group.next_at)),)


def _in_common(group: Group) -> tuple[Sentence, ...]:
    if group.count < LEAST:
        return ()
    for one in common_of(group.fingerprints, most=COMPARED):
        if one.percent >= TOLD and one.usual is not None and one.percent - one.usual >= TOLD_MORE:
            return ((f"{one.percent} % have {one.what.removeprefix('params.')} = {one.value}",),)
    return ()
