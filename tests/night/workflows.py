"""Both charge customers at a provider: a real server, or none, on a port of this machine."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from engine import WorkflowStep, workflow


@dataclass
class Payment:
    """Where the provider listens, and how often it is asked."""

    port: int
    region: str
    attempts: int = 1
    card: str = "4711"


@workflow(search=["params.region"])
async def take_payment(step: WorkflowStep, payment: Payment) -> str:
    """Charge a customer once."""
    await step.do("check the card", check, payment.card, max_attempts=1)
    return await step.do("charge", charge, payment.port, max_attempts=payment.attempts, delay="40 minutes")


@workflow(search=["params.region"])
async def renew_plan(step: WorkflowStep, payment: Payment) -> str:
    """Charge a customer for another month."""
    return await step.do("charge", charge, payment.port, max_attempts=payment.attempts, delay="40 minutes")


def check(card: str) -> None:
    if not card.isdigit():
        raise ValueError("The card has no number.")


def charge(port: int) -> str:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as provider:
            return provider.recv(100).decode()
    except OSError as error:
        raise ConnectionError("The provider does not answer.") from error
