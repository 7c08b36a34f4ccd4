"""Let many instances fail at a provider that is down, then retry all of them as one bulk job.

It runs on a database of its own with the cluster that people get. Meanwhile other instances of one step are started one
after the other: how long each takes says what the job holds up.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.bench import driver, marks
from tests.bench.figures import percentile
from tests.bench.ground import opened

if TYPE_CHECKING:
    from engine.bulk import Job

IDLE = 50  # starts of others without a job
PAUSE_SECONDS = 0.1  # between two of them
PATIENCE = 60.0


def main() -> int:
    """Return 0, or 1 if an instance was not retried exactly once."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.retries", description=__doc__)
    parser.add_argument(
        "--count", type=int, default=100_000, metavar="N", help="instances that fail (100,000)"
    )
    parser.add_argument("--at-once", type=int, metavar="N", help="pace of the job (without one)")
    chosen = parser.parse_args()
    with opened() as ground:
        ground.wake_cluster()
        provider = ground.server.home / "provider"
        ids = driver.names(chosen.count)
        began = time.monotonic()
        driver.start("call", ids, provider=str(provider))
        driver.wait_for(ids, "errored", patience=PATIENCE + chosen.count / 50)
        print(f"{len(ids):,} instances failed in {time.monotonic() - began:.0f} s")
        _tell("others without the job", [_other() for _ in range(IDLE)])
        provider.touch()
        return _retry(ids, chosen.at_once)


def _retry(ids: Sequence[str], at_once: int | None) -> int:
    from engine import bulk

    asked = set(ids)
    with marks.Marks() as log:
        began = time.monotonic()
        job = bulk.start("retry", "workflow:call status:errored", at_once=at_once)
        print(f"bulk.start took {time.monotonic() - began:.1f} s", flush=True)
        with _others() as seconds:
            job = _end_of(job.id, patience=PATIENCE + len(ids) / 5)
            took = time.monotonic() - began
            print(
                f"The job ended after {took:.0f} s, {job.total / took:,.0f} a second: {_outcome(job)}",
                flush=True,
            )
            driver.wait_for(ids, "complete", patience=PATIENCE + len(ids) / 50)
            print(f"All had run again after {time.monotonic() - began:.0f} s", flush=True)
        _tell("others meanwhile", seconds)
        ran = Counter(mark.inst for mark in log.of(marks.BODY) if mark.inst in asked)
    twice, missed = sum(count > 1 for count in ran.values()), len(ids) - len(ran)
    print(f"Bodies that ran twice: {twice}; that did not run: {missed}.")
    return int(bool(twice or missed or job.done != len(ids)))


@contextmanager
def _others() -> Iterator[list[float]]:
    """Start other instances in a thread, one after the other, and note how long each took."""
    seconds: list[float] = []
    is_over = threading.Event()
    thread = threading.Thread(target=_start_others, args=(seconds, is_over))
    thread.start()
    try:
        yield seconds
    finally:
        is_over.set()
        thread.join()


def _start_others(seconds: list[float], is_over: threading.Event) -> None:
    from django.db import connection

    try:
        while not is_over.wait(PAUSE_SECONDS):
            seconds.append(_other())
    finally:
        connection.close()


def _other() -> float:
    return driver.run("chain", driver.names(1), n=1, size=0, ms=0, marks="ends")


def _end_of(id: str, *, patience: float) -> Job:
    from engine import bulk

    ends_at = time.monotonic() + patience
    while (job := bulk.get(id)).status == bulk.BulkStatus.RUNNING:
        if time.monotonic() > ends_at:
            raise TimeoutError(f"The job has {job.left:,} open items after {patience:.0f} s")
        time.sleep(0.2)
    return job


def _outcome(job: Job) -> str:
    return f"{job.status}, {job.done:,} done, {job.skipped:,} skipped, {job.failed:,} failed"


def _tell(what: str, seconds: Sequence[float]) -> None:
    median, p95 = percentile(seconds, 50) * 1000, percentile(seconds, 95) * 1000
    print(
        f"{what}: {len(seconds)} starts, complete after {median:.0f} ms (median), {p95:.0f} ms (p95), "
        f"{max(seconds) * 1000:.0f} ms at most",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
