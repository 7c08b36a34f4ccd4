"""A payment service that may take the money and not answer. A key makes a charge one, however often it is asked for."""

from engine import RollbackContext
from shop import calls

unanswered = 0  # how many of the next charges get no answer
taken: dict[str, str] = {}  # by idempotency key


def charge(number: str, cents: int, idempotency_key: str = "") -> str:
    global unanswered
    if idempotency_key not in taken:
        calls.append(("charge", number, cents))
    if idempotency_key:
        taken[idempotency_key] = number
    if unanswered:
        unanswered -= 1
        raise TimeoutError("The payment service did not answer.")
    return f"ch_{number}"


def refund(ctx: RollbackContext) -> None:
    calls.append(("refund", ctx.output))


def pay_back(number: str) -> None:
    """Return what was paid for an order, for whatever reason."""
    calls.append(("pay back", number))
