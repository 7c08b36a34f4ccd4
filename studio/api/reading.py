"""Find what a request is about, as far as its sender may see it, and cut lists into pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from django.urls import reverse

from engine.models import Instance
from engine.status.prepared import Prepared
from engine.status.search import workflow_names
from studio.access.permissions import sees_all, visible
from studio.api.answers import etag_of
from studio.api.auth import ApiRequest, not_found
from studio.api.problems import ProblemError
from studio.frame.patience import TooSlowError
from studio.frame.patience import patience as limited

M = TypeVar("M", bound=Model)

IF_MATCH = "If-Match"
PATIENCE_S = 3


def instance_of(name: str, id: str) -> Instance:
    """Return an instance without its values. Raises ProblemError."""
    return _only(Instance.objects.filter(workflow=name, id=id))


def locked(name: str, id: str) -> Instance:
    """Return the same, locked until the transaction ends."""
    return _only(Instance.objects.select_for_update(no_key=True).filter(workflow=name, id=id))


def _only(rows: QuerySet[Instance]) -> Instance:
    found = list(rows.defer("params", "output", "error"))
    if not found:
        raise not_found()
    return found[0]


def location_of(instance: Instance) -> str:
    """Return the address of an instance in the API."""
    return reverse("studio:api-instance", kwargs={"name": instance.workflow, "id": instance.id})


def instance_with_values(name: str, id: str) -> Instance:
    """Return the same with its values."""
    found = _BY_NAME.rows(name, id)
    if not found:
        raise not_found()
    return found[0]


def _by_name(name: str, id: str) -> QuerySet[Instance]:
    return Instance.objects.filter(workflow=name, id=id)


_BY_NAME = Prepared(_by_name)


def seen_names(holder: Any) -> list[str] | None:
    """Return the workflows that the holder may see; None: all."""
    return None if sees_all(holder) else visible(holder, workflow_names())


def seen(rows: QuerySet[M], holder: Any, column: str = "workflow") -> QuerySet[M]:
    """Return those rows whose workflow the holder may see."""
    names = seen_names(holder)
    return rows if names is None else rows.filter(**{f"{column}__in": names})


def check_match(request: ApiRequest, instance: Instance) -> None:
    """Raise ProblemError if the request names another state of the instance than it is in. The row is locked."""
    wanted = request.headers.get(IF_MATCH)
    if wanted is None or wanted.strip() == "*":
        return
    now = etag_of(instance)
    # What compresses an answer on its way marks its tag as a weak one; the state is the same.
    if now in (tag.strip().removeprefix("W/") for tag in wanted.split(",")):
        return
    detail = f"The instance has changed since then: it is {instance.status.replace('_', ' ')}. Read it again."
    raise ProblemError(412, "stale", detail, headers={"ETag": now})


@contextmanager
def patience() -> Iterator[None]:
    """Limit how long a search takes. Raises ProblemError."""
    try:
        with limited(PATIENCE_S):
            yield
    except TooSlowError:
        detail = "The search took too long. Narrow it, for instance to a workflow and a status."
        raise ProblemError(503, "too_slow", detail, headers={"Retry-After": "5"}) from None


def cut(rows: QuerySet[M], limit: int, *, key: str = "key") -> tuple[Sequence[M], str | None]:
    """Return a page of rows, and the cursor of the next one: the key of the last row."""
    found = list(rows[: limit + 1])
    page = found[:limit]
    return page, str(getattr(page[-1], key)) if len(found) > limit else None
