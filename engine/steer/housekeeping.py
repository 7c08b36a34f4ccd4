"""What other apps delete regularly, next to the engine's own `retention`.

An app adds its sweepers in `ready()`. A worker runs them every hour, after `retention.sweep`
(`engine.worker.periodic`). Several workers may do so at once.
"""

from __future__ import annotations

from collections.abc import Callable

_sweepers: list[Callable[[], object]] = []


def add(sweeper: Callable[[], object]) -> None:
    """Run this every hour from now on. It should take a minute at most, and never wait for a lock."""
    _sweepers.append(sweeper)


def sweepers() -> tuple[Callable[[], object], ...]:
    """Return what was added."""
    return tuple(_sweepers)
