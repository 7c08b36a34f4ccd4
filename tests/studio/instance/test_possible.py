"""Tests plant only rows that the engine can write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.models import Instance, Step, Worker
from tests import possible
from tests.studio import factories

pytestmark = pytest.mark.django_db

PLANTS: dict[str, Callable[[], Any]] = {
    "open-has-a-wake-up": lambda: Step.objects.filter(instance=factories.instance("waiting")).delete(),
    "steps-end-like-their-last-attempt": lambda: factories.attempt(
        factories.step(factories.instance("running"), "charge"), "errored"
    ),
    "pauses-are-audited": lambda: factories.instance("paused", by=""),
    "workers-are-shifts-or-clusters": lambda: factories.worker(["orders"], role="cluster", held=3),
    "workers-have-a-process": lambda: factories.worker(["orders"], name="worker-2"),
    "workers-serve-something": lambda: factories.worker([]),
    "workers-are-seen-after-their-start": lambda: factories.worker(["orders"], seen_at=factories.ago(days=1)),
}


@pytest.mark.parametrize("name", PLANTS)
def test_a_row_that_cannot_be_is_named(name: str) -> None:
    PLANTS[name]()
    found = possible.impossible()
    Instance.objects.all().delete()
    Worker.objects.all().delete()
    assert [one.split(":")[0] for one in found] == [name]


def test_too_much_in_too_few_slots_is_named() -> None:
    made = factories.worker(["orders"], slots=4, held=33)
    assert possible.impossible() == [f"workers-are-shifts-or-clusters: #{made.key} shift with 33 of 4 slots"]
    made.delete()


@pytest.mark.parametrize("status", ["queued", "running", "waiting", "waiting_for_pause", "paused"])
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_what_is_made_up_can_be(status: str, steps: int) -> None:
    made = factories.instance(status, fence=1)
    for n in range(steps):
        factories.step(made, f"step-{n}")
    factories.workers(["orders"], count=2, held=64)
    assert possible.impossible() == []
