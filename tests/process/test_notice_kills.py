"""SIGKILL between the commit of a failure and its report: it is reported anyway."""

from __future__ import annotations

import pytest

from engine.models import Notice
from tests.process.arena import Arena, is_alive, wait_until
from tests.process.program.workflows import doomed

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

LEASE_SECONDS = 2.0


def test_a_failure_whose_teller_is_killed_is_told_by_another(arena: Arena) -> None:
    first = arena.worker("first", lease=LEASE_SECONDS)
    instance = doomed.start("kills")
    wait_until(lambda: not is_alive(first), what="the death of the first")
    assert [one.pid for one in arena.ledger.lines(what="heard")] == [first]
    arena.worker("second", lease=LEASE_SECONDS)
    wait_until(lambda: not Notice.objects.exists(), what="telling")
    heard = arena.ledger.lines(what="heard", instance=instance.id)
    assert len(heard) == 2
    assert len({one.key for one in heard}) == 1  # by which a receiver knows that it is the same
