"""Whether a worker drains. Its row decides; the process remembers it while the row is gone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass
class Drain:
    """What the latest heartbeat read back: a drain of this worker, and of its cluster."""

    at: str | None = None  # as the database writes it
    by: str = ""
    reason: str = ""
    of_cluster: bool = False
    flag: Callable[[], bool] = lambda: False  # of a process without a row, for its cluster

    @property
    def is_on(self) -> bool:
        """Return whether nothing may be claimed."""
        return self.at is not None or self.of_cluster or self.flag()

    def values(self) -> dict[str, object]:
        """Return what a row that is written again begins with."""
        return {"drained_at": self.at, "drained_by": self.by, "drain_reason": self.reason}

    def learn(self, row: Sequence[Any]) -> bool:
        """Take over what a heartbeat returned. Return whether it changes what may be claimed."""
        was_on = self.is_on
        self.at, self.by, self.reason, of_cluster = row
        if of_cluster is not None:  # else the row of the cluster is gone, such as after an outage
            self.of_cluster = bool(of_cluster)
        return self.is_on != was_on
