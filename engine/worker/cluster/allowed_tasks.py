"""The functions that rows of django-q's schedules may call.

A row of `django_q_schedule` is an unsigned dotted name with arguments: anyone who can write to the database chooses
what a worker runs. The setting TASKS of REPRISE, a list of patterns such as `shop.tasks.*`, limits the choice to those
functions and the engine's own. Without it, every function may be called, as in django-q.

Tasks queued by code with `async_task` are signed with SECRET_KEY; the list does not apply to them.
"""

from __future__ import annotations

import hashlib
import logging
import pydoc
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import django_q.scheduler
from django.utils import timezone
from django_q.models import Task
from django_q.tasks import async_task

from engine.configuration import setting

logger = logging.getLogger("engine.cluster")

OURS = "engine.*"


def guard() -> None:
    """Make django-q's scheduler obey the list. Called in every process that loads the engine."""
    django_q.scheduler.async_task = _queue


def is_allowed(function: object, patterns: Sequence[str] | None) -> bool:
    """Return whether a schedule may call the function with that dotted name.

    Both the name and the module that defines its target must match: `shop.tasks.os.system` is a system function,
    through whatever name it is reached.
    """
    if patterns is None:
        return True
    if not (isinstance(function, str) and _fits(function, patterns)):
        return False
    try:
        found = pydoc.locate(function)
    except pydoc.ErrorDuringImport:
        found = None
    # Nothing has that name: the task fails with an error, like any other with a mistyped name.
    return found is None or _fits(_defined_at(found), patterns)


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in (OURS, *patterns))


def _defined_at(found: object) -> str:
    named = found if hasattr(found, "__qualname__") else type(found)
    return f"{getattr(named, '__module__', None)}.{getattr(named, '__qualname__', None)}"


def _queue(func: object, *args: Any, **kwargs: Any) -> str:
    """Replace `async_task` in the scheduler. Return the task's id."""
    patterns = setting("TASKS")
    for function in _called(func, kwargs):
        if not is_allowed(function, patterns):
            return _refuse(func, function, kwargs)
    queued: str = async_task(func, *args, **kwargs)
    return queued


def _called(func: object, kwargs: Mapping[str, Any]) -> Iterator[object]:
    """Yield what django-q calls for a schedule: the function, its hook, and the functions of its chain."""
    yield func
    for options in (kwargs, kwargs.get("q_options") or {}):
        if options.get("hook") is not None:
            yield options["hook"]
        chain = options.get("chain") or ()
        for link in chain if isinstance(chain, (tuple, list)) else [chain]:
            yield link[0] if isinstance(link, (tuple, list)) and link else link


def _refuse(func: object, function: object, kwargs: Mapping[str, Any]) -> str:
    """Log the refusal and store a failed task: one per schedule, however often it is due."""
    schedule = str(kwargs["q_options"].get("group"))
    reason = (
        f'The schedule "{schedule}" may not call {function}: REPRISE["TASKS"] does not include it. '
        "Add it there, or delete the schedule."
    )
    logger.error(reason)
    key = hashlib.sha256(f"{schedule}\0{func}".encode()).hexdigest()[:32]
    now = timezone.now()
    # Written without reading the existing row: reading a Task unpickles it.
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
