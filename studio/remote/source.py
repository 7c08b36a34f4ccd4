"""A Studio elsewhere as the source of answers for the command line."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from engine.command.source import Source
from engine.command.subcommand import Options, UsageError
from engine.status.json_text import Document
from studio.client import Client, ClientError
from studio.remote import acting, all_at_once, bulk_jobs, error_groups, pauses, reading
from studio.remote.refusals import refusal

READERS: Mapping[str, Callable[[Client, Options], Document]] = {
    "list": reading.listed,
    "show": reading.show,
    "health": reading.health,
    "bulk list": bulk_jobs.listed,
    "bulk preview": bulk_jobs.preview,
    "bulk start": bulk_jobs.start,
    "bulk show": bulk_jobs.show,
    "bulk pause": bulk_jobs.pause,
    "bulk resume": bulk_jobs.resume,
    "bulk abort": bulk_jobs.abort,
    "bulk retry-failed": bulk_jobs.retry_failed,
    "errors list": error_groups.listed,
    "errors show": error_groups.show,
    "errors resolve": error_groups.resolve,
    "errors ignore": error_groups.ignore,
    "errors reopen": error_groups.reopen,
    "errors note": error_groups.note,
    "events list": reading.events,
    "schedules list": reading.schedules,
    "workers list": reading.workers,
    "workers drain": acting.drain_worker,
    "workers resume": acting.resume_worker,
    "workflows list": pauses.listed,
    "workflows pause": pauses.pause,
    "workflows resume": pauses.resume,
    "start": acting.start,
    "pause": all_at_once.pause,
    "resume": all_at_once.resume,
    "terminate": acting.terminate,
    "restart": acting.restart,
    "retry-step": acting.retry_step,
    "fail-step": acting.fail_step,
    "skip-step": acting.skip_step,
    "delete": acting.delete,
    "retry-now": acting.retry_now,
    "wake-now": acting.wake_now,
    "retry-rollback": acting.retry_rollback,
    "accept-code": acting.accept_code,
    "answer": acting.answer,
    "note": acting.note,
    "events send": acting.send_event,
    "schedules pause": acting.pause_schedule,
    "schedules resume": acting.resume_schedule,
    "schedules run": acting.run_schedule,
}

RETRIES = 2  # somebody waits
MOST_WAIT = 65.0  # for the next minute of a rate limit


class RemoteSource(Source):
    """Asks the Studio that the environment names."""

    def __init__(self) -> None:
        # It logs each request, which a project's settings may print between the lines of the answer.
        logging.getLogger("httpx2").setLevel(logging.WARNING)

    def read(self, words: str, options: Options) -> Document:
        if words not in READERS:
            raise UsageError(
                f"`workflow {words}` runs the code of this project: use it where the project and its database are, "
                "without REPRISE_URL."
            )
        if options.get("by") is not None:
            raise UsageError("Leave out --by: in a Studio elsewhere, the token says who acts.")
        try:
            with Client(timeout=options.get("timeout") or 30, retries=RETRIES, max_wait=MOST_WAIT) as client:
                return READERS[words](client, options)
        except ClientError as error:
            raise refusal(error) from error
