"""Limit how many requests a token may send: the headers are those of the IETF's draft on rate limits.

All processes share the counts. A process draws permits in small batches, so that not every request writes to the
database; permits that it has left over at the end of a minute are lost.
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, field
from datetime import timedelta

from engine.configuration import setting
from studio.access import throttle
from studio.access.throttle import Limit
from studio.api.problems import ProblemError

WITHIN = timedelta(minutes=1)
BATCHES = 50  # in a minute, at least
POLICY = "default"
MOST_KNOWN = 10_000  # principals that a process remembers


@dataclass(slots=True)
class Permits:
    """What a process has drawn for one principal."""

    left: int = 0
    remaining: int = 0  # that nobody has drawn, when this process drew
    ends_at: float = float("-inf")  # by the clock of this process
    is_used_up: bool = False  # by all processes, until it ends
    lock: threading.Lock = field(default_factory=threading.Lock)


_drawn: dict[str, Permits] = {}
_lock = threading.Lock()


def spend(principal: str) -> dict[str, str]:
    """Count a request. Return the headers for its answer. Raises ProblemError with 429 if the limit is reached."""
    most = setting("API_RATE")
    permits = _permits_of(principal)
    with permits.lock:  # of this principal only: others do not wait for its draw
        if permits.ends_at <= time.monotonic() or (permits.left <= 0 and not permits.is_used_up):
            _draw(permits, principal, most)
        is_over = permits.left <= 0
        permits.left = max(permits.left - 1, 0)
        remaining = permits.left + permits.remaining
        left_s = max(math.ceil(permits.ends_at - time.monotonic()), 1)
    headers = {
        "RateLimit-Policy": f'"{POLICY}";q={most};w={int(WITHIN.total_seconds())}',
        "RateLimit": f'"{POLICY}";r={remaining};t={left_s}',
    }
    if is_over:
        detail = f"More than {most} requests in a minute. Wait {left_s} s."
        raise ProblemError(429, "too_many_requests", detail, headers={**headers, "Retry-After": str(left_s)})
    return headers


def _permits_of(principal: str) -> Permits:
    with _lock:
        if principal not in _drawn and len(_drawn) >= MOST_KNOWN:
            _forget()
        return _drawn.setdefault(principal, Permits())


def _draw(permits: Permits, principal: str, most: int) -> None:
    batch = max(most // BATCHES, 1)
    (count,) = throttle.count([Limit(f"requests of {principal}", most, WITHIN)], by=batch)
    permits.ends_at = time.monotonic() + count.left.total_seconds()
    permits.left = max(min(batch, most - (count.n - batch)), 0)
    permits.remaining = max(most - count.n, 0)
    permits.is_used_up = permits.left <= 0


def _forget() -> None:
    now = time.monotonic()
    for name in [name for name, permits in _drawn.items() if permits.ends_at <= now]:
        del _drawn[name]
