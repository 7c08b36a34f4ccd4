"""The address of the charts: how much time, and which workflow. Nothing else holds state."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse

from studio.frame.addresses import WorkflowName, ignored

_WORKFLOW = re.compile(WorkflowName.regex)


@dataclass(frozen=True, slots=True)
class Range:
    """How far the charts go back, in steps that each have a value."""

    name: str
    word: str
    whole: timedelta
    step: timedelta
    each: str
    """One step, after "per"."""

    @property
    def short(self) -> str:
        """The name as a quantity: `24 h`."""
        return f"{self.name[:-1]} {self.name[-1]}"

    def since(self, now: datetime) -> datetime:
        """Return the beginning of the first step; the last one contains `now`."""
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        present = midnight + (now - midnight) // self.step * self.step
        return present + self.step - self.whole


def _range(name: str, word: str, each: str, *, hours: int, minutes: int) -> Range:
    return Range(name, word, timedelta(hours=hours), timedelta(minutes=minutes), each)


RANGES = {
    one.name: one
    for one in (
        _range("1h", "last hour", "minute", hours=1, minutes=1),
        _range("6h", "last 6 hours", "5 minutes", hours=6, minutes=5),
        _range("24h", "last 24 hours", "20 minutes", hours=24, minutes=20),
        _range("7d", "last 7 days", "2 hours", hours=7 * 24, minutes=120),
        _range("30d", "last 30 days", "6 hours", hours=30 * 24, minutes=360),
        _range("90d", "last 90 days", "day (UTC)", hours=90 * 24, minutes=1440),
    )
}
USUAL = RANGES["1h"]


@dataclass(frozen=True, slots=True)
class ChartsAddress:
    """What an address asks for. An empty workflow stands for all that the person may see."""

    range: Range = USUAL
    workflow: str = ""

    @classmethod
    def of(cls, given: QueryDict) -> Self:
        workflow = given.get("workflow", "")
        return cls(
            RANGES.get(given.get("range", ""), USUAL), workflow if _WORKFLOW.fullmatch(workflow) else ""
        )

    def among(self, names: Collection[str]) -> ChartsAddress:
        """Return it without its workflow if that is none of these."""
        return self if self.workflow in names else ChartsAddress(self.range)

    def ignored(self, given: QueryDict) -> list[str]:
        """Return what has no effect on these charts."""
        understood = {name for name in ("range", "workflow") if given.get(name, "") == self._value(name)}
        return ignored(given, understood)

    def _value(self, name: str) -> str:
        return self.range.name if name == "range" else self.workflow

    @property
    def parameters(self) -> dict[str, str]:
        """The address without what is usual."""
        found = {"range": "" if self.range is USUAL else self.range.name, "workflow": self.workflow}
        return {name: value for name, value in found.items() if value}

    @property
    def address(self) -> str:
        return self._url("studio:charts")

    @property
    def csv_address(self) -> str:
        return self._url("studio:charts-csv")

    @property
    def unfiltered(self) -> str:
        return ChartsAddress(self.range).address

    def of_workflow(self, name: str) -> str:
        return ChartsAddress(self.range, name).address

    def ranges(self) -> list[tuple[Range, str]]:
        """Return each range with the address that shows it."""
        return [(one, ChartsAddress(one, self.workflow).address) for one in RANGES.values()]

    def _url(self, name: str) -> str:
        given = urlencode(self.parameters)
        return reverse(name) + (f"?{given}" if given else "")
