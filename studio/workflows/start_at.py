"""When the instance of a start form is to run: a local time and its offset from UTC. Without a time, at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from engine.models import Instance
from engine.values.errors import InvalidValueError
from engine.values.moments import check_start, read_moment

UTC = "Z"
_ZONE = re.compile(r"(.*\d)(Z|[+-]\d\d:?\d\d)", re.ASCII | re.IGNORECASE)
LONGEST = 100  # characters of what is typed


@dataclass(frozen=True, slots=True)
class StartAt:
    """What was typed."""

    local: str = ""
    zone: str = UTC

    @classmethod
    def of(cls, given: Mapping[str, str]) -> StartAt:
        zone = given.get("at-zone", UTC).strip()[:LONGEST]
        return cls(given.get("at", "").strip()[:LONGEST], zone or UTC)

    @classmethod
    def read(cls, text: str) -> StartAt:
        """Split the text of a moment. Without an offset, it is in UTC."""
        found = _ZONE.fullmatch(text.strip()[:LONGEST])
        return cls(found[1], found[2]) if found else cls(text.strip()[:LONGEST])

    @property
    def text(self) -> str:
        """The moment as ISO 8601; empty for now."""
        return f"{self.local}{self.zone}" if self.local else ""

    def problem(self, now: datetime) -> str:
        """Return why it cannot be used, or nothing."""
        try:
            self.after(now)
        except InvalidValueError as error:
            return error.message
        return ""

    def after(self, now: datetime) -> datetime | None:
        """Return the moment if it is after this time. Raises InvalidValueError."""
        return check_start(read_moment(self.text), now) if self.local else None

    def is_of(self, instance: Instance) -> bool:
        """Return whether the instance was started for this moment."""
        try:
            return self.after(instance.created_at) == instance.starts_at
        except InvalidValueError:
            return False
