"""Notice that code has changed, and test whether it can be loaded, before the programs are replaced."""

from __future__ import annotations

import os
from dataclasses import dataclass

from engine import workflows
from studio.environment import Environment
from studio.machine.account import Account
from studio.supervisor.places import places
from studio.supervisor.programs import Child
from studio.supervisor.trial import Result, Trial
from studio.supervisor.watch import Watch


@dataclass(frozen=True)
class Change:
    """The files that changed, and whether they can be loaded."""

    files: tuple[str, ...]
    result: Result

    @property
    def what(self) -> str:
        """Return the files in words."""
        first = os.path.relpath(self.files[0])
        others = len(self.files) - 1
        return f"{first} and {others} other{'s' * (others != 1)}" if others else first


class Reload:
    """Watches the code, and loads it in a process of its own when it has changed."""

    def __init__(self, environment: Environment, account: Account | None) -> None:
        self._watch = Watch(places())
        self._environment = environment
        self._account = account
        self._changed: set[str] = set()
        self._trial: Trial | None = None
        self._failure = ""
        self._workflows = len(workflows)

    def look(self, now: float) -> Change | None:
        """Return a change that was tested, once."""
        result = self._trial.result(now) if self._trial else None
        if changed := self._watch.changed(now, is_urgent=result is not None):
            self._changed.update(changed)
            self._failure = ""
            self._try(now)
            return None
        if result is None or self._watch.is_moving:  # it may be outdated already
            return None
        self.end()
        change = Change(tuple(sorted(self._changed)), self._judged(result))
        self._changed, self._failure = set(), ""
        return change

    def look_again(self, change: Change, failure: str, now: float) -> None:
        """Test a change again, since the programs could not load it.

        The code may have changed after the test; then the next test says what is wrong. If not, `failure` does.
        """
        self._changed.update(change.files)
        if self._trial is None:
            self._failure = failure
            self._try(now)

    def _try(self, now: float) -> None:
        self.end()
        self._trial = Trial(self._environment, self._account, now)

    def _judged(self, result: Result) -> Result:
        if result.places:
            self._watch.follow(result.places)
        if not result.failure and self._failure:
            return Result(self._failure)
        if not result.failure and self._workflows and not result.workflows:
            return Result("No workflow is left.")
        self._workflows = self._workflows if result.failure else result.workflows
        return result

    @property
    def child(self) -> Child | None:
        """The process that loads the code. What it prints must be waited for, or it waits for us."""
        return self._trial.child if self._trial else None

    def end(self) -> None:
        if self._trial is not None:
            self._trial.end()
            self._trial = None
