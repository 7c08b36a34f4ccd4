"""A customer, who starts instances while a test does harm to the database or to the way there."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter

import psycopg

from tests.live import PROJECT
from tests.process.clusters import Cluster, wait_until

STEPS = 8


class Customer:
    """Starts an instance every few moments, whatever happens; `seconds` is how long each of its bodies takes."""

    def __init__(self, cluster: Cluster, *, every: float = 0.02, seconds: float = 0.2) -> None:
        self._cluster = cluster
        self._every = every
        self._seconds = seconds
        self.confirmed: list[str] = []
        self._stops = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> Customer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stops.set()
        self._thread.join()

    def _work(self) -> None:
        number = 0
        while not self._stops.wait(self._every):
            number += 1
            try:
                self._cluster.begin("relay-errand", f"relay-{number}", seconds=self._seconds)
            except psycopg.Error:
                continue  # it may be there or not: there was no answer
            self.confirmed.append(f"relay-{number}")


def begun(cluster: Cluster) -> list[tuple[str, int]]:
    """Return which bodies have begun, in order: instance and number of the step."""
    lines = [line.split() for line in cluster.noted() if line.startswith("relay-")]
    return [(name, int(step)) for name, step in lines]


def assert_nothing_is_lost_or_repeated(cluster: Cluster, customer: Customer) -> None:
    """Wait until all is complete; fail if a confirmed start is not there, or if a complete step has begun again."""
    wait_until(
        lambda: cluster.query("SELECT count(*) FROM engine_instance WHERE status <> 'complete'") == [(0,)]
    )
    there = {name for (name,) in cluster.query("SELECT id FROM engine_instance")}
    assert set(customer.confirmed) <= there
    # A step begins when the one before it has been recorded; from then on that one never begins again.
    latest: Counter[str] = Counter()
    for name, step in begun(cluster):
        assert step >= latest[name], (name, step)
        latest[name] = step
    assert (latest.keys(), set(latest.values())) == (there, {STEPS})
    # The command asks 190 times one after the other: not by the way of the workers, which may be slow.
    verified = subprocess.run(
        [sys.executable, str(PROJECT / "manage.py"), "verify"],
        cwd=PROJECT,
        env=cluster.variables | {"DATABASE_URL": cluster.dsn},
        capture_output=True,
        text=True,
        check=False,
    )
    assert verified.returncode == 0, verified.stdout + verified.stderr
