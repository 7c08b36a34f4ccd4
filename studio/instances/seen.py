"""What the newest instances hold: names, paths and values to suggest while somebody types a search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db import connection

from engine.declare.registry import workflows as registry
from engine.values.serialization import Unreadable, decode
from engine.values.serialization.envelope import is_envelope
from engine.values.states import InstanceStatus
from studio.instances.columns import Path

NEWEST = 40  # instances whose values are read
LARGEST = 16_384  # bytes of the values that are read; larger ones are passed over
RECENT = 300  # instances whose names are read
PATHS, DEEPEST, ITEMS = 300, 5, 3
LONGEST_VALUE = 60

# One descent of the index (workflow, status, key) for each pair. Asked more plainly, the planner would walk the newest
# rows of all workflows to find those of a rare one.
_KEYS = """
SELECT newest.key
  FROM unnest(%s::text[]) AS name(workflow) CROSS JOIN unnest(%s::text[]) AS state(status)
 CROSS JOIN LATERAL (
       SELECT i.key FROM engine_instance i
        WHERE (i.workflow, i.status) >= (name.workflow, state.status)
          AND (i.workflow, i.status) <= (name.workflow, state.status)
        ORDER BY i.workflow, i.status, i.key DESC LIMIT %s) AS newest
 ORDER BY newest.key DESC LIMIT %s
"""
_DOCUMENTS = """
SELECT CASE WHEN octet_length(params::text) <= %s THEN params::text END,
       CASE WHEN octet_length(output::text) <= %s THEN output::text END
  FROM engine_instance WHERE key = ANY(%s) ORDER BY key DESC
"""
_TAGS = "SELECT tag FROM engine_instance, unnest(tags) AS tag WHERE key = ANY(%s)"
_PEOPLE = "SELECT started_by FROM engine_instance WHERE key = ANY(%s) AND started_by <> ''"
_STEPS = "SELECT DISTINCT name FROM engine_step WHERE instance_id = ANY(%s)"
_ERRORS = "SELECT error ->> 'type' FROM engine_instance WHERE key = ANY(%s) AND error IS NOT NULL"


@dataclass(frozen=True)
class Seen:
    """The newest instances of these workflows, read when they are needed."""

    workflows: Sequence[str]

    def tags(self) -> list[str]:
        return self._common(_TAGS, RECENT)

    def people(self) -> list[str]:
        return self._common(_PEOPLE, RECENT)

    def steps(self) -> list[str]:
        return self._common(_STEPS, NEWEST)

    def errors(self) -> list[str]:
        return self._common(_ERRORS, RECENT, [InstanceStatus.ERRORED])

    def paths(self) -> list[str]:
        """Return the paths of values, such as `params.customer.id`: those with an index first, then by depth."""
        declared = [path for name in self.workflows if name in registry for path in registry[name].search]
        found = Counter(".".join(path) for path, _ in self._values)
        others = sorted(found, key=lambda path: (path.count("."), -found[path], path))
        return list(dict.fromkeys([*declared, *others]))[:PATHS]

    def values(self, path: str) -> list[str]:
        """Return the short values at a path, the most common first."""
        found = Counter(value for where, value in self._values if ".".join(where) == path)
        return [value for value, _ in found.most_common() if value and len(value) <= LONGEST_VALUE]

    def _common(self, query: str, most: int, statuses: Sequence[str] = tuple(InstanceStatus)) -> list[str]:
        found = Counter(text for (text,) in _rows(query, [self._keys(most, statuses)]) if text)
        return [text for text, _ in found.most_common()]

    def _keys(self, most: int, statuses: Sequence[str] = tuple(InstanceStatus)) -> list[int]:
        given = [list(self.workflows), [str(status) for status in statuses], most, most]
        return [key for (key,) in _rows(_KEYS, given)]

    @cached_property
    def _values(self) -> list[tuple[Path, str]]:
        found: list[tuple[Path, str]] = []
        for texts in _rows(_DOCUMENTS, [LARGEST, LARGEST, self._keys(NEWEST)]):
            for root, text in zip(("params", "output"), texts, strict=True):
                value = decode(text) if text else None
                if not isinstance(value, Unreadable):
                    found += _leaves((root,), value)
        return found


def _leaves(path: Path, value: Any) -> Iterator[tuple[Path, str]]:
    """Yield each leaf with its path. Secrets are left out: nothing can be searched in them."""
    if is_envelope(value) or len(path) > DEEPEST:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            if _is_part(key):
                yield from _leaves((*path, key), item)
    elif isinstance(value, list):
        for at, item in enumerate(value[:ITEMS]):
            yield from _leaves((*path, str(at)), item)
    elif len(path) > 1:
        yield path, _text(value)


def _is_part(key: str) -> bool:
    """Return whether a key can be part of a path in a search."""
    return key.isascii() and key.replace("_", "").replace("-", "").isalnum()


def _text(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def _rows(query: str, given: Sequence[Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(query, given)
        return cursor.fetchall()
