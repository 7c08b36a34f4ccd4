"""Find the instances that a bulk job is to change, as programs name them: by workflow and id."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db import connection

from engine.jobs.selection import check_size
from engine.models import Instance
from engine.values.errors import InstanceNotFoundError
from engine.values.system import NOT_SYSTEM

_NAMED = f"""
    SELECT given.workflow, given.id, i.key FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY
        AS given (workflow, id, position)
    LEFT JOIN engine_instance i ON i.workflow = given.workflow AND i.id = given.id AND i.{NOT_SYSTEM}
    ORDER BY given.position
"""  # noqa: S608 - a constant of ours


def named(names: Sequence[tuple[str, str]], workflows: Collection[str] | None = None) -> list[Instance]:
    """Return these instances, with nothing but their keys; `workflows` are those that may be touched, None: all.

    Raises LimitError, and InstanceNotFoundError for the first that does not exist or may not be touched: a job changes
    all that was named, or is not started.
    """
    check_size(len(names))
    with connection.cursor() as cursor:
        cursor.execute(_NAMED, [[workflow for workflow, _ in names], [name for _, name in names]])
        found = cursor.fetchall()
    for workflow, name, key in found:
        if key is None or (workflows is not None and workflow not in workflows):
            raise InstanceNotFoundError(workflow, name)
    return [Instance(key=key, workflow=workflow, id=name) for workflow, name, key in found]
