"""Invariants of the index of search paths."""

from __future__ import annotations

from engine.invariants.invariant import Invariant

# What an instance has at a path now: no row if there is nothing.
_FOUND = (
    "engine_search_value(CASE WHEN starts_with(p.path, 'output') THEN i.output ELSE i.params END, p.path)"
)

INVARIANTS = (
    Invariant(
        "I17",
        "search-values-are-current",
        "Every search value is what its instance has at an indexed path of its workflow.",
        f"""
        SELECT v.instance_id, format('%%s: %%s', coalesce(p.path, v.path_id::text), coalesce(v.text, 'no text'))
        FROM engine_searchvalue v JOIN engine_instance i ON i.key = v.instance_id
        LEFT JOIN engine_indexedpath p ON p.key = v.path_id AND p.workflow = i.workflow
        WHERE NOT EXISTS (
            SELECT FROM {_FOUND} AS found
            WHERE (found.text::text, found.number) IS NOT DISTINCT FROM (v.text::text, v.number)
        )
        """,
    ),
    Invariant(
        "I17",
        "complete-paths-lack-nothing",
        "A path that is marked as complete has the value of every instance of its workflow.",
        f"""
        SELECT i.key, p.path
        FROM engine_indexedpath p JOIN engine_instance i ON i.workflow = p.workflow
        CROSS JOIN LATERAL {_FOUND} AS found
        LEFT JOIN engine_searchvalue v ON v.instance_id = i.key AND v.path_id = p.key
        WHERE p.is_complete AND v.instance_id IS NULL
        """,
    ),
)
