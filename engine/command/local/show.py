"""Read everything that is recorded of an instance."""

from __future__ import annotations

from engine.command.local.finding import find
from engine.command.subcommand import Options
from engine.status import documents, record
from engine.status.documents import Document
from engine.status.record import Limits
from engine.status.snapshot import snapshot
from engine.status.steps import read_old_milestones, without_done_items


def show(options: Options) -> Document:
    full, limit = options["full"], options["limit"]
    shown = snapshot(find(options["instance"]), options["generation"], limit=limit, with_errors=True)
    limits = Limits(limit, limit, limit)
    if full or options["json"]:
        found, total = record.read_newest(shown, limit, limits=limits, with_payloads=full)
    else:
        rows = without_done_items(shown.instance)
        steps = list(rows.defer("output").order_by("-seq")[:limit])[::-1]
        total = rows.count() if len(steps) == limit else len(steps)
        read_old_milestones(shown.instance, steps)
        found = record.read(shown, steps, limits=limits, with_payloads=False)
    return documents.record(found, steps_total=total, full=full)
