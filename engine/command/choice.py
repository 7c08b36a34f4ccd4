"""Choose where answers come from: this project's database, or a Studio elsewhere that REPRISE_URL names."""

from __future__ import annotations

import os
from collections.abc import Callable

from engine.command.source import Source
from engine.command.subcommand import UsageError

URL = "REPRISE_URL"

_elsewhere: Callable[[], Source] | None = None


def use_elsewhere(make: Callable[[], Source]) -> None:
    """Ask this source from now on if REPRISE_URL is set. The Studio calls it: the engine knows nothing of HTTP."""
    global _elsewhere
    _elsewhere = make


def chosen_source() -> Source:
    """Return the source. Raises UsageError if REPRISE_URL is set and nothing here speaks HTTP."""
    if not os.environ.get(URL):
        from engine.command.local.source import LocalSource

        return LocalSource()
    if _elsewhere is None:
        raise UsageError(
            f'{URL} is set, and only the app "studio" can ask a Studio elsewhere. Add it to INSTALLED_APPS, use '
            f"`reprise workflow`, or unset {URL} to use the database of this project."
        )
    return _elsewhere()
