"""Which workflows the pages to pause and resume are about, and where they lead back to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from django.http import HttpRequest
from django.urls import reverse

from engine.status.search import workflow_names
from engine.steer import pauses as engine_pauses
from studio.access import denied_audit
from studio.access.denied_audit import Subject
from studio.access.permissions import RefusedError, Verb, allowed, visible
from studio.frame.addresses import is_ours
from studio.instances.status_counts import open_by_status
from studio.workflows.pauses import Pauses, pauses_of

MOST = 100  # workflows at once
LONGEST_SHOWN = 80


@dataclass(frozen=True, slots=True)
class PauseRequest:
    """The workflows that the query names. `problem` says why nothing can be done about them."""

    names: tuple[str, ...]
    pauses: Pauses
    open: dict[str, int]
    """How many instances of each have not ended."""
    back: str
    problem: str = ""

    @classmethod
    def of(cls, request: HttpRequest) -> Self:
        names = tuple(dict.fromkeys(request.GET.getlist("workflow")))
        with_page = workflow_names()
        known = {*with_page, *(one.workflow for one in engine_pauses.paused())}
        seen = set(visible(request.user, known))
        problem = _problem(names, [name for name in names if name not in seen])
        found = () if problem else names
        opened = {name: sum(by_status.values()) for name, by_status in open_by_status(found).items()}
        given = request.GET.get("next", "")
        back = given if is_ours(request, given) else _page_of(found, with_page)
        return cls(names, pauses_of(found, given and back), opened, back, problem)

    @property
    def rows(self) -> list[tuple[str, int]]:
        """The names of those that are not paused, with how many of each are open."""
        return [(name, self.open[name]) for name in self.pauses.active]


def require(request: HttpRequest, names: Sequence[str], action: str) -> None:
    """Raise RefusedError unless the user may operate each of these; a denied attempt leaves a row about each."""
    denied = [name for name in names or (None,) if not allowed(request.user, Verb.OPERATE, name)]
    if not denied:
        return
    if request.method == "POST":
        for name in denied:
            denied_audit.record(action, Subject(name), request.user)
    raise RefusedError(Verb.OPERATE, denied[0])


def _problem(names: Sequence[str], unknown: Sequence[str]) -> str:
    if not names:
        return "The address names no workflow."
    if len(names) > MOST:
        return f"The address names {len(names)} workflows; {MOST} is the most."
    if unknown:
        shown = ", ".join(f"“{name[:LONGEST_SHOWN]}”" for name in unknown[:5])
        return f"No workflow of this name: {shown}. Nothing was changed."
    return ""


def _page_of(names: Sequence[str], with_page: Sequence[str]) -> str:
    """Return the page of the only workflow, or the list of them."""
    if len(names) == 1 and names[0] in with_page:
        return reverse("studio:workflow", args=names)
    return reverse("studio:workflows")
