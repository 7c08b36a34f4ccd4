"""The workflow `refund`: people decide, in the Studio's inbox."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from engine import RequestTimeoutError, StepContext, WorkflowStep, workflow
from studio.demo import machine
from studio.demo.duration import Duration


class RefundParams(BaseModel):
    """What a customer wants back, and who may decide."""

    order: str = Field("A-4711", min_length=1, max_length=40, description="The number of the order.")
    customer: str = Field("ACME", min_length=1, max_length=80, description="Who gets the money.")
    cents: int = Field(124_000, gt=0, le=100_000_000, description="The amount that was paid, in cents.")
    reason: str = Field("The goods arrived damaged.", max_length=500, description="What the customer says.")
    deciders: list[str] = Field(
        [],
        max_length=20,
        description='Who may decide: user names or "group:finance". Empty: every operator.',
    )
    decide_within: Duration = Field(
        "2 days", description='Time to decide, such as "30m". After that, nothing is paid.'
    )


class Decision(BaseModel):
    """What a person decides about a refund: the fields of the form."""

    refund: bool = Field(title="Refund it", description="No refuses the refund.")
    amount: float = Field(ge=0, le=1_000_000, title="Amount in €", description="All of it, or a part.")
    pay_by: Literal["card", "voucher", "bank"] = Field("card", title="Pay by")
    note: str = Field("", max_length=300, title="Note to the customer")


class Voucher(BaseModel):
    """What to pay, how, and who approved it."""

    order: str
    customer: str
    cents: int
    pay_by: str
    note: str
    approved_by: str


class RefundReport(BaseModel):
    """How it ended. `voucher` is the name of the file that was written; null when nothing was paid."""

    outcome: Literal["paid", "refused", "expired"]
    cents: int = 0
    voucher: str | None = None
    decided_by: str = ""
    comment: str = ""


@workflow("refund")
async def refund(step: WorkflowStep, params: RefundParams) -> RefundReport:
    """Ask people whether to refund an order, and write the voucher that they decide on.

    The question appears under Approvals and on the page of the instance. Its form is made from the type of the
    answer, and the first answer counts. If nobody answers in time, nothing is paid.
    """
    previous = await step.do("look-up", count_refunds, params.customer)
    message = question(params, previous)
    try:
        answer = await step.request(
            "decide", Decision, message=message, assignees=params.deciders, timeout=params.decide_within
        )
    except RequestTimeoutError:
        return RefundReport(outcome="expired")

    decision, by, comment = answer.value, answer.answered_by, answer.comment
    if not decision.refund or not decision.amount:
        return RefundReport(outcome="refused", decided_by=by, comment=comment)
    voucher = Voucher(
        order=params.order,
        customer=params.customer,
        cents=min(round(decision.amount * 100), params.cents),
        pay_by=decision.pay_by,
        note=decision.note,
        approved_by=by,
    )
    file = await step.do("pay", write_voucher, voucher)
    return RefundReport(outcome="paid", cents=voucher.cents, voucher=file, decided_by=by, comment=comment)


def question(params: RefundParams, previous: int) -> str:
    """Return the text above the form. It runs again on every replay, so it uses only params and results of steps."""
    times = "no refund" if not previous else "one refund" if previous == 1 else f"{previous} refunds"
    return (
        f"Refund {params.cents / 100:,.2f} € to {params.customer} for order {params.order}?\n"
        f"“{params.reason}”\n"
        f"{params.customer} has had {times} before."
    )


def count_refunds(customer: str) -> int:
    """Count the refunds that a customer has had."""
    vouchers = [Voucher.model_validate_json(path.read_text()) for path in folder().glob("*.json")]
    return sum(voucher.customer == customer for voucher in vouchers)


def write_voucher(voucher: Voucher, ctx: StepContext) -> str:
    """Write the voucher once: the key, and so the file, is the same on every attempt."""
    path = folder() / f"{ctx.idempotency_key}.json"
    draft = path.with_suffix(f".{ctx.attempt}")
    draft.write_text(voucher.model_dump_json(indent=2))
    draft.replace(path)  # atomic: nobody reads half a voucher
    return path.name


def folder() -> Path:
    return machine.folder("refunds")
