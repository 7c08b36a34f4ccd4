"""Refusals of a Studio elsewhere, as the command line words its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from engine.command.refusals import RefusedElsewhereError
from engine.values.errors import InstanceNotFoundError, RepriseError, UnknownWorkflowError
from studio.client import ApiError, Client, ClientError, ConflictError, NotFoundError
from studio.client.errors import WrongField

# The engine's error behind each code of the API. The table of the API itself needs Django and its settings.
NAMES: Mapping[str, str] = {
    "id_in_use": "InstanceExistsError",
    "instance_not_found": "InstanceNotFoundError",
    "instance_finished": "InstanceFinishedError",
    "instance_not_finished": "InstanceNotFinishedError",
    "instance_needed": "InstanceNeededError",
    "instance_paused": "InstancePausedError",
    "nothing_to_retry": "NothingToRetryError",
    "nothing_to_wake": "NothingToWakeError",
    "rollback_not_failed": "RollbackNotFailedError",
    "step_not_found": "StepNotFoundError",
    "restart_refused": "RestartError",
    "step_not_failed": "StepNotFailedError",
    "step_exhausted": "StepExhaustedError",
    "step_not_exhausted": "StepNotExhaustedError",
    "step_not_skippable": "StepNotSkippableError",
    "keys_spent": "KeysSpentError",
    "dedup_key_in_use": "DedupConflictError",
    "secret_key_missing": "SecretKeyError",
    "code_changed": "CodeChangedError",
    "unknown_workflow": "UnknownWorkflowError",
    "schedule_not_found": "ScheduleNotFoundError",
    "schedule_not_declared": "ScheduleNotDeclaredError",
    "bulk_job_exists": "BulkJobExistsError",
    "bulk_job_not_found": "BulkJobNotFoundError",
    "failure_not_found": "FailureNotFoundError",
    "worker_not_found": "WorkerNotFoundError",
    "request_not_found": "RequestNotFoundError",
    "request_answered": "RequestAnsweredError",
    "request_closed": "RequestClosedError",
    "not_asked": "RequestForbiddenError",
    "invalid_params": "InvalidParamsError",
    "invalid_json": "InvalidJSON",
    "invalid_value": "InvalidValueError",
    "invalid_name": "InvalidNameError",
    "invalid_query": "InvalidQueryError",
    "limit": "LimitError",
    "generation_not_found": "GenerationNotFoundError",
    "refused": "RepriseError",
}
NOT_FOUND = "not_found"  # the code of what does not exist, or may not be seen
UNKNOWN_WORKFLOW = "unknown_workflow"  # of an instance whose workflow is not declared any more
FIELDS = (
    "params",
    "payload",
    "answer",
    "output",
    "body",
)  # of bodies, below which the engine names its paths


def refusal(error: ClientError) -> RepriseError:
    """Return the error that the command line shows."""
    if not isinstance(error, ApiError):
        return RefusedElsewhereError(type(error).__name__, str(error))
    name = NAMES.get(error.code, type(error).__name__)
    return RefusedElsewhereError(name, error.detail, [_field(one) for one in error.errors], _facts(error))


def _field(wrong: WrongField) -> dict[str, Any]:
    above, _, below = wrong["path"].partition("/")
    return {**wrong, "path": below if above in FIELDS else wrong["path"]}


def _facts(error: ApiError) -> dict[str, Any]:
    """Return the keys that the command line has for such an error, next to its type and message."""
    given, found = error.problem, dict[str, Any]()
    if "place" in given and error.errors:
        found = {"path": given["place"], "code": error.errors[0]["code"]}
    return found | {key: given[key] for key in ("line", "column", "value", "limit") if key in given}


@contextmanager
def instance_named(client: Client, workflow: str, id: str) -> Iterator[None]:
    """Raise what the engine raises if this instance does not exist, the token may not see it, or its code is gone."""
    try:
        yield
    except NotFoundError as error:
        if error.code != NOT_FOUND:
            raise
        require_workflow(client, workflow)
        raise InstanceNotFoundError(workflow, id) from None
    except ConflictError as error:
        if error.code != UNKNOWN_WORKFLOW:
            raise
        raise UnknownWorkflowError(workflow, declared(client)) from None


def declared(client: Client) -> list[str]:
    """Return the workflows in the code of the Studio, as far as the token sees them."""
    return [one["name"] for one in client.workflows()["workflows"] if one["is_declared"]]


def require_workflow(client: Client, name: str) -> None:
    """Raise UnknownWorkflowError for a name that the token does not see."""
    known = [one["name"] for one in client.workflows()["workflows"]]
    if name not in known:
        raise UnknownWorkflowError(name, known)
