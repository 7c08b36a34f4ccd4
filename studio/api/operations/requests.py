"""Requests: questions that instances ask people, and the answers."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from ninja import Query, Router

from engine.models import OpenRequest, Step
from engine.status import documents
from engine.status.among import STEPS, among
from engine.steer import requests
from engine.steer.requests import Asked
from engine.values.errors import RequestNotFoundError
from studio.access import denied_audit
from studio.access.permissions import Verb, allowed, may_answer
from studio.api.answers import answer
from studio.api.auth import ApiRequest
from studio.api.fields import Answer, RequestsPage, RequestsWanted
from studio.api.operation import reads, writes
from studio.api.operations.instances import ONE
from studio.api.problems import ProblemError
from studio.api.reading import cut, instance_of, seen
from studio.api.schemas.messages import AnsweredAnswer, RequestsAnswer

router = Router(tags=["Requests"])


@reads(router, "/requests", RequestsAnswer, summary="List open requests")
def list_requests(request: ApiRequest, wanted: Query[RequestsWanted]) -> HttpResponse:
    """Requests that can be answered now, newest first."""
    holder = request.auth
    rows = requests.open_requests()
    if wanted.mine:
        rows = requests.put_to(requests.names_of(holder), nobody=allowed(holder, Verb.APPROVE, None))
    rows = seen(rows, holder, "instance__workflow")
    if wanted.workflow is not None:
        rows = rows.filter(instance__workflow=wanted.workflow)
    return _page(rows, wanted, holder)


@reads(router, f"{ONE}/requests", RequestsAnswer, summary="List the open requests of an instance")
def list_requests_of(request: ApiRequest, name: str, id: str, wanted: Query[RequestsPage]) -> HttpResponse:
    """Requests of an instance that can be answered now."""
    rows = requests.open_requests().filter(instance_id=instance_of(name, id).key)
    return _page(rows, wanted, request.auth)


def _check_voter(request: ApiRequest, name: str, id: str, seq: int, body: Answer) -> None:
    instance = instance_of(name, id)
    try:
        step = requests.find(instance, seq)
    except RequestNotFoundError:
        return  # of a deed that is repeated, the answer is known
    if not may_answer(Asked.of(step), request.auth, name):
        data = {"request": step.name, "seq": seq}
        denied_audit.record_for_instance(requests.ANSWER, instance, request.auth, data=data)
        raise _not_asked(f'"{step.name}"')


def _not_asked(which: str) -> ProblemError:
    return ProblemError(403, "not_asked", f"The holder of this token may not answer request {which}.")


@writes(
    router,
    f"{ONE}/requests/{{step:seq}}/answer",
    AnsweredAnswer,
    action="",
    verb=Verb.VIEW,
    asks=Verb.APPROVE,
    check=_check_voter,
    summary="Answer a request",
)
def answer_request(request: ApiRequest, name: str, id: str, seq: int, body: Answer) -> HttpResponse:
    """The first answer counts. Those who are asked may answer; if nobody is named, every approver.

    A team token cannot answer where people are named.
    """
    instance = instance_of(name, id)

    def check(asked: Asked) -> None:
        # Again: the instance may have put this request after `_check_voter` found none.
        if not may_answer(asked, request.auth, name):
            raise _not_asked(str(seq))

    event = requests.answer(instance, seq, body.answer, by=request.auth, comment=body.comment, check=check)
    document = {
        "instance": documents.instance(instance.refresh()),
        "event": documents.event(event, full=False),
    }
    return answer(document)


def _page(rows: Any, wanted: RequestsPage, holder: Any) -> HttpResponse:
    rows = rows.select_related("instance").order_by("-pk")
    if wanted.cursor is not None:
        rows = rows.filter(pk__lt=tuple(map(int, wanted.cursor.split("."))))
    page, more = cut(rows, wanted.limit, key="pk")
    cursor = None if more is None else ".".join(map(str, page[-1].pk))
    steps = _steps(page)
    found = [_document(row, steps[_number(row)], holder) for row in page if _number(row) in steps]
    return answer({"requests": found, "next_cursor": cursor})


def _number(row: Any) -> tuple[int, int, int]:
    return row.instance_id, row.generation, row.seq


def _steps(rows: Any) -> dict[tuple[int, int, int], Step]:
    wanted = among(STEPS, map(_number, rows))
    found = Step.objects.filter(wanted).defer("output", "error")
    return {_number(step): step for step in found}


def _document(row: OpenRequest, step: Step, holder: Any) -> documents.Document:
    asked = Asked.of(step)
    return documents.request(row.instance, step) | {
        "may_answer": may_answer(asked, holder, row.instance.workflow)
    }
