"""Refusals of the HTTP API as problem details (RFC 9457), with the engine's own words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from django.db import Error, InterfaceError, OperationalError
from django.http import HttpResponse

from engine.status.changes import InvalidCursorError
from engine.values import errors
from engine.values.errors import RepriseError
from engine.values.serialization import InvalidJSON
from engine.values.serialization.codec import as_loc
from studio.access.problem import CONTENT_TYPE, problem_of


class WrongField(TypedDict):
    """One thing that is wrong with a request: where, as in `params/items/0/qty`, and the rule."""

    path: str
    code: str
    message: str


class ProblemError(Exception):
    """A refusal of the API itself."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        errors: Sequence[WrongField] = (),
        facts: Mapping[str, int | str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail
        self.errors, self.facts, self.headers = errors, dict(facts or {}), dict(headers or {})


# Status and code of each error of the engine; of an error that is not here, its nearest base class decides.
KINDS: Mapping[type[Exception], tuple[int, str]] = {
    errors.InstanceExistsError: (409, "id_in_use"),
    errors.InstanceNotFoundError: (404, "instance_not_found"),
    errors.InstanceFinishedError: (409, "instance_finished"),
    errors.InstanceNotFinishedError: (409, "instance_not_finished"),
    errors.InstanceNeededError: (409, "instance_needed"),
    errors.InstancePausedError: (409, "instance_paused"),
    errors.NothingToRetryError: (409, "nothing_to_retry"),
    errors.NothingToWakeError: (409, "nothing_to_wake"),
    errors.RollbackNotFailedError: (409, "rollback_not_failed"),
    errors.StepNotFoundError: (422, "step_not_found"),
    errors.RestartError: (409, "restart_refused"),
    errors.StepNotFailedError: (409, "step_not_failed"),
    errors.StepExhaustedError: (409, "step_exhausted"),
    errors.StepNotExhaustedError: (409, "step_not_exhausted"),
    errors.StepNotSkippableError: (409, "step_not_skippable"),
    errors.KeysSpentError: (409, "keys_spent"),
    errors.DedupConflictError: (409, "dedup_key_in_use"),
    errors.SecretKeyError: (409, "secret_key_missing"),
    errors.CodeChangedError: (409, "code_changed"),
    errors.UnknownWorkflowError: (409, "unknown_workflow"),
    errors.ScheduleNotFoundError: (404, "schedule_not_found"),
    errors.ScheduleNotDeclaredError: (409, "schedule_not_declared"),
    errors.BulkJobExistsError: (409, "bulk_job_exists"),
    errors.BulkJobNotFoundError: (404, "bulk_job_not_found"),
    errors.FailureNotFoundError: (404, "failure_not_found"),
    errors.WorkerNotFoundError: (404, "worker_not_found"),
    errors.RequestNotFoundError: (404, "request_not_found"),
    errors.RequestAnsweredError: (409, "request_answered"),
    errors.RequestClosedError: (409, "request_closed"),
    errors.RequestForbiddenError: (403, "not_asked"),
    errors.InvalidParamsError: (422, "invalid_params"),
    errors.InvalidQueryError: (422, "invalid_query"),
    InvalidJSON: (400, "invalid_json"),
    errors.InvalidValueError: (422, "invalid_value"),
    errors.InvalidNameError: (422, "invalid_name"),
    errors.LimitError: (422, "limit"),
    errors.GenerationNotFoundError: (404, "generation_not_found"),
    InvalidCursorError: (422, "invalid_cursor"),
    RepriseError: (422, "refused"),
}


def problem(error: ProblemError) -> HttpResponse:
    """Return the answer to a refused request."""
    document = json.dumps(problem_document(error), ensure_ascii=False)
    return HttpResponse(document, CONTENT_TYPE, error.status, headers=error.headers)


def problem_document(error: ProblemError) -> dict[str, Any]:
    """Return a refusal as JSON."""
    document = {**problem_of(error.status, error.code, error.detail), **error.facts}
    if error.errors:
        document["errors"] = list(error.errors)
    return document


def of_engine(error: RepriseError) -> ProblemError:
    """Return the refusal for an error of the engine."""
    status, code = next(KINDS[kind] for kind in type(error).__mro__ if kind in KINDS)
    if isinstance(error, errors.UnknownWorkflowError):  # its message names the others
        return ProblemError(
            status, code, f'Workflow "{error.name}" is not declared in the code that runs here.'
        )
    return ProblemError(status, code, str(error), errors=_wrong_fields(error, code), facts=_facts(error))


def of_database(error: Error) -> ProblemError:
    """Return the refusal for a database that does not answer. Raises any other error again."""
    if not isinstance(error, OperationalError | InterfaceError):
        raise error
    return ProblemError(
        503, "database_unavailable", "The database does not answer. Try again.", headers={"Retry-After": "5"}
    )


def _wrong_fields(error: RepriseError, code: str) -> list[WrongField]:
    where = error.field
    if isinstance(error, errors.InvalidParamsError):
        return [{**one, "path": _below(where, one["path"])} for one in error.errors]
    if isinstance(error, errors.InvalidQueryError):
        return list(error.errors)
    if isinstance(error, InvalidJSON):
        message = f"{error.message} (line {error.line}, column {error.column})"
        return [{"path": _below(where, as_loc(error.path)), "code": error.code, "message": message}]
    if isinstance(error, errors.InvalidValueError):
        return [{"path": _below(where, as_loc(error.path)), "code": error.code, "message": error.message}]
    return [{"path": where, "code": code, "message": str(error)}] if where else []


def _facts(error: RepriseError) -> dict[str, int | str]:
    """Return what the sentence says, for programs: what is over which limit, or where in a value or a text."""
    if isinstance(error, errors.LimitError):
        return {"value": error.value, "limit": error.limit}
    if isinstance(error, InvalidJSON):
        return {"place": error.path, "line": error.line, "column": error.column}
    return {"place": error.path} if isinstance(error, errors.InvalidValueError) else {}


def _below(where: str, path: str) -> str:
    """Return a path within a field of the body: `items/0/qty` of params is `params/items/0/qty`."""
    return "/".join(part for part in (where, path) if part)
