"""The live view of workers and queues. A section that cannot be read says so; the others stay."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from django.http import QueryDict
from django.urls import reverse

from engine.status.pace import steps_per_minute
from engine.status.search import workflow_names
from engine.steer.schedules import clock
from studio.access.permissions import Verb, allowed, visible
from studio.display.rendering import render_to_string
from studio.frame.live_view import LiveView
from studio.frame.pieces import Drawing, Piece
from studio.frame.sections import read
from studio.workers.figures import figures
from studio.workers.headline import headline
from studio.workers.queries import read_clusters, read_queues


@dataclass(frozen=True, slots=True)
class WorkersView(LiveView):
    """Topic `workers`."""

    topic: ClassVar[re.Pattern[str]] = re.compile("workers")
    seconds_between: ClassVar[float] = 2.0
    moves_by_itself: ClassVar[bool] = True  # heartbeats are no changes of instances

    @classmethod
    def of(cls, topic: re.Match[str], given: QueryDict) -> Self:
        return cls()

    def drawing(self, user: Any) -> Drawing:
        names = visible(user, workflow_names())
        workers = read("the workers", lambda: read_clusters(frozenset(names)))
        found, is_starting = workers.found or (None, False)
        queues = read("the queues", lambda: read_queues(names, found))
        pace = read("the steps", steps_per_minute)
        waiting, wait = queues.found or (None, None)
        context = {
            "workers": workers,
            "queues": queues,
            "clusters": found,
            "count": sum(len(cluster.lines) for cluster in found or ()),
            "waiting": waiting,
            "is_starting": is_starting,
            "figures": figures(waiting, wait, pace.found, failed=queues.failed, pace_failed=pace.failed),
            "headline": headline(found, waiting, clock(), is_starting=is_starting),
            "again": reverse("studio:workers"),
            "may_act": allowed(user, Verb.ADMINISTER, None),
            "may_resume": [name for name in names if allowed(user, Verb.OPERATE, name)],
        }
        parts = {"workers-head": "head", "workers-figures": "figures", "workers-table": "table"}
        parts |= {"workers-queues": "queues"}
        return Drawing(
            {
                name: Piece(render_to_string(f"studio/workers/{part}.html", context))
                for name, part in parts.items()
            }
        )
