"""What the processes of these tests do."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.db import Error, connection, connections, transaction

from engine.models import Instance
from engine.steer import workflow_counts
from engine.values.errors import InstanceFinishedError
from engine.worker import claims, shift
from engine.worker.database import heartbeat
from tests.process import ledger
from tests.process.program.workflows import program


def migrate() -> None:
    call_command("migrate", verbosity=0)


def worker(
    *,
    name: str,
    slots: int,
    lease: float,
    stall: float = heartbeat.STALL_SECONDS,
    grace: float = shift.GRACE_SECONDS,
    sweep: float = claims.SWEEP_SECONDS,
) -> None:
    """A shift in a process of its own, until SIGTERM."""
    settings.REPRISE = settings.REPRISE | {"LEASE": lease}
    claims.SWEEP_SECONDS = sweep
    heartbeat.STALL_SECONDS = stall
    shift.GRACE_SECONDS = grace
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: asked.append(number))
    shift.run(shift.Terms(slots=slots, name=name, should_stop=lambda: bool(asked)))


def adder() -> None:
    """Add up what was counted, one change at a time, until a signal ends it."""
    workflow_counts.BATCH = 1
    while True:
        workflow_counts.fold()


def proxied_worker(*, directory: str, application: str, name: str) -> None:
    """A shift whose connections go to a proxy's socket; those of its bodies say this application."""
    place = connections["default"].settings_dict
    place.update(HOST=directory, OPTIONS=place["OPTIONS"] | {"application_name": application})
    worker(name=name, slots=64, lease=30)


def sender(*, seed: int, count: int, params: list[dict[str, Any]], type: str, after: float) -> None:
    """Start instances one by one; send each an event at about the moment when it parks.

    That comes so long after its first body began, or later: sooner is tried after one that had parked, else later.
    """
    rng = random.Random(seed)
    log = ledger.Ledger(ledger.path())
    for _ in range(count):
        instance = program.start(params)
        began = log.wait_for(what="start", instance=instance.id)
        time.sleep(max(0.0, began.at + after * rng.uniform(0.5, 1.5) - time.monotonic()))
        after *= 0.8 if instance.refresh().status == "waiting" else 1.25
        instance.send_event(type, instance.id)
        ledger.write("sent", instance=instance.id)


def holder(*, instance: str, type: str) -> None:
    """Send an event in a transaction that is held open until SIGUSR1."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    with transaction.atomic():
        Instance.objects.get(workflow=program.name, id=instance).send_event(type, "held")
        ledger.write("held", instance=instance)
        signal.sigwait({signal.SIGUSR1})
    ledger.write("released", instance=instance)


def starter(*, prefix: str, count: int, params: list[dict[str, Any]], pause: float) -> None:
    """Start instances whatever happens; the ledger gets those that were accepted."""
    for number in range(count):
        name = f"{prefix}-{number}"
        _until_accepted(lambda name=name: program.get_or_start(name, params))
        ledger.write("accepted", instance=name)
        time.sleep(pause)


def events(*, instances: list[str], type: str, pause: float) -> None:
    """Send an event to each instance that is not finished through whatever happens, once by its dedup key."""
    for name in instances:
        with suppress(InstanceFinishedError):
            _until_accepted(lambda name=name: program.get(name).send_event(type, name, dedup_key="once"))
        ledger.write("sent", instance=name)
        time.sleep(pause)


def operator(*, seed: int, instances: list[str], seconds: float) -> None:
    """Pause, resume and, rarely, terminate instances at random."""
    rng = random.Random(seed)
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        instance = program.get(rng.choice(instances))
        verb = rng.choices(["pause", "resume", "terminate"], [10, 10, 1])[0]
        _steer(instance, verb)
        time.sleep(rng.uniform(0, 0.02))


def _steer(instance: Instance, verb: str) -> None:
    try:
        after = getattr(instance, verb)(by="operator").status
    except InstanceFinishedError:
        after = "refused"
    ledger.write(verb, instance=instance.id, step=after)


def _until_accepted(act: Callable[[], Any]) -> None:
    while True:
        try:
            act()
        except Error:
            connection.close()
            time.sleep(0.05)
        else:
            return
