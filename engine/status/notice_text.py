"""The text of a notice: one line for the logger `reprise.instances`, and the arguments of a signal."""

from __future__ import annotations

import logging
from typing import Any

from django.utils.functional import SimpleLazyObject

from engine.declare.registry import Workflow, workflows
from engine.models import Instance, Notice, NoticeKind
from engine.values.states import AttemptPhase

MESSAGE_LENGTH = 1000  # in a line; the full text is stored with the instance

log = logging.getLogger("reprise.instances")

WARNINGS = (NoticeKind.ATTEMPT_LOST, NoticeKind.WORKER_RETIRED)

_ERROR = ("error_type", "error_message")
# The arguments of a signal in addition to `notice_id` and `at`, by the names of columns.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    NoticeKind.INSTANCE_ERRORED: ("workflow", "instance_id", "generation", "step", *_ERROR),
    NoticeKind.ROLLBACK_FAILED: ("workflow", "instance_id", "generation", "step", "count", *_ERROR),
    NoticeKind.INSTANCE_PAUSED: ("workflow", "instance_id", "generation", *_ERROR),
    NoticeKind.ATTEMPT_LOST: (
        "workflow",
        "instance_id",
        "generation",
        "step",
        "count",
        "attempt",
        "phase",
        "worker",
    ),
    NoticeKind.WORKER_RETIRED: ("worker", "reason"),
}


def write(notice: Notice) -> None:
    """Log the notice, with its parts as attributes of the log record."""
    level = logging.WARNING if notice.kind in WARNINGS else logging.ERROR
    log.log(level, "%s", line(notice), extra={"notice": notice.kind, **_plain(notice)})


def arguments(notice: Notice) -> dict[str, Any]:
    """Return the arguments of its signal's receivers, in addition to `signal` and `sender`."""
    key = notice.instance_key
    if key is None:
        return _plain(notice)
    return {**_plain(notice), "instance": SimpleLazyObject(lambda: Instance.objects.get(key=key))}


def sender(notice: Notice) -> Workflow[Any, Any] | None:
    """Return the workflow of the notice, if this process declares it."""
    return workflows.served.get(notice.workflow)


def line(notice: Notice) -> str:
    """Return the notice as one line."""
    name = f"{notice.workflow}/{notice.instance_id}"
    at_step = f" at step {_step(notice)}" if notice.step else ""
    match notice.kind:
        case NoticeKind.INSTANCE_ERRORED:
            return f"Instance {name} failed{at_step}{_error(notice)}"
        case NoticeKind.ROLLBACK_FAILED:
            return f"The rollback of instance {name} failed{at_step}{_error(notice)}"
        case NoticeKind.INSTANCE_PAUSED:
            return f"The engine paused instance {name}{_error(notice)}"
        case NoticeKind.ATTEMPT_LOST:
            of = "the rollback of step" if notice.phase == AttemptPhase.ROLLBACK else "step"
            attempt = f"Attempt {notice.attempt} of {of} {_step(notice)} of instance {name}"
            return f"{attempt} was lost: worker {notice.worker} died, or lost the instance"
        case _:
            return f"Worker {notice.worker} was retired{_error(notice)}"


def _plain(notice: Notice) -> dict[str, Any]:
    named = {name: getattr(notice, name) for name in ARGUMENTS[notice.kind]}
    return {"notice_id": notice.key, "at": notice.at, **named}


def _step(notice: Notice) -> str:
    return f'"{notice.step}"' if notice.count == 1 else f'"{notice.step}" #{notice.count}'


def _error(notice: Notice) -> str:
    message = " ".join((notice.reason or notice.error_message).split())
    if len(message) > MESSAGE_LENGTH:
        message = f"{message[:MESSAGE_LENGTH]}…"
    text = ": ".join(part for part in (notice.error_type, message) if part)
    return f": {text}" if text else ""
