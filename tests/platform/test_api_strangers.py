"""Strangers who ask the API as fast as they can, with wrong tokens or without, delay no program with a token."""

from __future__ import annotations

import pytest

from tests.live import LiveStack
from tests.platform.delays import least_delayed_of
from tests.platform.programs import program

pytestmark = [pytest.mark.process, pytest.mark.second_tier]


@pytest.mark.parametrize("name", ["API", "wrong tokens", "1 MiB with wrong tokens", "passwords"])
def test_two_dozen_strangers_delay_no_program(api_stack: LiveStack, name: str) -> None:
    """The limit is that of pages: see test_anonymous_queue."""
    best = least_delayed_of(api_stack, program(api_stack), name)
    assert best.pressed <= 3 * best.quiet + 0.1
