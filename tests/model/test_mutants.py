"""The simulation notices every guard that is taken out of the protocol: else its silence would prove nothing."""

from __future__ import annotations

import contextlib

import pytest

from tests.model.machine import Protocol
from tests.model.mutants import MUTANTS
from tests.model.tales import TALES, Teller


@pytest.mark.parametrize("name", MUTANTS)
def test_the_mutant_is_killed(protocol: type[Protocol], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    change, tale = MUTANTS[name]
    change(monkeypatch)
    assert not is_kept(protocol, tale)


def is_kept(protocol: type[Protocol], tale: str) -> bool:
    """Tell whether every promise is kept; whatever is raised, by the engine, the database or the oracle, is a no."""
    with contextlib.suppress(Exception):
        teller = Teller(protocol)
        try:
            TALES[tale](teller)
        finally:
            teller.end()
        return True
    return False
