"""What the running clusters declare, which this code may not."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from engine.models import Worker
from engine.steer.clock import database_time

# A cluster that has not been seen for this long is gone, and so are the workflows that only it declared.
GONE_AFTER = timedelta(seconds=60)


def declared(names: Collection[str], now: datetime | None = None) -> set[str]:
    """Return those of these workflows that a running cluster declares. `now` is by default the database's time."""
    if not names:
        return set()
    alive_since = (now or database_time()) - GONE_AFTER
    rows = Worker.objects.filter(seen_at__gt=alive_since, workflows__overlap=sorted(names))
    return {name for known in rows.values_list("workflows", flat=True) for name in known if name in names}
