"""Make the index as the code declares it: what `manage.py workflow index` does."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from django.db.models import Count

from engine.declare.registry import workflows
from engine.models import SearchValue
from engine.steer.indexing import filling, paths, removal
from engine.steer.indexing.filling import Progress
from engine.steer.indexing.removal import Removed
from engine.steer.indexing.writers import Waiting


def update(only: Collection[str] | None = None) -> Iterator[Progress | Removed | Waiting]:
    """Remove undeclared paths, add declared ones and fill them, of these workflows or of all. Report on the way.

    It may be stopped at any time, and continues when it is called again. To be called outside of a transaction.
    """
    yield from removal.remove(only)
    names = [name for name in workflows if only is None or name in only]
    paths.add(names)
    for name in names:
        yield from filling.fill(name, paths.declared([name]))


def counts(keys: Collection[int]) -> dict[int, int]:
    """Return how many instances have something at each of these paths, by its key."""
    rows = SearchValue.objects.filter(path__in=keys).values("path_id").annotate(count=Count("*"))
    return {row["path_id"]: row["count"] for row in rows}
