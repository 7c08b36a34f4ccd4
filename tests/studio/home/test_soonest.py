"""The next attempts of what is shown are looked for, and those of nothing else."""

from __future__ import annotations

from engine.models import Instance
from engine.status.failures import soonest
from tests.studio.home.conftest import Fail


def test_only_the_groups_that_are_asked_for_are_read(fail: Fail) -> None:
    fail(delay=600, attempts=3, message="no kit")
    waits = fail(delay=600, attempts=3)
    first = Instance.objects.get(pk=waits.pk)
    assert first.fingerprint
    assert soonest([("orders", first.fingerprint)]) == {("orders", first.fingerprint): [first.key]}
    assert soonest([("orders", first.fingerprint)], person="nobody") == {}
