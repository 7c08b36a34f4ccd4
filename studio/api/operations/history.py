"""What an instance has recorded, one kind of thing at a time, in pages."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast
from django.http import HttpResponse
from ninja import Query, Router

from engine.models import Audit, Generation, Instance, Log, Step
from engine.status import documents
from engine.status.gathering import without_values
from engine.status.snapshot import snapshot
from engine.status.steps import attempts_by_step, logs_of, read_old_milestones, steps_of
from engine.values.serialization.envelope import masked_text
from studio.api.answers import CONTENT_TYPE, answer
from studio.api.auth import ApiRequest, not_found
from studio.api.fields import GenerationWanted, LogsWanted, Page, StepsWanted
from studio.api.operation import reads
from studio.api.operations.instances import ONE
from studio.api.reading import cut, instance_of, seen
from studio.api.schemas.history import (
    ActionsAnswer,
    ChildrenAnswer,
    GenerationsAnswer,
    LogsAnswer,
    StepsAnswer,
    StepWithLogs,
)
from studio.api.schemas.values import AnyJson

router = Router(tags=["History"])

LOG_LINES = 200  # of a step


@reads(router, f"{ONE}/steps", StepsAnswer, summary="List the steps of an instance")
def list_steps(request: ApiRequest, name: str, id: str, wanted: Query[StepsWanted]) -> HttpResponse:
    """Its steps with their attempts, newest first, without outputs."""
    instance = _in(instance_of(name, id), wanted.generation)
    rows = steps_of(instance).defer("output").order_by("-seq")
    if wanted.parent is not None:
        rows = rows.filter(parent=wanted.parent)
    if wanted.status:
        rows = rows.filter(status__in=wanted.status)
    if wanted.cursor is not None:
        rows = rows.filter(seq__lt=min(int(wanted.cursor), 2**31 - 1))
    page, cursor = cut(rows, wanted.limit, key="seq")
    read_old_milestones(instance, page)
    found = documents.steps(instance, page, attempts_by_step(instance, page), full=False)
    return answer({"steps": found, "next_cursor": cursor})


@reads(router, f"{ONE}/steps/{{step:seq}}", StepWithLogs, summary="Read a step")
def read_step(
    request: ApiRequest, name: str, id: str, seq: int, wanted: Query[GenerationWanted]
) -> HttpResponse:
    """A step with its output, attempts and the newest lines of its log."""
    instance = _in(instance_of(name, id), wanted.generation)
    row = steps_of(instance).filter(seq=seq).first()
    if row is None:
        raise not_found()
    (step,) = documents.steps(instance, [row], attempts_by_step(instance, [row]), full=True)
    lines = logs_of(instance).filter(step_seq=seq).order_by("-key")[:LOG_LINES]
    found = {
        "step": step,
        "logs": [documents.log(line) for line in lines],
    }
    return answer(found)


@reads(router, f"{ONE}/children", ChildrenAnswer, summary="List the children of an instance")
def list_children(request: ApiRequest, name: str, id: str, wanted: Query[Page]) -> HttpResponse:
    """Instances that it has started, in all its generations, newest first."""
    rows = seen(without_values(), request.auth).filter(parent_key=instance_of(name, id).key).order_by("-key")
    if wanted.cursor is not None:
        rows = rows.filter(key__lt=int(wanted.cursor))
    page, cursor = cut(rows, wanted.limit)
    return answer({"children": [documents.relation(row) for row in page], "next_cursor": cursor})


@reads(router, f"{ONE}/generations", GenerationsAnswer, summary="List the earlier generations of an instance")
def list_generations(request: ApiRequest, name: str, id: str, wanted: Query[Page]) -> HttpResponse:
    """How its earlier generations ended, newest first."""
    rows = (
        Generation.objects.filter(instance_id=instance_of(name, id).key)
        .defer("params", "output")
        .order_by("-number")
    )
    if wanted.cursor is not None:
        rows = rows.filter(number__lt=min(int(wanted.cursor), 2**31 - 1))
    page, cursor = cut(rows, wanted.limit, key="number")
    return answer({"generations": [documents.generation(row) for row in page], "next_cursor": cursor})


@reads(router, f"{ONE}/logs", LogsAnswer, summary="List the log of an instance")
def list_logs(request: ApiRequest, name: str, id: str, wanted: Query[LogsWanted]) -> HttpResponse:
    """Lines that its handler and its steps have logged, newest first."""
    rows = logs_of(_in(instance_of(name, id), wanted.generation)).order_by("-key")
    if wanted.step is not None:
        rows = rows.filter(step_seq=wanted.step)
    if wanted.cursor is not None:
        rows = rows.filter(key__lt=int(wanted.cursor))
    page: Sequence[Log]
    page, cursor = cut(rows, wanted.limit)
    return answer({"logs": [documents.log(row) for row in page], "next_cursor": cursor})


@reads(router, f"{ONE}/audit", ActionsAnswer, summary="List the actions on an instance")
def list_actions(request: ApiRequest, name: str, id: str, wanted: Query[Page]) -> HttpResponse:
    """Who did what to it, newest first."""
    rows = Audit.objects.filter(instance_key=instance_of(name, id).key).order_by("-key")
    if wanted.cursor is not None:
        rows = rows.filter(key__lt=int(wanted.cursor))
    page, cursor = cut(rows, wanted.limit)
    return answer({"actions": [documents.action_on(row) for row in page], "next_cursor": cursor})


@reads(router, f"{ONE}/payloads/{{slug:what}}", AnyJson, summary="Read a value of an instance")
def read_payload(request: ApiRequest, name: str, id: str, what: str) -> HttpResponse:
    """Its params, output or error, exactly as stored, with secrets masked. `what` names one of them."""
    if what not in ("params", "output", "error"):
        raise not_found()
    return _value(Instance.objects.filter(key=instance_of(name, id).key), what)


@reads(router, f"{ONE}/steps/{{step:seq}}/payloads/{{slug:what}}", AnyJson, summary="Read a value of a step")
def read_step_payload(
    request: ApiRequest, name: str, id: str, seq: int, what: str, wanted: Query[GenerationWanted]
) -> HttpResponse:
    """Its output or error, exactly as stored. A sensitive output is not shown."""
    if what not in ("output", "error"):
        raise not_found()
    rows = steps_of(_in(instance_of(name, id), wanted.generation)).filter(seq=seq)
    return _value(rows.filter(sensitive=False) if what == "output" else rows, what)


def _in(instance: Instance, generation: int | None) -> Instance:
    """Return the instance in one of its generations, by default the current one."""
    return snapshot(instance, generation).instance if generation is not None else instance


def _value(rows: QuerySet[Instance] | QuerySet[Step], column: str) -> HttpResponse:
    found = rows.annotate(text_of=Cast(column, TextField())).values_list("text_of", flat=True).first()
    if found is None:
        raise not_found()
    return HttpResponse(masked_text(found), CONTENT_TYPE)
