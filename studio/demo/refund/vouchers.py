"""The vouchers that refunds write: REPRISE_HOME/refunds/KEY.json, one a refund, however often it is tried."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from pydantic import BaseModel, ValidationError

from engine import StepContext


class Voucher(BaseModel):
    """What is to be paid, by what, and who said so."""

    order: str
    customer: str
    cents: int
    pay_by: str
    note: str
    approved_by: str


def given_before(customer: str) -> int:
    """Count the refunds that a customer has had."""
    return sum(voucher.customer == customer for voucher in _all())


def write(voucher: Voucher, ctx: StepContext) -> str:
    """Write it once: the key is the same on every attempt, so another one finds what this one wrote."""
    path = _folder() / f"{ctx.idempotency_key}.json"
    unfinished = path.with_suffix(f".{ctx.attempt}")
    unfinished.write_text(voucher.model_dump_json(indent=2))
    unfinished.replace(path)
    return path.name


def _all() -> Iterator[Voucher]:
    for path in _folder().glob("*.json"):
        try:
            yield Voucher.model_validate_json(path.read_text())
        except (OSError, ValidationError):
            continue  # not ours, or being taken away


def _folder() -> Path:
    folder = Path(settings.ENVIRONMENT.home) / "refunds"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
