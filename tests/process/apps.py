"""Clusters of little patience, for tests that would only wait for it to run out."""

import json
import os
from importlib import import_module
from typing import Any

from django.apps import AppConfig

IMPATIENT = "REPRISE_TEST_IMPATIENT"
CONSTANTS = "REPRISE_TEST_CONSTANTS"  # JSON: what stands for a constant, by "module.NAME"

GRACE = 2.0
STUCK = 4.0
LOOK = 1.0

PATIENCE = {
    ("engine.worker.shift", "GRACE_SECONDS"): GRACE,
    ("engine.worker.cluster.shift_task", "STUCK_SECONDS"): STUCK,
    ("engine.worker.cluster.sentinel", "STUCK_SECONDS"): STUCK,
    ("engine.worker.retirement", "STUCK_SECONDS"): STUCK,
    ("engine.worker.cluster.dispatcher", "SWEEP_SECONDS"): LOOK,
    ("engine.worker.cluster.dispatcher", "BEAT_SECONDS"): LOOK,
}


class Process(AppConfig):
    name = "tests.process"

    def ready(self) -> None:
        if IMPATIENT in os.environ:
            for (module, name), seconds in PATIENCE.items():
                place: Any = import_module(module)
                assert getattr(place, name) > seconds, f"{module}.{name} is no longer what a test shortens"
                setattr(place, name, seconds)
        for path, value in json.loads(os.environ.get(CONSTANTS, "{}")).items():
            module, _, name = path.rpartition(".")
            place = import_module(module)
            assert hasattr(place, name), path
            setattr(place, name, value)
