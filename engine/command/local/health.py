"""Read whether Reprise works."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from engine.command.health import limits_of
from engine.command.subcommand import Options
from engine.status import documents, health
from engine.status.documents import Document


def read(options: Options) -> Document:
    found = health.read(limits=limits_of(options), timeout=timedelta(seconds=options["timeout"]))
    return documents.health(found, timezone.now())
