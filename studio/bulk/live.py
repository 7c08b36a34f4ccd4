"""The live views of the list of bulk jobs and of one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from django.http import QueryDict

from engine.bulk import BulkStatus
from studio.access.permissions import Verb, allowed, sees_all
from studio.bulk import queries
from studio.bulk.address import OUTCOMES, JobAddress, list_address
from studio.bulk.queries import ItemRow, JobRow
from studio.bulk.wording import DEEDS
from studio.display.rendering import render_to_string
from studio.forms.tokens import tag_of
from studio.frame.addresses import cursor, keys
from studio.frame.live_view import LiveView
from studio.frame.pieces import Drawing, Piece, more_piece

PIECES = ("head", "meter", "about", "items", "trail")
MOST_NEW = 99


@dataclass(frozen=True, slots=True)
class BulkJobsView(LiveView):
    """Topic `bulk`, with the keys of the shown jobs, and on the first page that of the newest."""

    topic: ClassVar[re.Pattern[str]] = re.compile("bulk")
    shown: tuple[int, ...] = ()
    top: int | None = None

    @classmethod
    def of(cls, topic: re.Match[str], given: QueryDict) -> Self:
        return cls(tuple(keys(given.get("keys", ""), queries.PAGE)), cursor(given.get("top", "")))

    def drawing(self, user: Any) -> Drawing:
        newer = 0
        if self.top is not None:
            newer = queries.visible_jobs(user).filter(key__gt=self.top)[:MOST_NEW].count()
        rows = {f"b-{row.key}": row_piece(row) for row in queries.jobs_by_key(user, self.shown)}
        return Drawing({"more": more_piece(newer, list_address()), **rows}, is_personal=not sees_all(user))


def row_piece(row: JobRow) -> Piece:
    return Piece(render_to_string("studio/bulk/row.html", {"row": row, "job": row.job}))


@dataclass(frozen=True, slots=True)
class BulkJobView(LiveView):
    """Topic `bulk:<id>`, with the outcome and the place in the list of its instances."""

    topic: ClassVar[re.Pattern[str]] = re.compile(r"bulk:([A-Za-z0-9_][A-Za-z0-9_-]{0,99})")
    moves_by_itself: ClassVar[bool] = True  # its rate, while nothing is done
    asked: JobAddress

    @classmethod
    def of(cls, topic: re.Match[str], given: QueryDict) -> Self:
        asked = given.copy()
        asked.pop("topic", None)
        return cls(JobAddress.of(topic[1], asked))

    def drawing(self, user: Any) -> Drawing:
        """Render the page; nothing if the job was deleted."""
        found = queries.find(self.asked.id, user)
        return draw_job(self.asked, found, user) if found is not None else Drawing({}, is_done=True)


def draw_job(asked: JobAddress, row: JobRow, user: Any) -> Drawing:
    """Render a job for a user."""
    items, older = queries.items_page(row.key, asked.outcome, asked.after)
    context = {
        "row": row,
        "job": row.job,
        "asked": asked,
        "items": items,
        "search": _search(row, items),
        "kinds": _kinds(asked, row),
        "older": asked.url(after=older) if older else "",
        "first": asked.url() if asked.after else "",
        "told": [(one, DEEDS.get(one.verb, one.verb)) for one in queries.told(row.job.id)],
        "may_act": allowed(user, Verb.OPERATE, None),
        "is_running": row.job.status == BulkStatus.RUNNING,
    }
    pieces = {
        f"bulk-{name}": Piece(render_to_string(f"studio/bulk/pieces/{name}.html", context)) for name in PIECES
    }
    return Drawing(pieces, is_personal=not sees_all(user), say=f"This job is now {row.job.status}")


def _search(row: JobRow, items: Sequence[ItemRow]) -> str:
    """Return the search that finds the instances of the job; empty if there is none."""
    tag = tag_of(row.job.id)
    is_tagged = row.starts and any(one.row is not None and tag in one.row.instance.tags for one in items)
    return f"tag:{tag}" if is_tagged else row.job.query


def _kinds(asked: JobAddress, row: JobRow) -> list[tuple[str, int, str, bool]]:
    job = row.job
    counts = {"": job.total, "done": job.done, "failed": job.failed, "skipped": job.skipped, "open": job.left}
    return [
        (word, counts[name], asked.url(outcome=name), name == asked.outcome)
        for name, word in OUTCOMES.items()
    ]
