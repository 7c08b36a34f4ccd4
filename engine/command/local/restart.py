"""Restart instances, preview it, and retry their failed steps."""

from __future__ import annotations

from engine.command import values
from engine.command.local.finding import find, origin
from engine.command.subcommand import Options
from engine.status import documents
from engine.status.documents import Document
from engine.steer import restart as restarting
from engine.values.unchanged import UNCHANGED


def restart(options: Options) -> Document:
    instance = find(options["instance"])
    where = (options["from_step"], options["count"], options["kind"])
    if options["preview"]:
        return documents.plan(restarting.preview(instance, *where))
    params = values.value(options, "params") if values.is_given(options, "params") else UNCHANGED
    again = restarting.restart(instance, *where, params=params, keys=options["keys"], **origin(options))
    return {"instance": documents.instance(again)}


def retry_step(options: Options) -> Document:
    instance = find(options["instance"])
    again = restarting.retry_step(instance, options["step"], options["count"], **origin(options))
    return {"instance": documents.instance(again)}
