"""The boxes of open and closed requests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F

from engine.models import Event, Instance, OpenRequest, Step
from engine.status.among import STEPS, among
from engine.status.gathering import asking
from engine.steer import requests
from engine.steer.requests import Asked
from studio.access.permissions import Verb, allowed, may_answer
from studio.approvals.closed import latest_closed
from studio.approvals.entry import Entry, Given, closings_of, given

BOXES = ("mine", "open", "done")
SHOWN = 100
COUNTED = 100
_REF = re.compile(r"([0-9]{1,18})-([0-9]{1,9})-([0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class Box:
    """A box of the inbox. Open requests are sorted by expiry; `done` shows the latest first."""

    name: str
    entries: tuple[Entry, ...]
    is_cut: bool


def mine(user: Any) -> Any:
    """Return the open requests that this user was asked, or that any approver may answer."""
    return requests.put_to(requests.names_of(user), nobody=allowed(user, Verb.APPROVE, None))


def count_mine(user: Any) -> int:
    """Count those requests, up to 100."""
    nobody = allowed(user, Verb.APPROVE, None)
    return requests.count_put_to(requests.names_of(user), nobody=nobody, most=COUNTED)


def count_open() -> int:
    return requests.count_open(most=COUNTED)


def box_of(name: str, user: Any) -> Box:
    """Read a box."""
    if name == "done":
        return _done(user)
    rows = mine(user) if name == "mine" else requests.open_requests()
    found = list(rows.order_by(F("expires_at").asc(nulls_last=True), "opened_at")[: SHOWN + 1])
    steps = _steps((row.instance_id, row.generation, row.seq) for row in found[:SHOWN])
    return Box(name, tuple(entries(steps, user)), len(found) > SHOWN)


def _done(user: Any) -> Box:
    """Read requests that were answered, expired or withdrawn, including those that no worker has processed yet."""
    numbers = latest_closed(SHOWN + 1)
    return Box("done", tuple(entries(_steps(numbers[:SHOWN]), user)), len(numbers) > SHOWN)


def entry_of(ref: str, user: Any) -> Entry | None:
    """Read one request by its reference. Return None if there is none that this user may see."""
    found = _REF.fullmatch(ref)
    steps = _steps([(int(found[1]), int(found[2]), int(found[3]))]) if found else []
    seen = [step for step in steps if allowed(user, Verb.VIEW, step.instance.workflow)]
    return next(iter(entries(seen, user)), None)


def of_instance(instance: Instance, user: Any) -> list[Entry]:
    """Read the requests that an instance waits for, including one whose answer it has not processed yet."""
    rows = OpenRequest.objects.filter(instance_id=instance.key, generation=instance.generation)
    steps = _steps((row.instance_id, row.generation, row.seq) for row in rows.order_by("seq")[:SHOWN])
    return entries(steps, user) if not instance.is_finished else []


def entries(steps: Sequence[Step], user: Any) -> list[Entry]:
    """Return the entries for steps, with three queries in all."""
    open_ones = asking(step.instance_id for step in steps)
    given = _answers(steps)
    late = {step.pk for step in steps if step.status == "waiting" and step.pk not in open_ones}
    closings = closings_of(steps, late - {*given})
    made = []
    for step in steps:
        asked = Asked.of(step)
        made.append(
            Entry(
                instance=step.instance,
                step=step,
                may_answer=may_answer(asked, user, step.instance.workflow),
                given=given.get(step.pk),
                closing=closings.get(step.pk) if step.pk not in given else None,
            )
        )
    return made


def _steps(numbers: Iterable[tuple[int | None, int, int]]) -> list[Step]:
    """Read steps with their instances, in the given order."""
    wanted = list(numbers)
    if not wanted:
        return []
    rows = (
        Step.objects.filter(among(STEPS, wanted), kind="request")
        .select_related("instance")
        .defer("output", "error", "instance__params", "instance__output", "instance__error")
        .defer("instance__pause_reason")
    )
    found: Mapping[Any, Step] = {(row.instance_id, row.generation, row.seq): row for row in rows}
    return [found[number] for number in wanted if number in found]


def _answers(steps: Sequence[Step]) -> dict[tuple[int, int, int], Given]:
    keys = {(step.instance_id, requests.type_of(step)): step for step in steps}
    events = Event.objects.filter(
        instance_id__in={step.instance_id for step in steps}, dedup_key__in={key for _, key in keys}
    )
    return {
        (step.instance_id, step.generation, step.seq): given(event)
        for event in (events if steps else ())
        if (step := keys.get((event.instance_id, event.type))) is not None
    }
