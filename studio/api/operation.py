"""Declare operations: what each needs, what it answers, and which headers and problems its document names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, get_args, get_origin

from django.http import HttpResponse
from ninja import Router
from ninja.params.models import Query as QueryParam
from pydantic.fields import FieldInfo

from studio.access.permissions import Verb
from studio.api import parameters
from studio.api.auth import About, ApiRequest, Needs, subject_of
from studio.api.idempotency import idempotent
from studio.api.schemas.problem import Problem

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Declared:
    """An operation: its address below the prefix, in Django's notation, and what it needs."""

    route: str
    method: str
    verb: Verb
    action: str
    asks: Verb | None = None
    """The verb that the operation itself asks for, because the path does not say what it is about."""


DECLARED: list[Declared] = []

ALWAYS = (400, 401, 403, 404, 413, 422, 429, 503)
WRITES = (409, 415)
KEY = {"$ref": "#/components/parameters/IdempotencyKey"}
MATCH = {"$ref": "#/components/parameters/IfMatch"}


def reads(
    router: Router, path: str, answer: Any, *, gives: Sequence[str] = (), **options: Any
) -> Callable[[F], F]:
    """Declare an operation that reads. It needs the verb `view`. `gives` names the headers of its answer."""
    DECLARED.append(Declared(_route(path), "GET", Verb.VIEW, ""))
    add = router.get(
        path,
        auth=Needs(Verb.VIEW),
        response={200: answer, **dict.fromkeys(ALWAYS, Problem)},
        openapi_extra=_extra(200, gives, []),
        by_alias=True,
        **options,
    )
    return lambda act: add(_strict(act))


def writes(
    router: Router,
    path: str,
    answer: Any,
    *,
    action: str,
    verb: Verb = Verb.OPERATE,
    asks: Verb | None = None,
    status: int = 200,
    method: str = "POST",
    takes_match: bool = False,
    about: About = subject_of,
    check: Callable[..., None] | None = None,
    gives: Sequence[str] = (),
    **options: Any,
) -> Callable[[F], F]:
    """Declare an operation that changes something. It keeps to Idempotency-Key if it is a POST.

    `check` gets the same arguments before it, and raises ProblemError if the sender may not do this. Then the key is
    not used, and a denied attempt that it records stays. `about` returns what such an attempt is about. `gives` names
    the headers of the answer.
    """
    refusals = (*ALWAYS, *WRITES, *((412,) if takes_match else ()))
    DECLARED.append(Declared(_route(path), method, verb, action, asks))
    given = [*([KEY] if method == "POST" else []), *([MATCH] if takes_match else [])]
    headers = [*gives, *(["Idempotency-Replayed"] if method == "POST" else [])]

    def decorate(act: F) -> F:
        add = router.api_operation(
            [method],
            path,
            auth=Needs(verb, action=action, about=about),
            response={status: answer, **dict.fromkeys(refusals, Problem)},
            openapi_extra=_extra(status, headers, given),
            by_alias=True,
            **options,
        )
        done: Any = idempotent(act) if method == "POST" else act
        return add(_strict(done if check is None else _checked(check, done)))

    return decorate


def _checked(check: Callable[..., None], act: Any) -> Any:
    @wraps(act)
    def checked(request: ApiRequest, /, *args: Any, **kwargs: Any) -> HttpResponse:
        check(request, *args, **kwargs)
        response: HttpResponse = act(request, *args, **kwargs)
        return response

    checked.__signature__ = inspect.signature(act, eval_str=True)  # type: ignore[attr-defined]
    return checked


def _strict(act: Any) -> Any:
    """Refuse parameters in the address that the operation does not take."""
    signature = inspect.signature(act, eval_str=True)
    fields = dict(field for one in signature.parameters.values() for field in _fields_of(one.annotation))
    lists = [name for name, field in fields.items() if get_origin(field.annotation) is list]

    @wraps(act)
    def strict(request: ApiRequest, /, *args: Any, **kwargs: Any) -> HttpResponse:
        parameters.check(request, fields, lists)
        response: HttpResponse = act(request, *args, **kwargs)
        return response

    # Ninja reads the types of the operation's arguments, and would look their names up here.
    strict.__signature__ = signature  # type: ignore[attr-defined]
    return strict


def _fields_of(annotation: Any) -> Iterable[tuple[str, FieldInfo]]:
    """Return the fields that an argument takes from the query; none if it is of another kind."""
    kind, *marks = get_args(annotation) or (annotation,)
    return kind.model_fields.items() if any(isinstance(mark, QueryParam) for mark in marks) else ()


def methods_of(route: str) -> list[str]:
    """Return the methods that an address accepts."""
    return sorted({one.method for one in DECLARED if one.route == route})


def _route(path: str) -> str:
    return path.lstrip("/").replace("{", "<").replace("}", ">")


def _extra(status: int, headers: Sequence[str], parameters: Sequence[Any]) -> dict[str, Any]:
    """Return what the document says beyond types."""
    named = {name: {"$ref": f"#/components/headers/{name}"} for name in headers}
    return {"responses": {status: {"headers": named}}, "parameters": [*parameters]}
