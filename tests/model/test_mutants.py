"""The simulation notices every guard that is taken out of the protocol: else its silence would prove nothing."""

from __future__ import annotations

import pytest

from tests.model.machine import Protocol
from tests.model.mutants import MUTANTS
from tests.model.tales import TALES, Teller, Untold

pytestmark = pytest.mark.second_tier


@pytest.mark.parametrize("name", MUTANTS)
def test_the_mutant_is_killed(protocol: type[Protocol], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    change, tale = MUTANTS[name]
    assert tale in TALES
    change(monkeypatch)
    assert not is_kept(protocol, tale)


def is_kept(protocol: type[Protocol], tale: str) -> bool:
    """Tell whether every promise is kept; whatever else is raised, by engine, database or oracle, is a no."""
    teller = Teller(protocol)
    try:
        TALES[tale](teller)
        teller.end()
    except Untold:
        raise
    except Exception:  # noqa: BLE001 - a mutant may fail in any way
        teller.stop()
        return False
    return True
