"""Limit how many streams are open in a process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from studio.api.problems import ProblemError

MOST_OF_A_HOLDER = 250
MOST = 1_000
RETRY_AFTER_S = "5"

_open: Counter[str] = Counter()


def check(holder: str) -> None:
    """Raise ProblemError with 429 or 503 if no further stream may be opened."""
    headers = {"Retry-After": RETRY_AFTER_S}
    if _open[holder] >= MOST_OF_A_HOLDER:
        detail = f"The token has {MOST_OF_A_HOLDER} open streams, which is the limit. Close one of them."
        raise ProblemError(429, "too_many_streams", detail, headers=headers)
    if _open.total() >= MOST:
        raise ProblemError(503, "too_many_streams", "Too many streams are open. Try again.", headers=headers)


@contextmanager
def counted(holder: str) -> Iterator[None]:
    """Count a stream as open."""
    _open[holder] += 1
    try:
        yield
    finally:
        _open[holder] -= 1
        if not _open[holder]:
            del _open[holder]
