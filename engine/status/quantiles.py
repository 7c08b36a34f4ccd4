"""Quantiles of durations that were counted in buckets: from 1 ms on, each wider than the one before by one ratio."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from itertools import accumulate
from math import ceil


def quantile(amounts: Mapping[int, int], share: float, *, ratio: float) -> timedelta | None:
    """Return how long at most this share took, or None if there are none.

    It is the geometric middle of a bucket: it differs from what is in it by a factor of at most the root of `ratio`.
    """
    buckets = sorted(bucket for bucket, amount in amounts.items() if amount > 0)
    so_far = list(accumulate(amounts[bucket] for bucket in buckets))
    if not buckets:
        return None
    rank = max(1, ceil(share * so_far[-1]))
    found = next(bucket for bucket, reached in zip(buckets, so_far, strict=True) if reached >= rank)
    return timedelta(milliseconds=ratio ** (found + 0.5))
