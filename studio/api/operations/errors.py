"""Groups of errors: lists, what is known of one, and what people decide about it."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from ninja import Query, Router, Schema

from engine.status import documents, failures
from engine.status.failures import document
from engine.status.gathering import database_now
from engine.steer import failure_notes
from engine.steer import failures as deciding
from studio.access import denied_audit
from studio.access.denied_audit import Subject
from studio.access.permissions import Verb, allowed, sees_all
from studio.api.answers import answer
from studio.api.auth import ApiRequest, refusal
from studio.api.error_fields import GroupInstancesWanted, GroupsWanted, GroupWanted, Ignore, TrendWanted
from studio.api.fields import Because, NewNote
from studio.api.operation import reads, writes
from studio.api.problems import ProblemError, WrongField
from studio.api.reading import patience, seen_names
from studio.api.schemas.errors import (
    ErrorGroupAnswer,
    ErrorGroupDetails,
    ErrorGroupInstances,
    ErrorGroupsAnswer,
    SharesAnswer,
    TrendAnswer,
)
from studio.api.schemas.history import NoteAnswer

router = Router(tags=["Errors"])

_ONE = "/errors/{fingerprint:fingerprint}"


@reads(router, "/errors", ErrorGroupsAnswer, summary="List the groups of errors")
def list_error_groups(request: ApiRequest, wanted: Query[GroupsWanted]) -> HttpResponse:
    """Failures that are alike, as groups, the latest first. Without a state, those that are open."""
    with patience():
        found = failures.groups(
            workflows=seen_names(request.auth),
            workflow=wanted.workflow,
            state="" if wanted.state == "all" else wanted.state,
            query=wanted.query or "",
            limit=wanted.limit,
            after=wanted.cursor,
        )
    groups = [document.group(one) for one in found.groups]
    return answer({"groups": groups, "next_cursor": found.next, "now": database_now()})


@reads(router, _ONE, ErrorGroupDetails, summary="Read a group of errors")
def read_error_group(request: ApiRequest, fingerprint: str, wanted: Query[GroupWanted]) -> HttpResponse:
    """A group, the same error in other workflows, its latest failure, and whether the step succeeds again."""
    found = _find(request, fingerprint)
    with patience():
        relatives = failures.kin(fingerprint, workflows=seen_names(request.auth))
        return answer(document.details(found, relatives, full=wanted.full))


@reads(router, f"{_ONE}/instances", ErrorGroupInstances, summary="List the instances of a group of errors")
def list_error_group_instances(
    request: ApiRequest, fingerprint: str, wanted: Query[GroupInstancesWanted]
) -> HttpResponse:
    """Those whose latest failure belongs to the group, newest first, and how many there are of each kind."""
    _find(request, fingerprint)
    with patience():
        found = document.instances(
            fingerprint,
            wanted.which,
            limit=wanted.limit,
            after=wanted.cursor,
            has_relatives=sees_all(request.auth),
        )
    return answer(found)


@reads(router, f"{_ONE}/trend", TrendAnswer, summary="Read how often a group of errors fails")
def read_error_group_trend(request: ApiRequest, fingerprint: str, wanted: Query[TrendWanted]) -> HttpResponse:
    """Failed attempts by time, the earliest first. The last time is not over yet."""
    _find(request, fingerprint)
    with patience():
        return answer(document.bars(fingerprint, wanted.unit))


@reads(router, f"{_ONE}/shares", SharesAnswer, summary="Read what failing instances have in common")
def read_error_group_shares(request: ApiRequest, fingerprint: str) -> HttpResponse:
    """Values of params, tags and code that most of the failing instances have, and others do not."""
    _find(request, fingerprint)
    with patience():
        return answer(document.common(fingerprint))


def _may(action: str) -> Any:
    """Return the check that the sender may decide about the group in the path: its workflow is not in the path."""

    def check(request: ApiRequest, fingerprint: str, **_: Any) -> None:
        found, holder = _find(request, fingerprint), request.auth
        if not allowed(holder, Verb.OPERATE, found.workflow):
            denied_audit.record(action, Subject(found.workflow, data={"error": fingerprint}), holder)
            raise refusal(holder, Verb.OPERATE, found.workflow)

    return check


def _decides(
    act: str, action: str, summary: str, *, shape: type[Schema] = ErrorGroupAnswer, status: int = 200
) -> Any:
    return writes(
        router,
        f"{_ONE}/{act}",
        shape,
        status=status,
        action="",  # the check records denied attempts
        verb=Verb.VIEW,
        asks=Verb.OPERATE,
        check=_may(action),
        summary=summary,
    )


@_decides("resolve", deciding.RESOLVE, "Resolve a group of errors")
def resolve_error_group(request: ApiRequest, fingerprint: str, body: Because) -> HttpResponse:
    """Call it resolved. It is open again as soon as it fails again."""
    deciding.resolve(fingerprint, by=request.auth, reason=body.reason)
    return _decided(fingerprint)


@_decides("ignore", deciding.IGNORE, "Ignore a group of errors")
def ignore_error_group(request: ApiRequest, fingerprint: str, body: Ignore) -> HttpResponse:
    """Until a moment, until it has failed so many times more, or, without both, until it is reopened."""
    if not body.reason.strip():
        rule = "This action requires a reason."
        wrong: list[WrongField] = [{"path": "reason", "code": "required", "message": rule}]
        raise ProblemError(422, "reason_required", rule, errors=wrong)
    deciding.ignore(fingerprint, until=body.until, count=body.count, by=request.auth, reason=body.reason)
    return _decided(fingerprint)


@_decides("reopen", deciding.REOPEN, "Reopen a group of errors")
def reopen_error_group(request: ApiRequest, fingerprint: str, body: Because) -> HttpResponse:
    """Withdraw the decision about it."""
    deciding.reopen(fingerprint, by=request.auth, reason=body.reason)
    return _decided(fingerprint)


@_decides("notes", failure_notes.VERB, "Add a note to a group of errors", shape=NoteAnswer, status=201)
def add_error_group_note(request: ApiRequest, fingerprint: str, body: NewNote) -> HttpResponse:
    """It becomes a row of the audit trail. `data.mentions` has the active users whom the text names with an `@`."""
    row = failure_notes.add_note(fingerprint, body.text, by=request.auth)
    return answer({"note": documents.action(row)}, 201)


def _decided(fingerprint: str) -> HttpResponse:
    return answer({"group": document.group(failures.group(fingerprint))})


def _find(request: ApiRequest, fingerprint: str) -> failures.FailureGroup:
    return failures.group(fingerprint, workflows=seen_names(request.auth))
