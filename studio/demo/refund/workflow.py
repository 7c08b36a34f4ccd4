"""The workflow `refund`: an approval gate."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field, field_validator

from engine import Answer, RequestTimeoutError, WorkflowStep, workflow
from engine.durations import parse_duration
from studio.demo.refund import vouchers
from studio.demo.refund.vouchers import Voucher


class RefundParams(BaseModel):
    """What a customer wants back, and who may decide."""

    order: str = Field("A-4711", min_length=1, max_length=40, description="The number of the order.")
    customer: str = Field("ACME", min_length=1, max_length=80, description="Who gets the money.")
    cents: int = Field(124_000, gt=0, le=100_000_000, description="The amount that was paid, in cents.")
    reason: str = Field("The goods arrived damaged.", max_length=500, description="What the customer says.")
    deciders: list[str] = Field(
        [],
        max_length=20,
        description='Who is asked: names of users, or "group:finance". Without any, whoever may operate.',
    )
    decide_within: str = Field(
        "2 days", description='How long there is to decide, as in "30m"; after that nothing is paid.'
    )

    @field_validator("decide_within")
    @classmethod
    def _is_duration(cls, text: str) -> str:
        if not parse_duration(text, what="decide_within"):
            raise ValueError("Give people some time to decide.")
        return text


class Decision(BaseModel):
    """What somebody decided about a refund."""

    refund: bool = Field(title="Refund it", description="No sends the customer a refusal.")
    amount: float = Field(ge=0, le=1_000_000, title="Amount in €", description="A part of it will do.")
    pay_by: Literal["card", "voucher", "bank"] = Field("card", title="Pay by")
    note: str = Field("", max_length=300, title="Note to the customer")


class RefundReport(BaseModel):
    """How it ended. `voucher` is the name of what was written, null when nothing was paid."""

    outcome: Literal["paid", "refused", "expired"]
    cents: int = 0
    voucher: str | None = None
    decided_by: str = ""
    comment: str = ""


@workflow("refund")
async def refund(step: WorkflowStep, params: RefundParams) -> RefundReport:
    """Ask people whether to refund an order, and write the voucher that they decide on.

    The question stands under Approvals and on the page of the instance, with the form made from the type of the answer.
    The first answer counts. Without one in time nothing is paid.
    """
    given = await step.do("look-up", vouchers.given_before, params.customer)
    try:
        answer = await step.request(
            "decide",
            Decision,
            message=_question(params, given),
            assignees=params.deciders,
            timeout=params.decide_within,
        )
    except RequestTimeoutError:
        return RefundReport(outcome="expired")
    decision, by = answer.value, answer.answered_by
    if not decision.refund or not decision.amount:
        return RefundReport(outcome="refused", decided_by=by, comment=answer.comment)
    paid = _voucher(params, answer)
    file = await step.do("pay", vouchers.write, paid)
    return RefundReport(outcome="paid", cents=paid.cents, voucher=file, decided_by=by, comment=answer.comment)


def _question(params: RefundParams, given: int) -> str:
    times = "no refund" if not given else "one refund" if given == 1 else f"{given} refunds"
    return (
        f"Refund {params.cents / 100:,.2f} € to {params.customer} for order {params.order}?\n"
        f"“{params.reason}”\n{params.customer} has had {times} before."
    )


def _voucher(params: RefundParams, answer: Answer[Decision]) -> Voucher:
    return Voucher(
        order=params.order,
        customer=params.customer,
        cents=min(round(answer.value.amount * 100), params.cents),
        pay_by=answer.value.pay_by,
        note=answer.value.note,
        approved_by=answer.answered_by,
    )
