"""The views that every Studio has."""

from __future__ import annotations

from dataclasses import dataclass

from studio.saved_views.search import Search


@dataclass(frozen=True, slots=True)
class BuiltIn:
    slug: str
    name: str
    search: Search


ALL = BuiltIn("", "All", Search())
BUILT_IN = (
    BuiltIn("needs-attention", "Needs attention", Search("status:retrying,approval,paused")),
    BuiltIn("running", "Running", Search("status:running")),
    BuiltIn("waiting-for-people", "Waiting for people", Search("status:approval")),
    BuiltIn("failed-today", "Failed today", Search("status:errored finished:<24h")),
)
BY_SLUG = {one.slug: one for one in BUILT_IN}
