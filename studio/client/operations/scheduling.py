"""Schedules."""

from __future__ import annotations

from studio.client import answers
from studio.client.call import Call, Pages, path_of, query_of
from studio.client.operations.making import PAGE, pages_of, post


def schedules(*, workflow: str | None = None) -> Pages[answers.Schedule]:
    """Iterate over the schedules, of all workflows or of one, in the order of their names."""
    return pages_of("/schedules", "schedules", workflow=workflow)


def schedules_page(
    *, workflow: str | None = None, limit: int = PAGE, cursor: str | None = None
) -> Call[answers.SchedulesPage]:
    """Return one page of schedules, with the time of the server and the cursor of the next page."""
    return Call("GET", "/schedules", query_of(workflow=workflow, limit=limit, cursor=cursor))


def pause_schedule(
    workflow: str, name: str, *, reason: str = "", idempotency_key: str | None = None
) -> Call[answers.Schedule]:
    """Pause a schedule: it starts nothing until it is resumed."""
    return post(_schedule(workflow, name, "pause"), {"reason": reason}, idempotency_key, part="schedule")


def resume_schedule(
    workflow: str, name: str, *, reason: str = "", idempotency_key: str | None = None
) -> Call[answers.Schedule]:
    """Resume a schedule at its next planned time."""
    return post(_schedule(workflow, name, "resume"), {"reason": reason}, idempotency_key, part="schedule")


def run_schedule(
    workflow: str, name: str, *, reason: str = "", idempotency_key: str | None = None
) -> Call[answers.Instance]:
    """Start an instance now, with the schedule's params."""
    return post(_schedule(workflow, name, "run"), {"reason": reason}, idempotency_key, part="instance")


def _schedule(workflow: str, name: str, action: str) -> str:
    return path_of("schedules", workflow, name, action)
