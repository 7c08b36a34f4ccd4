"""Pauses of workflows, one request each."""

from __future__ import annotations

from collections.abc import Sequence

from engine.command import pauses as texts
from engine.command.subcommand import Options
from engine.status.json_text import Document
from studio.client import Client
from studio.remote.refusals import require_workflow


def listed(client: Client, options: Options) -> Document:
    found = client.workflows()
    paused = [dict(one) for one in client.paused_workflows()]
    return texts.states((one["name"] for one in found["workflows"]), paused, found["now"])


def pause(client: Client, options: Options) -> Document:
    done = [client.pause_workflow(name, reason=options["reason"]) for name in _names(client, options)]
    return {"pauses": done}


def resume(client: Client, options: Options) -> Document:
    count, reason = options["count"], options["reason"]
    done = [client.resume_workflow(name, count=count, reason=reason) for name in _names(client, options)]
    return {"resumed": done}


def _names(client: Client, options: Options) -> Sequence[str]:
    """Return the names in their order. Raises UnknownWorkflowError before anything is changed."""
    names = sorted(set(options["workflow"]))
    paused = {one["workflow"] for one in client.paused_workflows()}
    for name in names:
        if name not in paused:
            require_workflow(client, name)
    return names
