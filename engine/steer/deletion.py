"""Delete finished instances with everything they recorded. The audit trail stays."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from django.db import connection, transaction

from engine.declare.batches import DeletedMany, DeleteError
from engine.declare.registry import Workflow
from engine.models import Instance
from engine.steer import audit, notify, relations, sql
from engine.steer.lifecycle import lock
from engine.values import between_steps
from engine.values.errors import (
    InstanceNeededError,
    InstanceNotFinishedError,
    InstanceNotFoundError,
    InvalidNameError,
    LimitError,
    RepriseError,
)
from engine.values.identity import check_instance_id
from engine.values.states import Action, allows

MAX_AT_ONCE = 100  # instances


def delete(instance: Instance, *, by: object = None, reason: str = "") -> None:
    """Delete a finished instance. Its children and its audit trail stay.

    Raises InstanceNotFinishedError, InstanceNotFoundError, and InstanceNeededError while its parent, or another
    instance that waits for it, has not received its outcome; then nothing is changed.
    """
    between_steps.refuse("delete")
    cause = audit.Cause.of(by, reason)
    with transaction.atomic():
        _delete(lock(instance), cause)


def delete_many(
    workflow: Workflow[Any, Any], ids: Iterable[str], *, by: object = None, reason: str = ""
) -> DeletedMany:
    """Delete up to 100 finished instances of a workflow. Those that cannot be deleted are reported, not fatal.

    Raises LimitError for more, or for no ids, and InvalidNameError for an invalid id; then nothing is deleted.
    """
    between_steps.refuse("delete_many")
    cause = audit.Cause.of(by, reason)
    wanted = _checked(ids)
    with transaction.atomic():
        problems = _delete_all(workflow, set(wanted), cause)
    errors = [
        DeleteError(index=index, id=one, code=_CODES[type(problems[one])], message=str(problems[one]))
        for index, one in enumerate(wanted)
        if one in problems
    ]
    return DeletedMany([one for one in wanted if one not in problems], errors)


def remove(keys: Collection[int]) -> None:
    """Delete the rows of instances that the caller has locked, and that are finished and not needed by others."""
    with connection.cursor() as cursor:
        cursor.execute(sql.REMOVE, {"keys": [*keys]})


def _checked(ids: Iterable[str]) -> list[str]:
    if isinstance(ids, str):  # a string would be read as one id per character
        raise InvalidNameError("a list of ids", ids, "Pass a list, even for a single id.")
    wanted = list[str]()
    for count, one in enumerate(ids, start=1):
        if count > MAX_AT_ONCE:
            raise LimitError("number of ids", count, MAX_AT_ONCE, advice="Delete them in several calls.")
        wanted.append(check_instance_id(one))
    if not wanted:
        raise LimitError("number of ids", 0, MAX_AT_ONCE, advice="Pass at least one.")
    return wanted


def _delete_all(
    workflow: Workflow[Any, Any], ids: Collection[str], cause: audit.Cause
) -> dict[str, RepriseError]:
    """Delete what can be deleted; return by id why the others were not."""
    # In one statement and in the order of their keys, as everywhere, so that two such calls cannot deadlock.
    rows = Instance.objects.select_for_update(no_key=True).defer("params", "output", "error")
    found = list(rows.filter(workflow=workflow.name, id__in=ids).order_by("key"))
    problems: dict[str, RepriseError] = {
        one: InstanceNotFoundError(workflow.name, one) for one in set(ids) - {row.id for row in found}
    }
    for row in found:
        try:
            _delete(row, cause)
        except (InstanceNotFinishedError, InstanceNeededError) as problem:
            problems[row.id] = problem
    return problems


def _delete(row: Instance, cause: audit.Cause) -> None:
    if not allows(Action.DELETE, row.status):
        raise InstanceNotFinishedError(row.workflow, row.id, row.status)
    _refuse_if_any(row, sql.NEEDED_BY)
    if row.notify_pending:
        relations.settle(row.key)
        # A child that another session has locked would never learn that it must end.
        _refuse_if_any(row, relations.ORPHAN_OF)
    audit.write(Action.DELETE, [row], cause, before=row.status)
    remove([row.key])
    notify.tell(changed=[row.key])


def _refuse_if_any(row: Instance, which: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(which, {"key": row.key})
        found = cursor.fetchone()
    if found is not None:
        raise InstanceNeededError(row.workflow, row.id, *found)


_CODES: dict[type[RepriseError], str] = {
    InstanceNotFoundError: "not_found",
    InstanceNotFinishedError: "not_finished",
    InstanceNeededError: "needed",
}
