"""Start an instance. Its params are validated as everywhere."""

from __future__ import annotations

from engine.command import values
from engine.command.local.finding import origin
from engine.command.start import retention_of
from engine.command.subcommand import Options
from engine.declare.registry import workflows
from engine.status import documents
from engine.status.documents import Document
from engine.steer import launch


def start(options: Options) -> Document:
    workflow = workflows[options["workflow"]]
    params = values.value(options, "params")
    instance = launch.start(
        workflow,
        params,
        id=options["id"],
        tags=options["tag"],
        retention=retention_of(options),
        at=options["at"],
        **origin(options),
    )
    return {"instance": documents.instance(instance)}
