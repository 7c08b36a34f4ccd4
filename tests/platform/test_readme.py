"""The README's workflow, run as it is printed."""

import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tests.live import PROJECT, LiveStack
from tests.shots.shop import write_shop

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

START = """
from shop.workflows import Order, ship_order
print(ship_order.start(Order(number="A-1", cents=990)).pk)
"""
STEPS = "SELECT name, status FROM engine_step ORDER BY seq"


def test_the_readmes_workflow_charges_and_sleeps(
    make_stack: Callable[..., LiveStack], tmp_path: Path
) -> None:
    write_shop(tmp_path)
    stack = make_stack(REPRISE_APPS="shop", PYTHONPATH=f"{PROJECT}:{tmp_path}").start()
    stack.django(START)

    expected = [("reserve", "complete"), ("charge", "complete"), ("cool-down", "waiting")]
    with psycopg.connect(stack.dsn(), autocommit=True) as connection:
        deadline = time.monotonic() + 60
        while (steps := connection.execute(STEPS).fetchall()) != expected:
            assert time.monotonic() < deadline, f"{steps}\n{stack.output()}"
            time.sleep(0.1)
