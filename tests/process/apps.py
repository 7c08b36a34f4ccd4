"""Clusters of little patience, for tests that would only wait for it to run out."""

import os
from typing import Any

from django.apps import AppConfig

IMPATIENT = "REPRISE_TEST_IMPATIENT"

GRACE = 2.0
STUCK = 4.0
LOOK = 1.0

PATIENCE = {
    ("engine.worker.shift", "GRACE_SECONDS"): GRACE,
    ("engine.worker.shift_task", "STUCK_SECONDS"): STUCK,
    ("engine.worker.sentinel", "STUCK_SECONDS"): STUCK,
    ("engine.worker.retirement", "STUCK_SECONDS"): STUCK,
    ("engine.worker.dispatcher", "SWEEP_SECONDS"): LOOK,
    ("engine.worker.dispatcher", "BEAT_SECONDS"): LOOK,
}


class Process(AppConfig):
    name = "tests.process"

    def ready(self) -> None:
        if IMPATIENT in os.environ:
            _lose_patience()


def _lose_patience() -> None:
    from importlib import import_module

    for (module, name), seconds in PATIENCE.items():
        place: Any = import_module(module)
        assert getattr(place, name) > seconds, f"{module}.{name} is no longer what a test shortens"
        setattr(place, name, seconds)
