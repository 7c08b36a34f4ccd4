"""The address of a week: which week, in which time zone, of which workflow. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Self
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.conf import settings
from django.http import QueryDict
from django.urls import reverse

from engine.values.cron import MAX_TIMEZONE

YEARS = range(2000, 2200)
WEEK = timedelta(days=7)
VIEW = "week"
_WEEK = re.compile(r"([0-9]{4})-W([0-9]{2})")


@dataclass(frozen=True, slots=True)
class WeekAddress:
    """What an address asks for. Without a Monday it is the present week, whichever that is when it is drawn."""

    monday: date | None = None
    zone: str = ""
    workflow: str = ""

    @classmethod
    def of(cls, given: QueryDict) -> Self:
        """Read it. What cannot be read is left out."""
        zone = given.get("zone", "")
        return cls(_monday(given.get("week", "")), zone if _is_zone(zone) else "", given.get("workflow", ""))

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of the address, without what is usual."""
        week = "" if self.monday is None else name_of(self.monday)
        given = {"view": VIEW, "week": week, "zone": self.zone, "workflow": self.workflow}
        return {name: value for name, value in given.items() if value}

    @property
    def url(self) -> str:
        return f"{reverse('studio:schedules')}?{urlencode(self.parameters, safe='/')}"

    @property
    def tz(self) -> ZoneInfo:
        return ZoneInfo(self.zone or settings.TIME_ZONE)

    def monday_at(self, now: datetime) -> date:
        """Return the first day of the week that it shows."""
        today = now.astimezone(self.tz).date()
        return self.monday or today - timedelta(days=today.weekday())

    def at(self, monday: date | None) -> Self:
        """Return the address of another week. One that no address can name is this one."""
        return replace(self, monday=monday) if monday is None or monday.year in YEARS else self


def name_of(monday: date) -> str:
    """Return the ISO name of a week."""
    year, number, _ = monday.isocalendar()
    return f"{year}-W{number:02}"


def begin_of(day: date, zone: ZoneInfo) -> datetime:
    """Return when a day begins, in UTC."""
    return datetime.combine(day, time(), zone).astimezone(UTC)


def _monday(text: str) -> date | None:
    found = _WEEK.fullmatch(text)
    if found is None or int(found[1]) not in YEARS:
        return None
    try:
        return date.fromisocalendar(int(found[1]), int(found[2]), 1)
    except ValueError:  # few years have a week 53
        return None


def _is_zone(text: str) -> bool:
    # zoneinfo raises various errors for a name that is a folder, a path, or empty.
    try:
        return 0 < len(text) <= MAX_TIMEZONE and bool(ZoneInfo(text))
    except (LookupError, ValueError, OSError):
        return False
