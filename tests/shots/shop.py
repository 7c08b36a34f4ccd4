"""The shop of the pictures: the README's workflow, with a card service that answers all but one order."""

from __future__ import annotations

import re
from pathlib import Path

from tests.live import PROJECT

PAYMENTS = '''
import time

from engine import RollbackContext


class CardServiceTimeout(Exception):
    """Nobody answered."""


def charge(number: str, cents: int) -> str:
    time.sleep(0.4)
    if number == "A-4711":
        raise CardServiceTimeout("no answer from the card service within 5 s")
    return f"ch_{number}"


def refund(ctx: RollbackContext) -> None:
    pass
'''
STOCK = """
import time

from engine import RollbackContext


def reserve(number: str) -> str:
    time.sleep(0.1)
    return "shelf 7"


def release(ctx: RollbackContext) -> None:
    pass


def ship(number: str, box: str) -> None:
    time.sleep(0.1)
"""


def readme_workflow() -> str:
    """Return the code of the README's workflow."""
    text = (PROJECT / "README.md").read_text()
    found = re.search(r"## A workflow\n.*?```python\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found[1]


def write_shop(directory: Path) -> None:
    """Write the package `shop`."""
    shop = directory / "shop"
    shop.mkdir()
    (shop / "__init__.py").write_text("")
    (shop / "payments.py").write_text(PAYMENTS)
    (shop / "stock.py").write_text(STOCK)
    (shop / "workflows.py").write_text(readme_workflow())
