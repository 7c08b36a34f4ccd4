"""The database of this project as the source of answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.command.local import (
    bulk_jobs,
    errors,
    events,
    health,
    index,
    lists,
    note,
    pauses,
    replay,
    restart,
    schedules,
    show,
    start,
    steering,
    workers,
)
from engine.command.source import Source
from engine.command.subcommand import Options, Subcommand, Terminal
from engine.status.documents import Document

READERS: Mapping[str, Callable[[Options], Document]] = {
    "list": lists.listed,
    "start": start.start,
    "show": show.show,
    "pause": steering.pause,
    "resume": steering.resume,
    "terminate": steering.terminate,
    "restart": restart.restart,
    "retry-step": restart.retry_step,
    "fail-step": steering.fail_step,
    "skip-step": steering.skip_step,
    "delete": steering.delete,
    "retry-now": steering.retry_now,
    "wake-now": steering.wake_now,
    "retry-rollback": steering.retry_rollback,
    "accept-code": steering.accept_code,
    "answer": events.answer,
    "note": note.note,
    "health": health.read,
    "bulk list": bulk_jobs.listed,
    "bulk preview": bulk_jobs.preview,
    "bulk start": bulk_jobs.start,
    "bulk show": bulk_jobs.show,
    "bulk pause": bulk_jobs.pause,
    "bulk resume": bulk_jobs.resume,
    "bulk abort": bulk_jobs.abort,
    "bulk retry-failed": bulk_jobs.retry_failed,
    "errors list": errors.listed,
    "errors show": errors.show,
    "errors resolve": errors.resolve,
    "errors ignore": errors.ignore,
    "errors reopen": errors.reopen,
    "errors note": errors.note,
    "events list": events.listed,
    "events send": events.send,
    "schedules list": schedules.listed,
    "schedules pause": schedules.pause,
    "schedules resume": schedules.resume,
    "schedules run": schedules.run,
    "workers list": workers.listed,
    "workers drain": workers.drain,
    "workers resume": workers.resume,
    "workflows list": pauses.listed,
    "workflows pause": pauses.pause,
    "workflows resume": pauses.resume,
}

# Those that print while they work: people do not wait for the end of what takes minutes.
PRINTERS: Mapping[str, Callable[[Terminal, Options], int]] = {"replay": replay.replay, "index": index.index}


class LocalSource(Source):
    def run(self, subcommand: Subcommand, terminal: Terminal, options: Options) -> int:
        if subcommand.words in PRINTERS:
            return PRINTERS[subcommand.words](terminal, options)
        return super().run(subcommand, terminal, options)

    def read(self, words: str, options: Options) -> Document:
        return READERS[words](options)
