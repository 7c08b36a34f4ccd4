"""The paths whose values are kept in an index."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from engine.models import IndexedPath


@dataclass(frozen=True, slots=True)
class Indexed:
    """A path of a workflow, in full: `params.customer.id` or `output.total`.

    Its values are the rows of `engine_searchvalue` with this `path_id`. Unless it is complete, instances may be missing
    there that have a value.
    """

    workflow: str
    path: str
    key: int
    is_complete: bool


def indexed(workflows: Collection[str] | None = None) -> list[Indexed]:
    """Return the indexed paths of these workflows, or of all, ordered by workflow and path."""
    rows = IndexedPath.objects.filter(is_declared=True)
    if workflows is not None:
        rows = rows.filter(workflow__in=workflows)
    found = rows.order_by("workflow", "path").values_list("workflow", "path", "key", "is_complete")
    return [Indexed(*one) for one in found]
