"""Time and work in a test: workers run what is due, then the clock jumps to what is due next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

from asgiref.sync import AsyncToSync

from engine.models import Instance
from engine.replay.records.outcomes import micros
from engine.testing import waiting
from engine.testing.clock import StandingClock
from engine.testing.crashes import Crash
from engine.testing.errors import WorkflowTestError
from engine.testing.loop import StandingLoop
from engine.testing.worker import InlineWorker, Setting

MAX_MOVES = 10_000  # jumps of the clock in one run


class Running:
    """Runs what is in the database. Calls `give` each time to send what people and programs have prepared."""

    def __init__(self, setting: Setting, give: Callable[[], bool]) -> None:
        self._setting = setting
        self._give = give
        self._loop = StandingLoop(setting.clock)
        self.crashes: list[str] = []
        self.is_down = False

    @property
    def clock(self) -> StandingClock:
        return self._setting.clock

    def close(self) -> None:
        self._loop.close()

    def go_on(self, *, skips_time: bool) -> bool:
        """Run until nothing is due. Return False if that never happens."""
        self.is_down = False
        for _ in range(MAX_MOVES):
            self._work()
            if self.is_down:
                return True
            moment = waiting.next_moment(self._setting.mocks.timeouts(), skips_time=skips_time)
            if moment is None:
                return True
            self.clock.move_to(micros(moment))
        return False

    def pass_until(self, moment: datetime) -> None:
        """Run what is due until then, each at its time."""
        if moment < self.clock.now:
            said, now = moment.isoformat(), self.clock.now.isoformat()
            raise WorkflowTestError(f"The clock is at {now} and does not go back to {said}.")
        while not self.is_down:
            self._work()
            due = Instance.objects.filter(waiting.PARKED, wake_at__lte=moment)
            first = due.order_by("wake_at").values_list("wake_at", flat=True).first()
            if first is None:
                break
            self.clock.move_to(micros(first))
        self.clock.move_to(micros(moment))

    def _work(self) -> None:
        """Let a worker run everything that is due; if it dies, the next one continues."""
        while not self.is_down:
            died_of = self._live()
            if died_of is not None:
                self.crashes.append(str(died_of))
                self.is_down = died_of.stay_down
            elif not self._give():
                return

    def _live(self) -> Crash | None:
        """Let a worker run what is due. Return the crash that ended it, if any."""

        async def work() -> Crash | None:
            worker = InlineWorker(self._setting)
            await worker.work()
            return worker.died_of

        # If async code called the test, ORM calls of bodies run here, and not in the thread that waits for the test.
        outer = getattr(AsyncToSync.executors, "current", None)
        AsyncToSync.executors.current = None
        try:
            return self._loop.run_until_complete(work())
        finally:
            AsyncToSync.executors.current = outer


def refuse_a_running_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise WorkflowTestError(
        "A workflow is tested in sync code. Make the test a plain function, or put the whole `with` block into one; "
        "an async test of django.test.TestCase can call that through sync_to_async()."
    )
