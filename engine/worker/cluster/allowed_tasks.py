"""Which functions a row of django-q's schedules may call.

A row of `django_q_schedule` is a dotted name and its arguments, unsigned: whoever can write to the database chooses
what a worker runs. With the setting REPRISE_TASKS, a list of patterns such as `shop.tasks.*`, the choice is among those
functions and the engine's own. Without the setting every function may be called, as django-q has it.

Tasks that code queues with `async_task` are signed with SECRET_KEY and are not held to the list.
"""

from __future__ import annotations

import hashlib
import logging
import pydoc
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import django_q.scheduler
from django.conf import settings
from django.utils import timezone
from django_q.models import Task
from django_q.tasks import async_task

logger = logging.getLogger("engine.cluster")

OURS = "engine.*"


def guard() -> None:
    """Hold django-q's scheduler to the list. Called in every process that loads the engine."""
    django_q.scheduler.async_task = _queue


def is_allowed(function: object, patterns: Sequence[str] | None) -> bool:
    """Return whether a schedule may call the function of that dotted name.

    The name has to fit, and so does the place where what it leads to is defined: `shop.tasks.os.system` is a function
    of the system, whatever it is reached through.
    """
    if patterns is None:
        return True
    if not (isinstance(function, str) and _fits(function, patterns)):
        return False
    try:
        found = pydoc.locate(function)
    except pydoc.ErrorDuringImport:
        found = None
    # Nothing is there: the task fails, and says so, as any other with a mistyped name.
    return found is None or _fits(_defined_at(found), patterns)


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in (OURS, *patterns))


def _defined_at(found: object) -> str:
    named = found if hasattr(found, "__qualname__") else type(found)
    return f"{getattr(named, '__module__', None)}.{getattr(named, '__qualname__', None)}"


def _queue(func: object, *args: Any, **kwargs: Any) -> str:
    """Stand in for `async_task` in the scheduler. Returns the task's id."""
    patterns = getattr(settings, "REPRISE_TASKS", None)
    for function in _called(func, kwargs):
        if not is_allowed(function, patterns):
            return _refuse(func, function, kwargs)
    queued: str = async_task(func, *args, **kwargs)
    return queued


def _called(func: object, kwargs: Mapping[str, Any]) -> Iterator[object]:
    """Yield what django-q will call for a schedule: the function, its hook, and those of its chain."""
    yield func
    for options in (kwargs, kwargs.get("q_options") or {}):
        if options.get("hook") is not None:
            yield options["hook"]
        chain = options.get("chain") or ()
        for link in chain if isinstance(chain, (tuple, list)) else [chain]:
            yield link[0] if isinstance(link, (tuple, list)) and link else link


def _refuse(func: object, function: object, kwargs: Mapping[str, Any]) -> str:
    """Say it, and leave a failed task: one for each schedule, however often its time comes."""
    schedule = str(kwargs["q_options"].get("group"))
    reason = (
        f'The schedule "{schedule}" may not call {function}: the setting REPRISE_TASKS does not name it. '
        "Add it there, or delete the schedule."
    )
    logger.error(reason)
    key = hashlib.sha256(f"{schedule}\0{func}".encode()).hexdigest()[:32]
    now = timezone.now()
    # Written without a look at what stands there: reading a Task unpickles it.
    Task(
        id=key,
        name=f"refused: {schedule}"[:100],
        func=str(func)[:256],
        group=schedule[:100],
        started=now,
        stopped=now,
        success=False,
        result=reason,
    ).save()
    return key
