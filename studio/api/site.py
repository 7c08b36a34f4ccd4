"""The API: its operations, its document, and their addresses."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, include, path
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError
from ninja.operation import Operation

from studio.api import openapi
from studio.api.about import ABOUT, TAGS
from studio.api.auth import authenticate, not_found
from studio.api.body import EngineParser
from studio.api.door import async_door, door, refused
from studio.api.operation import methods_of
from studio.api.operations import (
    bulk_jobs,
    errors,
    events,
    history,
    instances,
    notes,
    pauses,
    requests,
    schedules,
    steering,
    trail,
    workers,
    workflows,
)
from studio.api.problems import ProblemError, WrongField, problem
from studio.api.stream.view import subscribe

PREFIX = "api/v1/"
STREAM = "workflows/<workflow:name>/instances/<id:id>/subscribe"  # ninja cannot stream
VALUE_ERROR = "Value error, "  # what pydantic puts before a sentence of ours
EVERY_METHOD = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


class Api(NinjaAPI):
    """The API: its operations are known by the names of their functions."""

    def get_openapi_operation_id(self, operation: Operation) -> str:
        return str(operation.view_func.__name__)


api = Api(
    title="Reprise",
    version="1",
    description=ABOUT,
    openapi_url=None,
    docs_url=None,
    parser=EngineParser(),
    urls_namespace="reprise-api",
    openapi_extra={"tags": [{"name": name, "description": about} for name, about in TAGS.items()]},
)
for module in (
    *(workflows, pauses, instances, history, steering, bulk_jobs, notes),
    *(events, requests, errors, schedules, trail, workers),
):
    api.add_router("", module.router)


@api.exception_handler(ValidationError)
def _invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """Name each field of the address or the body that is wrong."""
    wrong = [_wrong(one) for one in error.errors]
    detail = (
        f"{wrong[0]['path'] or 'The request'}: {wrong[0]['message']}"
        if wrong
        else "The request is not valid."
    )
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    return problem(ProblemError(422, "invalid_request", f"{detail}{more}", errors=wrong))


@api.exception_handler(HttpError)
def _unreadable(request: HttpRequest, error: HttpError) -> HttpResponse:
    """Answer a body that cannot be read: ninja wraps what the parser raises."""
    return refused(request, error.__cause__ if isinstance(error.__cause__, Exception) else error)


@api.exception_handler(Exception)
def _refused(request: HttpRequest, error: Exception) -> HttpResponse:
    return refused(request, error)


def _wrong(one: dict[str, Any]) -> WrongField:
    # The first parts say where pydantic looked: body, and the name of the argument.
    where = [str(part) for part in one["loc"]]
    where = where[2:] if where[:1] == ["body"] else where[1:] if where[:1] in (["query"], ["path"]) else where
    where = where[1:] if where[:1] == ["wanted"] else where
    return {
        "path": "/".join(where),
        "code": str(one["type"]),
        "message": str(one["msg"]).removeprefix(VALUE_ERROR),
    }


def _elsewhere(request: HttpRequest, rest: str = "") -> HttpResponse:
    """Answer requests for addresses that the API does not have."""
    authenticate(request)
    raise not_found()


def patterns(*pages: URLPattern) -> list[URLPattern | URLResolver]:
    """Return the addresses of the API, each behind its door, with those of some pages below the same prefix."""
    found: dict[str, URLPattern] = {}
    for one in api.urls[0]:
        route = str(one.pattern)
        methods = methods_of(route)
        # Ninja lists an address once for each of its methods.
        if isinstance(one, URLPattern) and one.callback is not None and methods and route not in found:
            found[route] = path(route, door(one.callback, methods), name=_name_of(one))
    view: Any = async_door(subscribe, ("GET",))
    stream = path(STREAM, view, name="api-subscribe")
    elsewhere = door(_elsewhere, EVERY_METHOD)
    # Also without the slash: Django would redirect, and clients do not send their token with them.
    bare = path(PREFIX.rstrip("/"), elsewhere, name="api-elsewhere")
    rest = [path(route, elsewhere, name="api-elsewhere") for route in ("", "<anything:rest>")]
    document = path(openapi.NAME, door(openapi.document, ("GET",), is_public=True), name="api-document")
    # Django looks at these only if an address begins with the prefix, and then at no others.
    return [path(PREFIX, include([*pages, document, *found.values(), stream, *rest])), bare]


def _name_of(pattern: URLPattern) -> str:
    name = str(pattern.name).replace("_", "-")
    return name if name.startswith("api-") else f"api-{name}"
