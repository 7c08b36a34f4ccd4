"""What people type to pause workflows, and to resume them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from django.http import QueryDict

from engine.steer.audit import MAX_REASON
from engine.steer.pauses import MOST

FIRST = "10"  # to try with


@dataclass(frozen=True, slots=True)
class PauseForm:
    """Why workflows are paused. `problem` says what is wrong with it."""

    reason: str = ""
    problem: str = ""

    @classmethod
    def of(cls, given: QueryDict) -> Self:
        reason = _reason(given)
        return cls(reason, "" if reason else "Not paused. Enter a reason.")


@dataclass(frozen=True, slots=True)
class ResumeForm:
    """Whether all held instances go on or the oldest few of each workflow, and why."""

    is_some: bool = False
    count: str = FIRST
    reason: str = ""
    problem: str = ""

    @classmethod
    def of(cls, given: QueryDict) -> Self:
        is_some, count = given.get("how") == "some", given.get("count", FIRST).strip()[:12]
        is_number = count.isascii() and count.isdecimal() and 1 <= int(count) <= MOST
        wrong = f"Nothing was released. Enter a number from 1 to {MOST:,}."
        return cls(is_some, count, _reason(given), wrong if is_some and not is_number else "")

    @property
    def released(self) -> int | None:
        """How many of each workflow are released; None for all, which ends the pause."""
        return int(self.count) if self.is_some else None


def _reason(given: QueryDict) -> str:
    return given.get("reason", "").replace("\0", "").strip()[:MAX_REASON]
