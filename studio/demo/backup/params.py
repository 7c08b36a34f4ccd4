"""What a backup is told at its start, what people tell it on its way, and what it tells at its end."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field, field_validator

from engine import Event
from engine.durations import parse_duration


class BackupParams(BaseModel):
    """Which database to back up, and for how long to keep what."""

    database: str | None = Field(
        None,
        description="A database on Reprise's own server; null is Reprise's own database.",
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$",
        max_length=63,
    )
    folder: str = Field(
        "reprise",
        description="The folder under REPRISE_HOME/backups. Each folder is pruned by itself.",
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$",
        max_length=63,
    )
    keep: int = Field(5, ge=1, le=1000, description="How many backups stay in the folder, with the new one.")
    approve_within: str = Field(
        "24h",
        description='How long to wait for the approval, as in "30m" or "2 days"; then the dump is deleted.',
    )

    @field_validator("approve_within")
    @classmethod
    def _is_duration(cls, text: str) -> str:
        if not parse_duration(text, what="approve_within"):
            raise ValueError("Give people some time to approve.")
        return text


class Approval(BaseModel):
    """Somebody's decision about a backup that has been proven."""

    approved: bool = Field(description="true keeps the backup, false deletes it.")
    comment: str = Field("", max_length=1000, description="Is written into the backup's manifest.")


backup_approval = Event("backup-approval", Approval)


class BackupReport(BaseModel):
    """How a backup ended. `file` and `pruned` are names in `folder`; `file` is null when nothing was kept."""

    outcome: Literal["kept", "rejected", "expired"]
    database: str
    folder: str
    file: str | None = None
    bytes: int
    sha256: str
    tables: int
    rows: int
    decided_by: str = ""
    comment: str = ""
    pruned: list[str] = []
