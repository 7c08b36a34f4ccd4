"""The protocol under every order of things: the real statements and cycles, simulated time, people and faults.

A longer search, from another place each time:

    REPRISE_MODEL_EXAMPLES=2000 pytest tests/model/test_protocol.py

What it finds is told as a sequence of rules; tell it again in `tales`, so that it is looked at from then on.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.machine import Protocol

EXAMPLES = int(os.environ.get("REPRISE_MODEL_EXAMPLES", "0"))
FEW = 25


@pytest.mark.second_tier
def test_every_promise_is_kept_whatever_happens_in_whatever_order(protocol: type[Protocol]) -> None:
    profile = settings(
        max_examples=EXAMPLES or FEW,
        stateful_step_count=30,
        derandomize=not EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(protocol, settings=profile)
