"""Somebody who starts instances while a test does harm to the database or to the way there."""

from __future__ import annotations

import threading

import psycopg

from tests.process.clusters import Cluster


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
