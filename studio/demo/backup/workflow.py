"""The workflow `database-backup`."""

from __future__ import annotations

from engine import EventTimeoutError, ReceivedEvent, Schedule, StepContext, StepError, WorkflowStep, workflow
from studio.demo.backup import scratch, shelf
from studio.demo.backup.dump import Dump, dump
from studio.demo.backup.params import Approval, BackupParams, BackupReport, backup_approval
from studio.demo.backup.rows import differences
from studio.demo.backup.source import Source, inspect

NAME = "database-backup"

# The server may be restarting: what it refuses now it may accept in a while.
SHORT = {"max_attempts": 5, "delay": "2s", "timeout": "1m"}
LONG = {"max_attempts": 3, "delay": "5s", "timeout": "1h"}


# Nobody has to be there: a backup that is not approved within a day ends well, and its dump is deleted.
NIGHTLY = Schedule("30 3 * * *", params=BackupParams(folder="nightly"), name="nightly")


@workflow(NAME, schedules=[NIGHTLY])
async def database_backup(step: WorkflowStep, params: BackupParams) -> BackupReport:
    """Back up a PostgreSQL database, and prove that the backup is good before it is kept.

    Dumps the database with pg_dump while people go on using it, restores the dump into a scratch database and compares
    the rows of every table with those of the moment of the dump. Then it waits for a person: send the event
    backup-approval with {"approved": true, "comment": "…"}. Approved, the backup is kept and old ones are pruned;
    rejected, or without an answer in time, its dump is deleted.
    """
    source = await step.do("inspect", inspect, params.database, **SHORT)
    await step.do("tidy", tidy, params.folder, **SHORT)
    taken, sha256 = await _take(step, source, params.folder)
    await step.progress(f"Dumped {len(taken.rows):,} tables with {taken.row_count:,} rows", 30)

    problem = await _prove(step, source, params.folder, taken)
    await step.do("drop-scratch", scratch.drop, **SHORT)
    if problem:
        await step.do("discard", shelf.discard, params.folder, **SHORT)
        await step.fail(f"The dump is no good, so it was deleted. {problem}")
    await step.progress("The restored copy has the same rows; waiting for a person's approval", 70)

    report = _report(params, source, taken, sha256)
    answer = await _ask(step, params.approve_within)
    if answer is None or not answer.payload.approved:
        await step.do("discard", shelf.discard, params.folder, **SHORT)
        return report.model_copy(update=_refusal(answer))
    return await _keep(step, params, report, _manifest(step, source, taken, sha256, answer), taken)


def tidy(folder: str, ctx: StepContext) -> list[str]:
    """Clear away what terminated instances of this workflow left: they were not asked to do so themselves."""
    cleared = [*scratch.drop_left_behind(NAME), *shelf.delete_left_behind(NAME, folder)]
    if cleared:
        ctx.log.info("cleared away what terminated backups left", found=cleared)
    return cleared


async def _take(step: WorkflowStep, source: Source, folder: str) -> tuple[Dump, str]:
    """Dump, and take the checksum; a failure leaves no file behind."""
    try:
        taken = await step.do("dump", dump, source, folder, **LONG)
        return taken, await step.do("checksum", shelf.checksum, folder, taken.file, **LONG)
    except StepError:
        await step.do("discard", shelf.discard, folder, **SHORT)
        raise


async def _prove(step: WorkflowStep, source: Source, folder: str, taken: Dump) -> str:
    """Restore the dump and compare. Returns what is wrong with it; empty when nothing is."""
    try:
        copy = await step.do("restore", scratch.restore, source, folder, taken, **LONG)
        await step.progress(f"Restored into {copy.database}", 50)
        restored = await step.do("count-rows", scratch.count, copy, **LONG)
    except StepError as error:
        return str(error)
    told = differences(taken.rows, restored)
    for line in told:
        step.log.error(line)
    more = f"; and {len(told) - 5:,} more" if len(told) > 5 else ""
    return "; ".join(told[:5]) + more


async def _ask(step: WorkflowStep, within: str) -> ReceivedEvent[Approval] | None:
    """Wait for a person's decision; None when nobody decided in time."""
    try:
        answer = await step.wait_for_event("approval", backup_approval, timeout=within)
    except EventTimeoutError:
        step.log.warning("nobody decided in time", within=within)
        return None
    step.log.info(
        "decided", approved=answer.payload.approved, by=answer.sent_by, comment=answer.payload.comment
    )
    return answer


async def _keep(
    step: WorkflowStep, params: BackupParams, report: BackupReport, manifest: shelf.Manifest, taken: Dump
) -> BackupReport:
    file = await step.do("keep", shelf.keep, params.folder, taken.file, manifest, **LONG)
    pruned = await step.do("prune", shelf.prune, params.folder, file, params.keep, **SHORT)
    await step.progress(f"Kept {file}", 100)
    return report.model_copy(
        update={
            "outcome": "kept",
            "file": file,
            "decided_by": manifest.approved_by,
            "comment": manifest.comment,
            "pruned": pruned,
        }
    )


def _report(params: BackupParams, source: Source, taken: Dump, sha256: str) -> BackupReport:
    return BackupReport(
        outcome="expired",
        database=source.database,
        folder=params.folder,
        bytes=taken.bytes,
        sha256=sha256,
        tables=len(taken.rows),
        rows=taken.row_count,
    )


def _refusal(answer: ReceivedEvent[Approval] | None) -> dict[str, str]:
    if answer is None:
        return {"outcome": "expired"}
    return {"outcome": "rejected", "decided_by": answer.sent_by, "comment": answer.payload.comment}


def _manifest(
    step: WorkflowStep, source: Source, taken: Dump, sha256: str, answer: ReceivedEvent[Approval]
) -> shelf.Manifest:
    return shelf.Manifest(
        file=f"{source.database}-{taken.taken_at:%Y%m%dT%H%M%SZ}-{sha256[:8]}.dump",
        database=source.database,
        server_version=source.server_version,
        taken_at=taken.taken_at,
        bytes=taken.bytes,
        sha256=sha256,
        rows=taken.rows,
        instance=step.instance_id,
        approved_by=answer.sent_by,
        comment=answer.payload.comment,
    )
