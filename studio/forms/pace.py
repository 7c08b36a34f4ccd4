"""How fast a bulk job goes, as a form asks for it."""

from __future__ import annotations

from collections.abc import Mapping

PACES: dict[str, dict[str, int]] = {
    "all": {},
    "ten": {"at_once": 10},
    "ask": {"ask_after": 1},
}


def pace_of(given: Mapping[str, str]) -> str:
    """Return the chosen pace; the first if none was chosen that exists."""
    pace = given.get("pace", "")
    return pace if pace in PACES else next(iter(PACES))
