"""What is read of the errors that are shown only: messages, the last hour, next attempts, what is common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from engine.status import failures
from engine.status.failures import NextAttempt
from engine.status.failures.recent import BARS
from engine.status.holds import PausedWorkflow
from engine.status.sentences.sentence import Moment, Sentence
from studio.access.permissions import Verb, allowed
from studio.bulk.address import retry_address
from studio.errors.common import common_of
from studio.errors.groups import first_line
from studio.home.group import Group, Hour, Rank
from studio.workflows.pauses import Pauses

COMPARED = 200  # instances on each side
LEAST = 5  # instances: fewer have something in common by chance
TOLD, TOLD_MORE = 80, 20  # per cent of the instances, and points above the usual share
OF_ERRORS = ("errored", "rollback")


def with_details(groups: Sequence[Group], now: datetime) -> list[Group]:
    """Return the groups with their details, for any number of them with six queries at most and those of `shares`."""
    errored = [one for group in groups if group.kind in OF_ERRORS for one in group.fingerprints]
    retrying = [one for group in groups if group.kind == "retrying" for one in group.fingerprints]
    hours = failures.last_hour(errored, retrying, now) if errored or retrying else {}
    nexts = failures.next_attempts([key for group in groups for key in group.soonest])
    messages = failures.latest_messages([group.error for group in groups if group.where])
    ids = failures.ids_of([group.only_key for group in groups if group.only_key is not None])
    return [_detailed(_named(group, messages.get(group.error, ""), ids), hours, nexts) for group in groups]


def with_actions(
    groups: Sequence[Group], paused: Sequence[PausedWorkflow], user: Any, back: str, *, own: str = ""
) -> list[Group]:
    """Return the groups; an error in the first place is the leading one, with what its instances have in common.

    The workflows of the worst error that goes on can be paused. `paused` are those that are, and `back` is the page to
    come back to. Errors of several instances can be retried; `own` is the person whose instances the groups are of.
    """
    found = list(groups)
    if found and found[0].kind in OF_ERRORS and found[0].fingerprints:
        found[0] = replace(found[0], is_leading=True, line=(*found[0].line, *_in_common(found[0])))
    for at, group in enumerate(found):
        if group.rank == Rank.GROWING and group.kind in OF_ERRORS:
            found[at] = _with_pause(group, paused, user, back)
            break
    return [_with_retry(group, user, back, own) for group in found]


def _with_retry(group: Group, user: Any, back: str, own: str) -> Group:
    if group.kind not in (*OF_ERRORS, "retrying") or group.is_of_one:
        return group
    status = "retrying" if group.kind == "retrying" else "errored"
    return replace(
        group,
        retry_address=retry_address(group.fingerprints, status, by=own, back=back),
        may_retry=all(allowed(user, Verb.OPERATE, share.workflow) for share in group.shares),
        is_well=group.is_leading and failures.recovered(group.fingerprints, most=1) is not None,
    )


def _with_pause(group: Group, paused: Sequence[PausedWorkflow], user: Any, back: str) -> Group:
    names = tuple(share.workflow for share in group.shares)
    pauses = Pauses(names, tuple(one for one in paused if one.name in names), back)
    return replace(
        group,
        line=(*group.line, *_paused(pauses)),
        pauses=pauses if pauses.active else None,
        may_pause=all(allowed(user, Verb.OPERATE, name) for name in names),
    )


def _paused(pauses: Pauses) -> Iterator[Sentence]:
    paused, of = len(pauses.paused), len(pauses.names)
    if paused:
        yield ("paused" if of == 1 else f"all {of} paused" if paused == of else f"{paused} of {of} paused",)


def _named(group: Group, message: str, ids: Mapping[int, str]) -> Group:
    """Return a group with the latest message of its error in its title, and with the id of its only instance."""
    said = first_line(message) if group.where else ""
    title = f"{group.where}: {said}" if said else group.title
    return replace(group, title=title, only=ids.get(group.only_key or 0, group.only))


def _detailed(
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
