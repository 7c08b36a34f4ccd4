"""Why an instance was skipped, in words, and which errors mean that an action does not apply to it."""

from __future__ import annotations

from collections.abc import Mapping

from engine.values.errors import (
    InstanceFinishedError,
    InstanceNotFoundError,
    InstancePausedError,
    KeysSpentError,
    NothingToRetryError,
    RepriseError,
    RollbackNotFailedError,
    StepNotExhaustedError,
    StepNotFailedError,
)

NOT_FOUND, STALE, LOCKED, FAILED_AGAIN = "not_found", "stale", "locked", "failed_again"
ID_IN_USE, UNKNOWN_WORKFLOW, HAS_FAILED = "id_in_use", "unknown_workflow", "has_failed"

REASONS: Mapping[str, str] = {
    "finished": "It has ended.",
    "is_paused": "It is paused.",
    "not_paused": "It is not paused.",
    "not_failed": "Nothing in it has failed.",
    "needs_decision": "The attempts of a step are used up: retry it, skip the step or let it fail.",
    "rolled_back": "Its steps were rolled back, so it cannot be retried. It can be restarted.",
    "no_failed_step": "No step has ended it. It can be restarted.",
    "not_backing_off": "Its next attempt starts by itself.",
    NOT_FOUND: "It was deleted.",
    STALE: "It was restarted after the job was started.",
    FAILED_AGAIN: "It went on and has failed again.",
    ID_IN_USE: "An instance with this id was there already.",
    UNKNOWN_WORKFLOW: "The worker's code has no such workflow. Retry the failed ones with the code that has.",
    HAS_FAILED: "It was started and has failed.",
    LOCKED: "Another transaction held it for more than a minute. Retry the failed ones.",
}

# These say that the instance has changed meanwhile, or has nothing that the action is for. Other errors are failures.
SKIPS: Mapping[type[RepriseError], str] = {
    InstanceNotFoundError: NOT_FOUND,
    InstanceFinishedError: "finished",
    InstancePausedError: "is_paused",
    KeysSpentError: "rolled_back",
    NothingToRetryError: "not_backing_off",
    RollbackNotFailedError: "not_failed",
    StepNotExhaustedError: "not_failed",
    StepNotFailedError: "no_failed_step",
}


def in_words(code: str) -> str:
    """Return the sentence for a code; empty if the error said it itself."""
    return REASONS.get(code, "")
