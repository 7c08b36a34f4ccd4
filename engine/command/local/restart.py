"""Restart instances, or preview it."""

from __future__ import annotations

from engine.command.local.finding import find, origin
from engine.command.subcommand import Options
from engine.status import documents
from engine.status.documents import Document
from engine.steer import restart as restarting


def restart(options: Options) -> Document:
    instance = find(options["instance"])
    where = (options["from_step"], options["count"], options["kind"])
    if options["preview"]:
        return documents.plan(restarting.preview(instance, *where))
    return {"instance": documents.instance(restarting.restart(instance, *where, **origin(options)))}
