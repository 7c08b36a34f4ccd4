from shop import calls


def charge(number: str, cents: int, idempotency_key: str = "") -> str:
    calls.append(("charge", number, cents, idempotency_key))
    return f"{number}/{cents}"


def refund(charge: str, idempotency_key: str = "") -> None:
    calls.append(("refund", charge, idempotency_key))
