"""Read workers, drain and resume them."""

from __future__ import annotations

from django.utils import timezone

from engine.command.local.finding import origin
from engine.command.subcommand import Options
from engine.status import documents
from engine.status.documents import Document
from engine.steer import workers


def listed(options: Options) -> Document:
    rows = workers.running()
    return {"workers": [documents.worker(row, rows) for row in rows], "now": timezone.now()}


def drain(options: Options) -> Document:
    return documents.drained(workers.drain(options["worker"], **origin(options)))


def resume(options: Options) -> Document:
    return documents.drained(workers.resume(options["worker"], **origin(options)))
