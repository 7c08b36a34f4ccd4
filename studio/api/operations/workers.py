"""Drain workers and resume them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from ninja import Router

from engine.models import Worker
from engine.status import documents
from engine.steer import workers
from studio.access import denied_audit
from studio.access.denied_audit import Subject
from studio.access.permissions import Verb, allowed, sees_all
from studio.access.principals import Principal
from studio.api.answers import answer
from studio.api.auth import ApiRequest
from studio.api.fields import Because
from studio.api.operation import writes
from studio.api.problems import ProblemError
from studio.api.schemas.operating import DrainedAnswer

router = Router(tags=["Operations"])


def _subject(names: Mapping[str, Any]) -> Subject:
    """Return the worker in a path, as the audit trail names it."""
    name = names["worker"].replace("\0", "")
    is_known = Worker.objects.filter(name=name).exists()
    return Subject("", data={"worker": name}) if is_known else Subject(None)


def _check(request: ApiRequest, worker: str, body: Because) -> None:
    """Raise ProblemError unless a person who administers is behind the request: no token may by itself."""
    holder: Any = request.auth
    if not sees_all(holder):
        raise ProblemError(403, "not_allowed", "This needs a token for all workflows.")
    person = holder.owner if isinstance(holder, Principal) else holder
    if person is None or not allowed(person, Verb.ADMINISTER, None):
        action = workers.DRAIN if request.path.endswith("/drain") else workers.RESUME
        denied_audit.record(action, _subject({"worker": worker}), holder)
        raise ProblemError(403, "not_allowed", "This needs a personal token of someone who may administer.")


@writes(
    router,
    "/workers/{worker:worker}/drain",
    DrainedAnswer,
    action=workers.DRAIN,
    verb=Verb.OPERATE,  # of the token; of its owner:
    asks=Verb.ADMINISTER,
    about=_subject,
    check=_check,
    summary="Drain a worker or a cluster",
)
def drain_worker(request: ApiRequest, worker: str, body: Because) -> HttpResponse:
    """It claims nothing until it is resumed, and finishes what runs.

    The token must be for all workflows, and of an admin.
    """
    return answer(documents.drained(workers.drain(worker, by=request.auth, reason=body.reason)))


@writes(
    router,
    "/workers/{worker:worker}/resume",
    DrainedAnswer,
    action=workers.RESUME,
    verb=Verb.OPERATE,  # of the token; of its owner:
    asks=Verb.ADMINISTER,
    about=_subject,
    check=_check,
    summary="Resume a worker or a cluster",
)
def resume_worker(request: ApiRequest, worker: str, body: Because) -> HttpResponse:
    """It claims again, unless its cluster drains. The token must be for all workflows, and of an admin."""
    return answer(documents.drained(workers.resume(worker, by=request.auth, reason=body.reason)))
