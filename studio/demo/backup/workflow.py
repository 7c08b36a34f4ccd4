"""The workflow `database-backup`: dump, prove the dump by restoring it, ask a person, keep it."""

from typing import Literal

from pydantic import BaseModel, Field

from engine import Event, EventTimeoutError, Schedule, StepError, StepOptionsDict, WorkflowStep, workflow
from studio.demo.backup import steps
from studio.demo.duration import Duration

NAME = "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$"
LONG: StepOptionsDict = {"max_attempts": 3, "delay": "5s", "timeout": "1h"}


class BackupParams(BaseModel):
    """Which database to back up, and how many backups to keep."""

    database: str | None = Field(
        None, pattern=NAME, description="A database on Reprise's own server; null means Reprise's own."
    )
    folder: str = Field("reprise", pattern=NAME, description="A folder in REPRISE_HOME/backups.")
    keep: int = Field(5, ge=1, le=1000, description="How many backups to keep in the folder.")
    approve_within: Duration = Field("24h", description='Time to approve, such as "30m" or "2 days".')


class Approval(BaseModel):
    """The payload of the event `backup-approval`."""

    approved: bool = Field(description="true keeps the backup, false deletes it.")
    comment: str = Field("", max_length=1000, description="Is stored with the backup.")


class BackupReport(BaseModel):
    outcome: Literal["kept", "rejected", "expired"] = "expired"  # until a person decides
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


backup_approval = Event("backup-approval", Approval)
NIGHTLY = Schedule("30 3 * * *", params=BackupParams(folder="nightly"), name="nightly")


@workflow("database-backup", schedules=[NIGHTLY], defaults={"delay": "2s", "timeout": "1m"})
async def database_backup(step: WorkflowStep, params: BackupParams) -> BackupReport:
    """Back up a PostgreSQL database, and prove that the backup works before keeping it.

    Dumps the database with pg_dump while it is in use, restores the dump into a scratch database, and compares the
    number of rows in every table. Then waits for approval: send the event backup-approval with
    {"approved": true, "comment": "…"}. Keeps an approved backup and deletes old ones. Deletes the dump if it is
    rejected or if nobody answers in time.
    """
    folder = params.folder
    source = await step.do("inspect", steps.inspect, params.database)
    await step.do("tidy", steps.tidy, folder)
    try:
        dump = await step.do("dump", steps.dump, source, folder, **LONG)
        sha256 = await step.do("checksum", steps.checksum, folder, dump.file, **LONG)
    except StepError:
        await step.do("discard", steps.discard, folder)
        raise
    tables, rows = len(dump.rows), sum(dump.rows.values())
    await step.progress(f"Dumped {tables:,} tables with {rows:,} rows", 30)

    if problem := await verify(step, source, folder, dump):
        await step.do("discard", steps.discard, folder)
        await step.fail(f"The dump is no good, so it was deleted. {problem}")
    await step.progress("The restored copy has the same rows; waiting for a person's approval", 70)

    facts = {"database": source.database, "bytes": dump.bytes, "tables": tables, "rows": rows}
    report = BackupReport(folder=folder, sha256=sha256, **facts)
    report = await wait_for_approval(step, report, params.approve_within)
    if report.outcome != "kept":
        await step.do("discard", steps.discard, folder)
        return report

    manifest = source.model_dump() | report.model_dump() | dump.model_dump(mode="json")
    report.file = await step.do("keep", steps.keep, folder, dump, manifest, **LONG)
    report.pruned = await step.do("prune", steps.prune, folder, report.file, params.keep)
    await step.progress(f"Kept {report.file}", 100)
    return report


async def verify(step: WorkflowStep, source: steps.Source, folder: str, dump: steps.Dump) -> str:
    """Restore the dump into a scratch database and count its rows; return what is wrong, or an empty text."""
    try:
        copy = await step.do("restore", steps.restore, source, folder, dump.file, **LONG)
        await step.progress(f"Restored into {copy.database}", 50)
        restored = await step.do("count-rows", steps.count, copy, **LONG)
        problem = steps.differences(dump.rows, restored)
    except StepError as error:
        problem = str(error)
    await step.do("drop-scratch", steps.drop_scratch, step.instance_id)
    return problem


async def wait_for_approval(step: WorkflowStep, report: BackupReport, within: str) -> BackupReport:
    """Wait for a person's decision; return the report with it. If nobody decides in time, the backup expires."""
    try:
        answer = await step.wait_for_event("approval", backup_approval, timeout=within)
    except EventTimeoutError:
        step.log.warning("nobody decided in time", within=within)
        return report
    outcome = "kept" if answer.payload.approved else "rejected"
    by, comment = answer.sent_by, answer.payload.comment
    step.log.info("decided", outcome=outcome, by=by, comment=comment)
    return report.model_copy(update={"outcome": outcome, "decided_by": by, "comment": comment})
