"""Quantiles of durations that were counted in buckets: from 1 ms on, each wider than the one before by one ratio."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import accumulate
from math import ceil


def quantiles(amounts: Mapping[int, int], shares: Sequence[float], *, ratio: float) -> list[timedelta]:
    """Return for each share how long at most it took; nothing if there are none.

    It is the geometric middle of a bucket: it differs from what is in it by a factor of at most the root of `ratio`.
    """
    buckets = sorted(bucket for bucket, amount in amounts.items() if amount > 0)
    so_far = [*accumulate(amounts[bucket] for bucket in buckets)]
    if not buckets:
        return []
    found = (buckets[bisect_left(so_far, max(1, ceil(share * so_far[-1])))] for share in shares)
    return [timedelta(milliseconds=ratio ** (bucket + 0.5)) for bucket in found]
