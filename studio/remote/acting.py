"""Subcommands that change something."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from engine.command import values
from engine.command.events import request_of
from engine.command.start import retention_of
from engine.command.subcommand import Options
from engine.status.json_text import Document
from engine.values.errors import RequestNotFoundError, ScheduleNotFoundError, UnknownWorkflowError
from studio.client import Client, NotFoundError
from studio.remote.refusals import NOT_FOUND, declared, instance_named, require_workflow


def start(client: Client, options: Options) -> Document:
    name, params = options["workflow"], values.value(options, "params")
    try:
        instance = client.start(
            name,
            params,
            id=options["id"],
            tags=options["tag"],
            retention=retention_of(options),
            at=options["at"],
            reason=options["reason"],
        )
    except NotFoundError as error:
        if error.code != NOT_FOUND:
            raise
        raise UnknownWorkflowError(name, declared(client)) from None
    return {"instance": instance}


def terminate(client: Client, options: Options) -> Document:
    at = options["instance"]
    with instance_named(client, at.workflow, at.id):
        return dict(
            client.terminate(at.workflow, at.id, rollback=options["rollback"], reason=options["reason"])
        )


def retry_rollback(client: Client, options: Options) -> Document:
    at = options["instance"]
    with instance_named(client, at.workflow, at.id):
        return dict(client.retry_rollback(at.workflow, at.id, reason=options["reason"]))


def retry_now(client: Client, options: Options) -> Document:
    at = options["instance"]
    with instance_named(client, at.workflow, at.id):
        return dict(client.retry_now(at.workflow, at.id, reason=options["reason"]))


def wake_now(client: Client, options: Options) -> Document:
    at, where = options["instance"], {name: options[name] for name in ("step", "count")}
    with instance_named(client, at.workflow, at.id):
        return dict(client.wake_now(at.workflow, at.id, reason=options["reason"], **where))


def accept_code(client: Client, options: Options) -> Document:
    at = options["instance"]
    with instance_named(client, at.workflow, at.id):
        return dict(client.accept_code(at.workflow, at.id, reason=options["reason"]))


def restart(client: Client, options: Options) -> Document:
    at, where = options["instance"], {name: options[name] for name in ("from_step", "count", "kind")}
    how = {"keys": options["keys"]}
    if values.is_given(options, "params"):
        how["params"] = values.value(options, "params")
    with instance_named(client, at.workflow, at.id):
        if options["preview"]:
            return dict(client.preview_restart(at.workflow, at.id, **where))
        return {"instance": client.restart(at.workflow, at.id, reason=options["reason"], **where, **how)}


def retry_step(client: Client, options: Options) -> Document:
    at = options["instance"]
    with instance_named(client, at.workflow, at.id):
        where = {name: options[name] for name in ("step", "count")}
        return {"instance": client.retry_step(at.workflow, at.id, reason=options["reason"], **where)}


def fail_step(client: Client, options: Options) -> Document:
    at, step, count = options["instance"], options["step"], options["count"]
    with instance_named(client, at.workflow, at.id):
        return dict(client.fail_step(at.workflow, at.id, step, count=count, reason=options["reason"]))


def skip_step(client: Client, options: Options) -> Document:
    at, step, count = options["instance"], options["step"], options["count"]
    output = values.value(options, "output") if values.is_given(options, "output") else None
    with instance_named(client, at.workflow, at.id):
        return dict(client.skip_step(at.workflow, at.id, step, output, count=count, reason=options["reason"]))


def delete(client: Client, options: Options) -> Document:
    at = options["instance"]
    with instance_named(client, at.workflow, at.id):
        return {"deleted": client.delete(at.workflow, at.id, reason=options["reason"])}


def note(client: Client, options: Options) -> Document:
    at = options["instance"]
    with instance_named(client, at.workflow, at.id):
        return {"note": client.add_note(at.workflow, at.id, options["text"])}


def send_event(client: Client, options: Options) -> Document:
    at, payload = options["instance"], values.value(options, "payload")
    with instance_named(client, at.workflow, at.id):
        sent = client.send_event(
            at.workflow,
            at.id,
            options["type"],
            payload,
            dedup_key=options["dedup_key"],
            reason=options["reason"],
        )
    return dict(sent)


def answer(client: Client, options: Options) -> Document:
    at, given = options["instance"], values.value(options, "answer")
    with instance_named(client, at.workflow, at.id):
        seq = _request(client, options)
        return dict(client.answer(at.workflow, at.id, seq, given, comment=options["comment"]))


def _request(client: Client, options: Options) -> int:
    """Return the number of a request: by name the first that waits, else the last one, as the engine finds it."""
    at, wanted = options["instance"], request_of(options)
    if isinstance(wanted, int):
        return wanted
    waiting = sorted(client.requests(workflow=at.workflow, id=at.id), key=lambda one: one["seq"])
    for one in waiting:
        if one["name"] == wanted:
            return one["seq"]
    for step in client.steps(at.workflow, at.id):
        if (step["kind"], step["name"]) == ("request", wanted):
            return step["seq"]
    raise RequestNotFoundError(at.workflow, at.id, wanted, [one["name"] for one in waiting])


def pause_schedule(client: Client, options: Options) -> Document:
    with _schedule_named(client, options):
        found = client.pause_schedule(options["workflow"], options["schedule"], reason=options["reason"])
    return {"schedule": found}


def resume_schedule(client: Client, options: Options) -> Document:
    with _schedule_named(client, options):
        found = client.resume_schedule(options["workflow"], options["schedule"], reason=options["reason"])
    return {"schedule": found}


def run_schedule(client: Client, options: Options) -> Document:
    with _schedule_named(client, options):
        found = client.run_schedule(options["workflow"], options["schedule"], reason=options["reason"])
    return {"instance": found}


def drain_worker(client: Client, options: Options) -> Document:
    return dict(client.drain_worker(options["worker"], reason=options["reason"]))


def resume_worker(client: Client, options: Options) -> Document:
    return dict(client.resume_worker(options["worker"], reason=options["reason"]))


@contextmanager
def _schedule_named(client: Client, options: Options) -> Iterator[None]:
    try:
        yield
    except NotFoundError as error:
        if error.code != NOT_FOUND:
            raise
        require_workflow(client, options["workflow"])
        raise ScheduleNotFoundError(options["workflow"], options["schedule"]) from None
