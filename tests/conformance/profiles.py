"""Workers at their worst, for further runs of every case.

`plain`: stories without a race run on virtual time (`tests.stories`), all others in a real shift.
`shift`: those stories run in a real shift, too.
`forgetful`: a worker forgets all after every outcome, so that each is met by a replay only.
`duplicate`: every wake-up comes twice: notifications, which tell of signals and of what may be claimed, what the rows
say then, alarms and pokes, and answers to the question for events. (PostgreSQL itself delivers equal notifications of
one transaction once, so they are doubled where they arrive.)
`dry_run`: whenever a story on virtual time waits, `workflow replay` must find that its code fits what is recorded.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from engine.dry_run.replaying import replay_open
from engine.dry_run.verdict import Verdict
from engine.models import Instance
from engine.replay.cycle import Cycle
from engine.testing.parts import ForgetfulCycle
from engine.worker import claims
from engine.worker.cycle_host import CycleHost
from engine.worker.shift import Shift
from tests import stories

A_MOMENT = 0.003  # seconds: after what the first one caused


def plain(patch: pytest.MonkeyPatch) -> None:
    """Nothing is changed."""


def shift(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(stories, "is_virtual", False)


def forgetful(patch: pytest.MonkeyPatch) -> None:
    shift(patch)
    patch.setattr(claims, "Cycle", ForgetfulCycle)


def duplicate(patch: pytest.MonkeyPatch) -> None:
    shift(patch)
    wake, poke, call_at = Shift._on_wake, CycleHost.poke, CycleHost.call_at
    on_signals, on_events = Cycle.on_signals, Cycle.on_events

    def wake_twice(one: Shift, payload: str) -> None:
        wake(one, payload)
        one._loop.call_later(A_MOMENT, wake, one, payload)

    def poke_twice(host: CycleHost, cycle: Cycle) -> None:
        poke(host, cycle)
        host._loop.call_soon(host._advance, cycle)

    def call_twice(host: CycleHost, cycle: Cycle, when_us: int) -> None:
        call_at(host, cycle, when_us)
        # This one is not replaced: it also comes when the cycle waits for something else, or has left.
        seconds = host.clock.seconds_until(when_us)
        host._loop.call_later(seconds + A_MOMENT, poke_twice, host, cycle)

    def signal_twice(cycle: Cycle, *said: Any) -> None:
        on_signals(cycle, *said)
        on_signals(cycle, *said)

    def answer_twice(cycle: Cycle, *said: Any) -> None:
        on_events(cycle, *said)
        if not cycle.events.is_reading:  # otherwise it would be the answer to another question
            on_events(cycle, *said)

    patch.setattr(Shift, "_on_wake", wake_twice)
    patch.setattr(CycleHost, "poke", poke_twice)
    patch.setattr(CycleHost, "call_at", call_twice)
    patch.setattr(Cycle, "on_signals", signal_twice)
    patch.setattr(Cycle, "on_events", answer_twice)


def dry_run(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(stories, "whenever_idle", _replay)


# Its code is another one at each replay.
DIFFERS_ON_PURPOSE = "test_a_name_that_differs_on_every_replay_is_a_new_step_each_time"


def _replay() -> None:
    for found in replay_open(timeout=timedelta(seconds=30)):
        if found.verdict is not Verdict.FITS:
            instance = Instance.objects.get(workflow=found.workflow, id=found.id)
            assert isinstance(instance.pause_reason, dict), found  # the engine came to the same result
            assert instance.pause_reason["type"] == found.error, found


PROFILES = {one.__name__: one for one in (plain, shift, forgetful, duplicate, dry_run)}
