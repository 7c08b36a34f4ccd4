"""How many requests a hook accepts: from its sender, and from strangers.

The signature is checked before anything is counted: strangers who share an address with a sender, such as that of a
proxy, cannot use up what the sender may do.
"""

from __future__ import annotations

import math
import time
from datetime import timedelta

from studio.access import throttle
from studio.access.throttle import Limit
from studio.api.problems import ProblemError
from studio.models import Webhook

WITHIN = timedelta(minutes=1)
WRONG_SIGNATURES = 60  # from one address in a minute
MOST_REMEMBERED = 10_000

_over: dict[str, float] = {}  # addresses that are over their limit, and until when


def spend(hook: Webhook) -> None:
    """Count a delivery. Raises ProblemError with 429 if the hook has accepted as many as it may."""
    (count,) = throttle.count([Limit(f"deliveries of webhook {hook.key}", hook.per_minute, WITHIN)])
    if count.is_over:
        detail = f"This webhook accepts {hook.per_minute} deliveries in a minute."
        raise _too_many(detail, count.left.total_seconds())


def count_wrong(address: str) -> None:
    """Count a request with a wrong signature. Raises ProblemError with 429 after too many from one address.

    Then the database is not asked again until the minute is over.
    """
    left_s = _over.get(address, 0.0) - time.monotonic()
    if left_s <= 0:
        limit = Limit(f"wrong signatures from {address}", WRONG_SIGNATURES, WITHIN)
        (count,) = throttle.count([limit])
        if not count.is_over:
            return
        left_s = count.left.total_seconds()
        if len(_over) >= MOST_REMEMBERED:
            _over.clear()
        _over[address] = time.monotonic() + left_s
    raise _too_many("Too many wrong signatures from this address.", left_s)


def _too_many(detail: str, left_s: float) -> ProblemError:
    seconds = str(max(1, math.ceil(left_s)))
    return ProblemError(429, "too_many_requests", detail, headers={"Retry-After": seconds})
