"""What it takes to read an instance: nothing is read twice, and nothing is lost by that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest

from engine.models import Instance
from engine.status import record
from engine.status.record import Limits
from engine.status.snapshot import snapshot
from engine.status.steps import steps_of
from engine.steer.restart import restart
from tests.studio import factories
from tests.studio.api.conftest import Program
from tests.studio.api.shop import Shop

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("most", [100, 2])
@pytest.mark.parametrize("name", [field.name for field in fields(Shop)])
def test_what_the_newest_steps_tell_is_what_would_be_read_for_them(shop: Shop, name: str, most: int) -> None:
    instance = Instance.objects.get(key=getattr(shop, name).key)
    limits = Limits(9, 9, 9)
    for number in range(1, instance.generation + 1):
        shown = snapshot(instance, number, with_errors=True)
        of_it = steps_of(shown.instance)

        told, total = record.read_newest(shown, most, limits=limits, with_payloads=True)
        newest = list(of_it.order_by("-seq")[:most])[::-1]
        asked = record.read(shown, newest, limits=limits, with_payloads=True)
        assert told == replace(asked, facts=replace(asked.facts, now=told.facts.now))
        assert told.status_line == asked.status_line
        assert total == of_it.count()


def test_kept_steps_have_the_attempts_of_the_generation_in_which_they_ran(shop: Shop) -> None:
    again = restart(Instance.objects.get(key=shop.complete.key), from_step="label", kind="child", by="ana")

    found, _ = record.read_newest(snapshot(again), 100, limits=Limits(9, 9, 9), with_payloads=False)
    (reserved,) = found.steps[:1]
    assert (reserved.name, reserved.kept_from) == ("reserve", again.generation - 1)
    assert [one.generation for one in found.attempts[reserved.seq]] == [again.generation - 1]


@pytest.mark.parametrize(("status", "most"), [("complete", 3), ("running", 4)])
def test_a_read_takes_few_queries(
    program: Program, django_assert_max_num_queries: Callable[[int], Any], status: str, most: int
) -> None:
    """One each for the token and the instance, and one for everything else.

    One that has not finished may have children of its current steps.
    """
    instance = factories.instance(status)
    factories.attempt(factories.step(instance, "reserve"))
    path = f"/workflows/{instance.workflow}/instances/{instance.id}"
    assert program.get(path).status_code == 200
    with django_assert_max_num_queries(most):
        assert program.get(path).status_code == 200
