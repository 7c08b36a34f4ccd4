"""The rows of the list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from engine.models import Failure
from engine.status import failures
from engine.status.failures import FailureGroup
from studio.display.bars import SmallBars, small_bars
from studio.errors.address import ErrorAddress, ListAddress
from studio.errors.days import days_of
from studio.instances.visibility import workflows_of_user

PAGE = 50
LONGEST_TITLE = 200


@dataclass(frozen=True, slots=True)
class Row:
    """A group, as the list shows it."""

    group: FailureGroup
    title: str
    address: str
    others: tuple[str, ...]  # workflows with the same error
    days: tuple[int, ...]

    @property
    def bars(self) -> SmallBars:
        return small_bars(self.days)

    @property
    def days_text(self) -> str:
        return ", ".join(map(str, self.days))


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the list, and the cursor of the next one; empty after the last."""

    rows: list[Row]
    older: str
    has_any: bool = True  # of any state, with any search


def page_of(asked: ListAddress, user: Any, shown: Sequence[str] = ()) -> Page:
    """Read a page. Groups that the page shows already keep their order; new ones come before them."""
    workflows = workflows_of_user(user)
    found = failures.groups(
        workflows=workflows,
        workflow=asked.workflow or None,
        state=asked.state,
        query=asked.query,
        limit=PAGE,
        after=asked.after or None,
    )
    groups = _in_place(found.groups, shown)
    others = _others(groups, workflows)
    days = days_of([group.fingerprint for group in groups], timezone.now()) if groups else {}
    rows = [
        Row(
            group,
            title_of(group),
            ErrorAddress(group.fingerprint, asked.workflow).url(),
            tuple(name for name in others.get(group.kin, ()) if name != group.workflow),
            tuple(days[group.fingerprint]),
        )
        for group in groups
    ]
    return Page(rows, found.next or "", has_any=bool(rows) or _has_any(workflows))


def title_of(group: FailureGroup) -> str:
    """Return the first line of the latest message, or else the error's class."""
    return first_line(group.sample or group.message) or group.type


def first_line(text: str) -> str:
    lines = text.strip().splitlines()
    line = lines[0].strip() if lines else ""
    return line if len(line) <= LONGEST_TITLE else f"{line[: LONGEST_TITLE - 1]}…"


def _in_place(groups: Sequence[FailureGroup], shown: Sequence[str]) -> list[FailureGroup]:
    """Sort groups as the page shows them: a row that fails again does not jump to the top."""
    if not shown:
        return list(groups)
    places = {fingerprint: at for at, fingerprint in enumerate(shown)}
    new = [group for group in groups if group.fingerprint not in places]
    kept = [group for group in groups if group.fingerprint in places]
    new.sort(key=lambda group: (group.first_seen, group.fingerprint), reverse=True)
    return [*new, *sorted(kept, key=lambda group: places[group.fingerprint])]


def _has_any(workflows: list[str] | None) -> bool:
    return bool(failures.groups(workflows=workflows, state="", limit=1).groups)


def _others(groups: Sequence[FailureGroup], workflows: list[str] | None) -> dict[str, list[str]]:
    """Return the workflows of each error, those that may be seen."""
    rows = Failure.objects.filter(kin__in={group.kin for group in groups})
    if workflows is not None:
        rows = rows.filter(workflow__in=workflows)
    found: dict[str, list[str]] = {}
    for kin, workflow in rows.values_list("kin", "workflow").order_by("workflow").distinct():
        found.setdefault(kin, []).append(workflow)
    return found
