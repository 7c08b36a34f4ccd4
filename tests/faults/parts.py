"""What the processes of the tests of faults do; the nursery forks them, beside those of `tests.process.parts`."""

from __future__ import annotations

import random
import time
from datetime import timedelta

from django.db import OperationalError, connection, transaction
from django.utils import timezone

from tests.process import ledger, parts
from tests.process.program.workflows import program


def worker_off_by(*, seconds: float, **options: float) -> None:
    """A worker whose machine's clock is wrong by this much."""
    right, right_ns, right_now = time.time, time.time_ns, timezone.now
    time.time = lambda: right() + seconds
    time.time_ns = lambda: right_ns() + int(seconds * 1e9)
    timezone.now = lambda: right_now() + timedelta(seconds=seconds)
    parts.worker(**options)  # type: ignore[arg-type]


def pair_sender(*, seed: int, instances: list[str], seconds: float, is_sorted: bool) -> None:
    """Send to two instances in one transaction, again and again; whatever a deadlock undoes is sent again."""
    rng = random.Random(seed)
    ends_at = time.monotonic() + seconds
    number = 0
    while time.monotonic() < ends_at:
        number += 1
        pair = rng.sample(instances, 2)
        key = f"{seed}-{number}"
        while not _sent(sorted(pair) if is_sorted else pair, key):
            ledger.write("undone", instance=pair[0], key=key)
        ledger.write("sent", instance=pair[0], step=pair[1], key=key)


def _sent(pair: list[str], key: str) -> bool:
    try:
        with transaction.atomic():
            for name in pair:
                program.get(name).send_event("news", key, dedup_key=key)
                time.sleep(0.002)  # so that the other order comes in between
    except OperationalError:
        connection.close()
        return False
    return True


def operator(*, seed: int, instances: list[str], seconds: float) -> None:
    """Pause and resume instances at random."""
    rng = random.Random(seed)
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        name, verb = rng.choice(instances), rng.choice(["pause", "resume"])
        try:
            getattr(program.get(name), verb)(by="operator")
        except OperationalError:
            ledger.write("undone", instance=name, step=verb)


def batch_starter(*, seed: int, count: int, seconds: float) -> None:
    """Start the same instances as another one does, in batches of any order."""
    rng = random.Random(seed)
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        some = rng.sample(range(count), count // 2)
        program.start_many([{"params": [], "id": f"batch-{number}"} for number in some])
