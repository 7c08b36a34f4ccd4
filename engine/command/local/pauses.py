"""Read which workflows are paused; pause and resume them."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from engine.command import pauses as texts
from engine.command.local.finding import check_workflow, origin
from engine.command.subcommand import Options
from engine.status import documents, search
from engine.status.documents import Document
from engine.status.gathering import database_now
from engine.status.holds import all_paused_workflows, paused_workflows
from engine.steer import pauses


def listed(options: Options) -> Document:
    paused = [documents.paused_workflow(one) for one in all_paused_workflows()]
    return texts.states(search.workflow_names(), paused, database_now())


def pause(options: Options) -> Document:
    """Pause all of them or none."""
    names = _names(options)
    with transaction.atomic():
        for name in names:
            pauses.pause(name, **origin(options))
    return {"pauses": [documents.paused_workflow(one) for one in paused_workflows(names)]}


def resume(options: Options) -> Document:
    """Resume all of them or none."""
    names = _names(options)
    with transaction.atomic():
        done = [pauses.resume(name, count=options["count"], **origin(options)) for name in names]
    return {"resumed": [documents.resumed_workflow(one) for one in done]}


def _names(options: Options) -> Sequence[str]:
    """Return the names in their order, so that two who pause do not deadlock. Raises UnknownWorkflowError."""
    names = sorted(set(options["workflow"]))
    paused = {one.workflow for one in pauses.paused(names)}
    for name in names:
        if name not in paused:
            check_workflow(name)
    return names
