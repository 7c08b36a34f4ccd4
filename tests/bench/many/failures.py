"""Errors as bodies of a shop raise them: few kinds, with numbers and ids that differ in every message."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from engine.values.error_record import ErrorRecord
from engine.values.fingerprint import LOST, LOST_MESSAGE, Failed, failed
from tests.bench.many.lines import NULL, stored


@dataclass(frozen=True, slots=True)
class Kind:
    """An error: its type, where it is raised, and a message from a number of the instance and a random one."""

    type: str
    line: str
    message: Callable[[int, Random], str]
    share: int
    status: str = "errored"
    is_final: bool = False


BURST = Kind(
    "PaymentGatewayError",
    "raise PaymentGatewayError(answer)",
    lambda number, rng: (
        f"Gateway eu-3 answered 503 after {rng.randint(30_000, 30_999)} ms (request req_{rng.getrandbits(48):012x}, "
        f"customer cus_{number})"
    ),
    0,
)
KINDS = (
    Kind(
        "ConnectTimeout",
        "answer = session.post(url, json=body, timeout=30)",
        lambda number, rng: (
            "HTTPSConnectionPool(host='api.carrier.example', port=443): Max retries exceeded with url: "
            f"/v2/shipments/{number} (Caused by ConnectTimeoutError: timed out after {rng.randint(3000, 31000)} ms)"
        ),
        300,
    ),
    Kind(
        "PaymentGatewayError",
        "raise PaymentGatewayError(answer)",
        lambda number, rng: (
            f"Gateway eu-{rng.randint(1, 4)} answered {rng.choice((500, 502, 503))} after "
            f"{rng.randint(80, 29_000)} ms (request req_{rng.getrandbits(48):012x}, customer cus_{number})"
        ),
        200,
    ),
    Kind(
        "OperationalError",
        "cursor.execute(statement, values)",
        lambda number, rng: (
            f'connection to server at "10.0.{rng.randint(0, 3)}.{rng.randint(2, 250)}", port 5432 failed: '
            "Connection refused"
        ),
        120,
    ),
    Kind(
        "StockError",
        "raise StockError(sku, left, wanted)",
        lambda number, rng: (
            f"Only {rng.randint(0, 4)} of sku-{rng.randint(1000, 1400)} left in warehouse "
            f"{rng.randint(1, 9)}, order-{number} wants {rng.randint(5, 12)}"
        ),
        100,
        is_final=True,
    ),
    Kind(
        "KeyError",
        'weight = weights[line["sku"]]',
        lambda number, rng: f"'sku-{rng.randint(1000, 9999)}'",
        80,
    ),
    Kind(
        "ValidationError",
        "address = Address.model_validate(found)",
        lambda number, rng: (
            f"1 validation error for Address\npostcode\n  String should match pattern '^[0-9]{{5}}$' "
            f"[type=string_pattern_mismatch] (customer {rng.getrandbits(128):032x})"
        ),
        60,
        is_final=True,
    ),
    Kind(
        "AddressNotFound",
        "raise AddressNotFound(line)",
        lambda number, rng: (
            f"Keine Straße „Müllerstraße {rng.randint(1, 300)}“ in {rng.randint(10_000, 99_999)} Köln"
        ),
        40,
        is_final=True,
    ),
    Kind(
        "StepTimeoutError",
        "",
        lambda number, rng: "Execution timed out after 10 minutes.",
        60,
        status="timed_out",
    ),
    Kind("", "", lambda number, rng: "", 40, status="lost"),
)
_SHARES = [kind.share for kind in KINDS]


def draw(rng: Random) -> Kind:
    return rng.choices(KINDS, _SHARES)[0]


def of_attempt(kind: Kind, message: str, step: str, number: int) -> str:
    """Return the error of an attempt; a lost one has no error."""
    if kind.status == "lost":
        return NULL
    trace = _trace(step, kind, message) if kind.line else ""
    return _record(kind, message, trace, step, number)


def of_instance(kind: Kind, message: str, workflow: str, step: str, attempts: int) -> str:
    """Return the error of an instance whose handler has not caught the error of a step."""
    plural = "" if attempts == 1 else "s"
    trace = (
        "Traceback (most recent call last):\n"
        f'  File "/srv/shop/flows/{_module(workflow)}.py", line {len(workflow) * 4 + len(step)}, in handler\n'
        f'    await step.do("{step}", {_module(step)}, params)\n'
        f'StepError: Step "{step}" failed after {attempts} attempt{plural}: {kind.type}: {message}'
    )
    return _record(kind, message, trace, step, attempts)


def group_of(kind: Kind, message: str, workflow: str, step: str) -> Failed:
    """Return the group of an attempt that failed so."""
    if kind.status == "lost":
        return failed(ErrorRecord(LOST, LOST_MESSAGE), workflow=workflow, step=step)
    trace = _trace(step, kind, message) if kind.line else ""
    return failed(ErrorRecord(kind.type, message, traceback=trace), workflow=workflow, step=step)


def _record(kind: Kind, message: str, trace: str, step: str, attempts: int) -> str:
    record = ErrorRecord(kind.type, message, {"timeout": 600.0} if kind.status == "timed_out" else {}, trace)
    return stored(json.dumps({**record.to_json(), "step": step, "attempts": attempts}, ensure_ascii=False))


def _trace(step: str, kind: Kind, message: str) -> str:
    return (
        "Traceback (most recent call last):\n"
        '  File "/srv/venv/lib/python3.11/site-packages/engine/worker/bodies/attempt.py", line 226, in _call_sync\n'
        "    value = running.fn(*args, **kwargs)\n"
        f'  File "/srv/shop/steps/{_module(step)}.py", line {20 + len(step)}, in {_module(step)}\n'
        "    return client.call(order)\n"
        f'  File "/srv/shop/clients/{kind.type.lower()}.py", line {40 + len(kind.line)}, in call\n'
        f"    {kind.line}\n"
        f"{kind.type}: {message}"
    )


def _module(name: str) -> str:
    return name.replace("-", "_")
