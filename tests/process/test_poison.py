"""A step that kills its worker is given up, and not the neighbours that die with it."""

from __future__ import annotations

import pytest

from engine.models import Attempt, Step
from tests.process.arena import Arena, attempts, wait_for
from tests.process.program.workflows import block, kill, program, work

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

CRASHES = 3  # losses of a step in quarantine: its budget
POISONED = 2
GOOD = 20


def test_killer_uses_up_its_budget_and_its_neighbours_complete(arena: Arena) -> None:
    arena.cluster()
    neighbours = [[work("a", 0.3), block("b", 0.3), work("c", 0.3)]] * GOOD
    poisoned = [[work("before", 0.3), kill("poison"), work("after")]] * POISONED
    # In one call, so that one worker claims them together, and neighbours have begun when a killer kills.
    created = program.start_many([{"params": one} for one in (*neighbours, *poisoned, *neighbours)]).created
    good, killers, after = created[:GOOD], created[GOOD:-GOOD], created[-GOOD:]

    wait_for(killers, "errored", seconds=30)
    wait_for([*good, *after], seconds=15)

    for killer in killers:
        assert killer.refresh().error["type"] == "WorkerLostError"
        assert killer.error["step"] == "poison"
        assert {status for _, status in attempts(killer, "poison")} == {"lost"}
        alone = Attempt.objects.filter(instance=killer, quarantined=True, status="lost")
        killed = arena.ledger.lines(what="start", instance=killer.id, step="poison")
        assert alone.count() == CRASHES
        assert set(alone.values_list("number", flat=True)) <= {line.attempt for line in killed}
        # Once it died beside others; then it was let run alone only.
        assert len(attempts(killer, "poison")) == CRASHES + 1
        assert attempts(killer, "before")[-1][1] == "complete"  # the other killer may have come in between
    others = Step.objects.exclude(instance__in=killers)
    assert others.filter(status="complete").count() == others.count() == 3 * 2 * GOOD
    assert others.filter(lost__gt=0).exists(), "no neighbour died with a killer: the test proves nothing"
