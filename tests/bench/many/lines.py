r"""Lines for COPY: the columns of each table, and the texts of its rows.

Times are whole microseconds since the epoch. Values arrive here as COPY wants them: `stored` escapes a text, NULL is
`\N`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType

NULL = r"\N"
MINUTE = 60_000_000
COLUMNS = MappingProxyType(
    {
        "engine_instance": "key workflow id generation status waiting_for rollback params output error pause_reason "
        "fingerprint tags started_by code wake_at owner fence parent_key parent_generation parent_step is_tied depth "
        "created_at started_at paused_at finished_at",
        "engine_step": "instance_id generation seq parent kind name count status delivery options attempts lost "
        "event_types wake_at wake_is_fixed output error rollback kept_from started_at finished_at",
        "engine_attempt": "instance_id generation step_seq phase number status worker error started_at finished_at "
        "fingerprint failed_at",
        "engine_generation": "key instance_id number status error rollback code started_at finished_at",
        "engine_event": "key instance_id type payload dedup_key sent_by received_at state consumed_generation "
        "consumed_by",
        "engine_audit": "key at verb actor user_key workflow instance_id instance_key before after outcome reason data",
    }
)


def position(table: str, column: str) -> int:
    """Return where in a line a column is, from 0."""
    return COLUMNS[table].split().index(column)


def stored(text: str) -> str:
    """Escape a text for COPY."""
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")


def moment(us: int | None) -> str:
    """Return a time as PostgreSQL reads it."""
    if us is None:
        return NULL
    minute, rest = divmod(us, MINUTE)
    return f"{_minute(minute)}{rest // 1_000_000:02d}.{rest % 1_000_000:06d}+00"


@lru_cache(maxsize=200_000)
def _minute(minute: int) -> str:
    return datetime.fromtimestamp(minute * 60, UTC).strftime("%Y-%m-%d %H:%M:")
