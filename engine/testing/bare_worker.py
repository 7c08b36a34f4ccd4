"""What every worker of a test has of a shift: the real host of cycles and the real claimer."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from engine.replay.cycle import Cycle
from engine.replay.host import Claimed
from engine.replay.records.history import History
from engine.testing.parts import UnlimitedSlices
from engine.worker.bodies.attempt import Bodies
from engine.worker.claims import Claimer, make_cycle
from engine.worker.cycle_host import CycleHost
from engine.worker.database.clock import DatabaseClock
from engine.worker.database.journal import Journal
from engine.worker.database.reader import Reader
from engine.worker.quarantined import TakesQuarantined

SLOTS = 10_000
_numbers = itertools.count(1)


class BareWorker:
    """Claims and drives like a shift, without a lock, a heartbeat or connections of its own.

    A subclass builds the reader, the journal, the bodies and the slices from what the test gives it, and calls
    `_assemble`. It decides itself when to look, claim and end.
    """

    def __init__(self) -> None:
        self.worker_id = next(_numbers)

    def _assemble(
        self,
        name: str,
        reader: Reader,
        journal: Journal,
        *,
        clock: DatabaseClock,
        bodies: Bodies,
        slices: UnlimitedSlices,
        takes_quarantined: TakesQuarantined = TakesQuarantined.WHEN_EMPTY,
        on_notices: Callable[[], None],
    ) -> None:
        self._reader = reader
        self._journal = journal
        self._bodies = bodies
        self._host = CycleHost(
            name,
            {},
            clock=clock,
            slices=slices,  # type: ignore[arg-type]
            bodies=bodies,
            reader=reader,
            journal=journal,
        )
        self._claimer = Claimer(
            self._host,
            reader,
            slots=SLOTS,
            takes_quarantined=takes_quarantined,
            on_changed=lambda keys: None,  # no page watches
            on_notices=on_notices,
            make_cycle=self._make_cycle,
        )

    def _make_cycle(self, host: CycleHost, claimed: Claimed, history: History) -> Cycle:
        return make_cycle(host, claimed, history)
