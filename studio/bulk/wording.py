"""What a bulk job does and does not do, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.bulk import BulkAction, BulkStatus, Job


@dataclass(frozen=True, slots=True)
class Effect:
    """Something that an action does, or does not do."""

    text: str
    does: bool = True


def _not(text: str) -> Effect:
    return Effect(text, does=False)


EFFECTS: Mapping[str, tuple[Effect, ...]] = {
    BulkAction.RETRY: (
        Effect(
            "Runs the failed step again with all its attempts and the same idempotency key, so a service that knows "
            "the key does nothing twice. A step that backs off starts its next attempt now."
        ),
        Effect("Continues a rollback that failed."),
        Effect("Finished steps keep their outputs and do not run again."),
        _not("Does not roll anything back. Does not change parameters."),
    ),
    BulkAction.PAUSE: (
        Effect(
            "Running steps end and are recorded. Then the instance does nothing until somebody resumes it."
        ),
        Effect("Sleeps and timeouts are extended by the time that it is paused."),
        _not("Does not pause children, and does not fail anything or roll it back."),
    ),
    BulkAction.RESUME: (
        Effect("Continues from where it stopped; sleeps and timeouts are extended by the time paused."),
        _not("Does not resume a workflow that is paused as a whole; its instances wait for that."),
        _not("Does not decide on a step whose attempts are used up: retry those."),
    ),
    BulkAction.TERMINATE: (
        Effect("Ends it permanently. Running steps and rollbacks are cancelled."),
        _not("Does not undo finished steps, unless you run the rollbacks first."),
    ),
    BulkAction.RESTART: (
        Effect(
            "Runs it again from the start, in a new generation. All its steps run again; side effects repeat."
        ),
        Effect("Ends what still runs."),
        _not("Does not roll anything back. Does not change parameters."),
    ),
}
# What happens to the instances that the action applies to, for one and for several.
WILL_BE: Mapping[str, str] = {
    BulkAction.RETRY: "will be retried",
    BulkAction.PAUSE: "will be paused",
    BulkAction.RESUME: "will be resumed",
    BulkAction.TERMINATE: "will be terminated",
    BulkAction.RESTART: "will be restarted",
}
ICONS: Mapping[str, str] = {
    BulkAction.RETRY: "rotate-cw",
    BulkAction.PAUSE: "pause",
    BulkAction.RESUME: "play",
    BulkAction.TERMINATE: "square",
    BulkAction.RESTART: "rotate-ccw",
}
# What was done to the instance that works on a job, as what was done to the job.
DEEDS: Mapping[str, str] = {
    "start": "started it",
    "pause": "paused it",
    "resume": "resumed it",
    "terminate": "aborted it",
    "restart": "let it go on",
}
_LOOKS: Mapping[str, str] = {
    BulkStatus.RUNNING: "running",
    BulkStatus.PAUSED: "paused",
    BulkStatus.COMPLETE: "complete",
    BulkStatus.ABORTED: "terminated",
    BulkStatus.ERRORED: "errored",
}


def look_of(job: Job) -> str:
    """Return the status of an instance that the status of a job looks like."""
    return _LOOKS[job.status]


def done_words(job: Job) -> list[str]:
    """Return what a job does beside the usual."""
    words = {"rollback": "after its rollbacks", "keys": "with the same idempotency keys"}
    pace = (
        (job.pace.at_once, "{} at a time"),
        (job.pace.ask_after, "pauses after the first {}"),
        (job.pace.stop_after, "pauses after {} new failures"),
    )
    found = [words[name] for name in job.arguments if name in words]
    return found + [text.format(f"{number:,}") for number, text in pace if number]
