"""The fragments that suggest: what to write in a search, and which values to add as columns."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse

from engine.status.search import workflow_names
from engine.values.query.parsing import LONGEST, parse
from engine.values.query.terms import Names, Query
from studio.access.permissions import Verb, visible
from studio.display.rendering import render
from studio.frame.guard import guard
from studio.frame.patience import TooSlowError, patience
from studio.instances.address import ListAddress
from studio.instances.columns import path_of
from studio.instances.completion import Completion, complete
from studio.instances.seen import Seen

PATIENCE_S = 1
PATHS = 40


@guard(get=Verb.VIEW)
def suggestions(request: HttpRequest) -> HttpResponse:
    """Answer what can be written at the caret, the character `at` of the text `query`."""
    text, at = request.GET.get("query", "")[:LONGEST], request.GET.get("at", "")
    place = min(int(at), len(text)) if at.isascii() and at.isdigit() and len(at) < 6 else len(text)
    names = visible(request.user, workflow_names())
    try:
        with patience(PATIENCE_S):
            found = complete(text, place, names=names, seen=Seen(_chosen(parse(text), names)))
    except TooSlowError:
        found = Completion(place, place)
    return render(request, "studio/instances/suggestions.html", {"found": found})


@guard(get=Verb.VIEW)
def paths(request: HttpRequest) -> HttpResponse:
    """Answer the paths that the newest instances of the search have, as links that add a column."""
    asked = ListAddress.of(request.GET)
    shown = [".".join(path) for path in asked.columns]
    seen = Seen(_chosen(asked.query, visible(request.user, workflow_names())))
    try:
        with patience(PATIENCE_S):
            found = [path for path in seen.paths() if path not in shown and path_of(path)][:PATHS]
    except TooSlowError:
        found = []
    listed = [(path, asked.url(columns=",".join([*shown, path]))) for path in found]
    return render(request, "studio/instances/paths.html", {"paths": listed})


def _chosen(query: Query, names: list[str]) -> list[str]:
    """Return the workflows of a search, or all of them if it names none that there is."""
    chosen: list[Any] = [
        pattern
        for term in query.terms
        if isinstance(term.condition, Names) and term.condition.field == "workflow" and not term.is_negated
        for pattern in term.condition.patterns
    ]
    exact = {pattern.text for pattern in chosen if not pattern.is_prefix}
    begins = tuple(pattern.text for pattern in chosen if pattern.is_prefix)
    return [name for name in names if name in exact or name.startswith(begins or ("\0",))] or names
