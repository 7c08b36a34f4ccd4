"""What the instances of an error have in common, in per cent."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from engine.status import failures

ODD = 20  # points between a share and the usual one


@dataclass(frozen=True, slots=True)
class Common:
    """A value that many of the failing instances have. `usual` is None if there is nothing to compare with."""

    what: str
    value: str
    count: int
    of: int
    percent: int
    usual: int | None

    @property
    def is_odd(self) -> bool:
        return self.usual is None or abs(self.percent - self.usual) >= ODD


def common_of(fingerprints: Collection[str], *, most: int = failures.MOST_COMPARED) -> tuple[Common, ...]:
    """Return what stands out, the least usual first. At most `most` instances are compared with as many others."""
    return tuple(
        Common(
            one.what,
            one.value[:12] if one.what == "code" else one.value,
            one.count,
            one.of,
            _percent(one.count, one.of),
            _percent(one.usual_count, one.usual_of) if one.usual_of else None,
        )
        for one in failures.shares(fingerprints, most=most)
    )


def _percent(count: int, of: int) -> int:
    return round(100 * count / of)
