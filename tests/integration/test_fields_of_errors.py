"""An error of a wrong argument says which one it is, by the name that the HTTP API has for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.models import Instance
from engine.steer import launch, requests
from engine.values.errors import InvalidNameError, RepriseError
from tests.sample.workflows import process_order, tick
from tests.studio import factories

pytestmark = pytest.mark.django_db

ORDER = {"customer": "Ada", "items": [{"sku": "pen", "quantity": 2}]}
LONG, NUL = "x" * 2001, "a\0b"


def field_of(call: Callable[[], object]) -> str:
    with pytest.raises(RepriseError) as caught:
        call()
    return caught.value.field


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"params": {**ORDER, "items": [{"sku": "pen", "quantity": "x"}]}}, "params"),
        ({"params": {**ORDER, "customer": "x" * 5_000_000}}, "params"),
        ({"params": {**ORDER, "customer": NUL}}, "params"),
        ({"id": "a/b"}, "id"),
        ({"id": 5}, "id"),
        ({"tags": "eu"}, "tags"),
        ({"tags": ["eu", ""]}, "tags"),
        ({"tags": [str(n) for n in range(51)]}, "tags"),
        ({"retention": {"done": "7d"}}, "retention"),
        ({"retention": {"complete": "1 fortnight"}}, "retention"),
        ({"reason": 5}, "reason"),
        ({"reason": LONG}, "reason"),
        ({"reason": NUL}, "reason"),
        ({"by": "x" * 151}, ""),
    ],
)
def test_of_a_start(given: dict[str, Any], field: str) -> None:
    options = {"params": ORDER, **given}
    assert field_of(lambda: launch.start(process_order, options.pop("params"), **options)) == field


def test_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    assert field_of(lambda: tick.start_many([{}] * 10_001)) == "items"
    monkeypatch.setattr(launch, "MAX_BATCH_BYTES", 7)
    assert field_of(lambda: tick.start_many([{}, {}])) == "items"
    assert field_of(lambda: tick.start_many([], reason=LONG)) == "reason"


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"type": ""}, "type"),
        ({"type": "reprise:x"}, "type"),
        ({"type": "order-approved", "payload": {"approved": "perhaps"}}, "payload"),
        ({"payload": NUL}, "payload"),
        ({"payload": "x" * 5_000_000}, "payload"),
        ({"payload": object()}, "payload"),
        ({"dedup_key": ""}, "dedup_key"),
        ({"dedup_key": "x" * 1_000}, "dedup_key"),
        ({"dedup_key": "reprise:x"}, "dedup_key"),
        ({"reason": LONG}, "reason"),
    ],
)
def test_of_an_event(given: dict[str, Any], field: str) -> None:
    instance, options = tick.start(), {"type": "a", **given}
    assert (
        field_of(lambda: instance.send_event(options.pop("type"), options.pop("payload", None), **options))
        == field
    )


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"value": {"refund": "perhaps", "amount": 1}}, "answer"),
        ({"value": NUL}, "answer"),
        ({"value": "x" * 5_000_000}, "answer"),
        ({"comment": LONG}, "comment"),
        ({"comment": NUL}, "comment"),
        ({"comment": 5}, "comment"),
        ({"reason": NUL}, "reason"),
        ({"by": ""}, ""),
    ],
)
def test_of_an_answer(given: dict[str, Any], field: str) -> None:
    asking = _asking()
    options = {"value": {"refund": True, "amount": 1}, "by": "ada", **given}
    assert field_of(lambda: requests.answer(asking, "decide", options.pop("value"), **options)) == field


def _asking() -> Instance:
    instance = factories.instance("waiting", workflow="process-order")
    factories.request(instance)
    return instance


@pytest.mark.parametrize(
    "act",
    [
        "pause",
        "resume",
        "terminate",
        "restart",
        "retry_step",
        "retry_rollback",
        "retry_now",
        "wake_now",
        "accept_code",
        "delete",
    ],
)
def test_of_an_action(act: str) -> None:
    assert field_of(lambda: getattr(tick.start(), act)(reason=LONG)) == "reason"


def test_of_a_step_that_is_decided() -> None:
    assert field_of(lambda: tick.start().fail_step("never", reason=LONG)) == "reason"
    assert field_of(lambda: tick.start().skip_step("never", reason=LONG)) == "reason"
    assert field_of(lambda: tick.start().skip_step("never", output=object())) == "output"
    assert field_of(lambda: tick.start().fail_step("never")) == "step"


def test_of_a_sleep_that_is_named() -> None:
    assert field_of(lambda: tick.start().wake_now("never")) == "step"


def test_of_a_restart_from_a_step() -> None:
    assert field_of(lambda: tick.start().restart(from_step="never")) == "from_step"


def test_is_none_where_no_argument_is_wrong() -> None:
    instance = tick.start(id="one")
    assert field_of(lambda: tick.start(id="one")) == ""
    assert field_of(instance.delete) == ""
    assert InvalidNameError("a tag", "", "It is empty.").field == ""
