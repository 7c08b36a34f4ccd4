"""The demo `refund`: people decide, and one voucher is written."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from engine import workflows
from engine.models import Instance, Step
from engine.steer.requests import answer
from tests.stories import run_to_end, running_shift, wait_for
from tests.travel import age


@pytest.fixture
def refund(engine_db: None, settings: Any, tmp_path: Path) -> Any:
    import_module("studio.demo.workflows")
    settings.REPRISE = settings.REPRISE | {"HOME": tmp_path}
    return workflows["refund"]


def decided(instance: Instance, value: dict[str, Any]) -> Instance:
    with running_shift():
        wait_for(instance, "waiting")
        answer(instance, "decide", value, by="ana", comment="photo is clear")
        return wait_for(instance)


def test_a_refund_is_paid_as_somebody_decided_and_never_more_than_was_paid(
    refund: Any, tmp_path: Path
) -> None:
    first = decided(refund.start({}), {"refund": True, "amount": 100, "pay_by": "bank"})
    assert (first.output["outcome"], first.output["cents"], first.output["decided_by"]) == (
        "paid",
        10_000,
        "ana",
    )
    voucher = json.loads((tmp_path / "refunds" / first.output["voucher"]).read_text())
    assert (voucher["customer"], voucher["pay_by"], voucher["approved_by"]) == ("ACME", "bank", "ana")

    second = decided(refund.start({}), {"refund": True, "amount": 9_999})
    assert second.output["cents"] == 124_000
    message = Step.objects.get(instance=second, name="decide").options["message"]
    assert message.startswith("Refund 1,240.00 € to ACME for order A-4711?")
    assert "one refund before" in message


@pytest.mark.parametrize(
    ("value", "outcome"), [({"refund": False, "amount": 0}, "refused"), (None, "expired")]
)
def test_a_refused_or_forgotten_refund_pays_nothing(
    refund: Any, tmp_path: Path, value: Any, outcome: str
) -> None:
    instance = refund.start({"decide_within": "1h"})
    if value is None:
        with running_shift():
            wait_for(instance, "waiting")
        age(instance, hours=2)
        run_to_end(instance)
    else:
        decided(instance, value)
    assert instance.output["outcome"] == outcome
    assert not list((tmp_path / "refunds").glob("*.json"))
