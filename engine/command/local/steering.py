"""Pause, resume, terminate and delete instances, end their waits, accept their code: one engine call each."""

from __future__ import annotations

from collections.abc import Callable

from django.db import transaction

from engine.command import bulk, values
from engine.command.local import bulk as local_bulk
from engine.command.local.finding import find, origin
from engine.command.subcommand import Options
from engine.models import Instance
from engine.status import documents
from engine.status.documents import Document
from engine.steer import decisions, deletion, lifecycle, wake_ups

Act = Callable[[Instance, Options], Instance]


def pause(options: Options) -> Document:
    if options["all"]:
        return local_bulk.pause_all(options)
    bulk.require_one(options)
    return _steer(lambda instance, options: lifecycle.pause(instance, **origin(options)), options)


def resume(options: Options) -> Document:
    if options["all"]:
        return local_bulk.resume_all(options)
    bulk.require_one(options)
    return _steer(lambda instance, options: lifecycle.resume(instance, **origin(options)), options)


def terminate(options: Options) -> Document:
    def act(instance: Instance, options: Options) -> Instance:
        return lifecycle.terminate(instance, rollback=options["rollback"], **origin(options))

    return _steer(act, options)


def retry_rollback(options: Options) -> Document:
    return _steer(lambda instance, options: lifecycle.retry_rollback(instance, **origin(options)), options)


def retry_now(options: Options) -> Document:
    return _steer(lambda instance, options: wake_ups.retry_now(instance, **origin(options)), options)


def wake_now(options: Options) -> Document:
    def act(instance: Instance, options: Options) -> Instance:
        return wake_ups.wake_now(instance, options["step"], options["count"], **origin(options))

    return _steer(act, options)


def fail_step(options: Options) -> Document:
    def act(instance: Instance, options: Options) -> Instance:
        return decisions.fail_step(instance, options["step"], options["count"], **origin(options))

    return _steer(act, options)


def skip_step(options: Options) -> Document:
    output = values.value(options, "output") if values.is_given(options, "output") else None

    def act(instance: Instance, options: Options) -> Instance:
        step, count = options["step"], options["count"]
        return decisions.skip_step(instance, step, count, output=output, **origin(options))

    return _steer(act, options)


def accept_code(options: Options) -> Document:
    return _steer(lambda instance, options: lifecycle.accept_code(instance, **origin(options)), options)


def delete(options: Options) -> Document:
    instance = find(options["instance"])
    deletion.delete(instance, **origin(options))
    return {"deleted": {"workflow": instance.workflow, "id": instance.id}}


def _steer(act: Act, options: Options) -> Document:
    instance = find(options["instance"])
    # Locked, so that the reported change is that of this call and not of a worker.
    with transaction.atomic():
        before = _status(lifecycle.lock(instance))
        instance = act(instance.refresh(), options)
        has_changed = _status(instance) != before
    return {"instance": documents.instance(instance), "has_changed": has_changed}


def _status(instance: Instance) -> tuple[str, int, str]:
    return instance.status, instance.signals, instance.code
