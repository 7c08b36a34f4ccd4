"""Which instances a bulk job is about: a search, as in the list, or instances that are named."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection

from engine.models import Instance
from engine.status.searching.searching import scope_of
from engine.values.argument import Argument
from engine.values.errors import InvalidValueError, LimitError
from engine.values.query.parsing import parsed
from engine.values.system import NOT_SYSTEM

MOST_INSTANCES = 100_000

# At most one more than allowed is looked for. Instances of bulk jobs themselves are never chosen.
_CHOSEN = f"""
    SELECT i.* FROM engine_instance i JOIN (
        SELECT found.key FROM ([selection]) AS found (key) ORDER BY found.key LIMIT {MOST_INSTANCES + 1}
    ) AS chosen ON chosen.key = i.key
    WHERE i.{NOT_SYSTEM}
"""  # noqa: S608 - constants of ours


@dataclass(frozen=True, slots=True)
class Selection:
    """Instances, as a query for their rows. `text` is the search that finds them, or empty."""

    text: str
    sql: str
    params: tuple[Any, ...]


def selected(
    query: str | None, instances: Iterable[Instance] | None, workflows: Collection[str] | None
) -> Selection:
    """Return what was asked for; `workflows` are those that may be touched, None: all.

    Raises InvalidQueryError, InvalidValueError and LimitError.
    """
    if (query is None) == (instances is None):
        raise TypeError("Pass either query= or instances=.")
    if query is not None:
        return _searched(query, workflows)
    keys = sorted({one.key for one in instances or ()})
    check_size(len(keys))
    params: list[Any] = [keys]
    statement = "SELECT key FROM engine_instance WHERE key = ANY (%s)"
    if workflows is not None:
        statement += " AND workflow = ANY (%s)"
        params.append([*workflows])
    return _selection("", statement, params)


def check_size(count: int) -> None:
    """Raise LimitError for too many instances."""
    if count > MOST_INSTANCES:
        advice = "Narrow the search, for example to one workflow, and start several jobs."
        raise LimitError("number of instances", count, MOST_INSTANCES, advice=advice)


def _searched(text: str, workflows: Collection[str] | None) -> Selection:
    with Argument("query"):
        if not text.strip():
            rule = "An empty search would find all instances. Write one, such as status:errored."
            raise InvalidValueError("$", "empty", rule, what="search", problem="is not valid")
        query = parsed(text)
    rows = scope_of(query, workflows).rows.order_by().values_list("key")
    try:
        statement, params = rows.query.get_compiler(connection=connection).as_sql()
    except EmptyResultSet:
        statement, params = "SELECT 0::bigint WHERE false", ()
    return _selection(text, statement, params)


def _selection(text: str, statement: str, params: Iterable[Any]) -> Selection:
    return Selection(text, _CHOSEN.replace("[selection]", statement), tuple(params))
