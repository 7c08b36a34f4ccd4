"""The problems that every operation may answer, each once."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from studio.access.problem import CODES, CONTENT_TYPE
from studio.api.problems import KINDS
from tests.docs.made.openapi import headers
from tests.docs.pages import PROJECT

NAMES: Mapping[int, tuple[str, str]] = {
    400: ("Unreadable", "The body is not valid JSON, or ended too early."),
    401: ("NotAuthenticated", "No token, or one that is unknown, expired or revoked."),
    403: ("NotAllowed", "The token does not allow this."),
    404: ("NotFound", "It does not exist, or the token does not cover its workflow: the answer is the same."),
    409: ("Conflict", "It is not in a state for this."),
    412: (
        "Stale",
        "The instance has changed since the state that If-Match names. The answer has the new ETag.",
    ),
    413: ("TooLarge", "The body is larger than the limit."),
    415: ("NotJson", "The body is not sent as application/json."),
    422: ("Invalid", "Something in the request is wrong: `errors` says where."),
    429: ("TooManyRequests", "The token has used up its requests of this minute."),
    503: (
        "Unavailable",
        "The database does not answer. Nothing was done, or it can be repeated with its key.",
    ),
}
HEADERS = {401: ("WWW-Authenticate",), 412: ("ETag",), 429: ("Retry-After",), 503: ("Retry-After",)}
SOURCES = PROJECT / "studio" / "api"


def name_of(status: int) -> str:
    """Return the name of the component for a status."""
    return NAMES[status][0]


def responses(examples: Mapping[str, Any]) -> dict[str, Any]:
    """Return the components."""
    found = examples.get("problems", {})
    return {name: _response(status, about, found) for status, (name, about) in NAMES.items()}


def _response(status: int, about: str, examples: Mapping[str, Any]) -> dict[str, Any]:
    example = examples.get(str(status))
    listed = ", ".join(f"`{code}`" for code in codes()[status])
    return {
        "description": f"{about} Codes: {listed}.",
        "headers": headers.refs(*HEADERS.get(status, ()), *(() if status == 401 else headers.ALWAYS)),
        "content": {
            CONTENT_TYPE: {
                "schema": {"$ref": "#/components/schemas/Problem"},
                **({"example": example} if example else {}),
            }
        },
    }


@cache
def codes() -> Mapping[int, list[str]]:
    """Return the codes that the source has for each status."""
    found: dict[int, set[str]] = defaultdict(set)
    for status, code in (*KINDS.values(), *CODES.items(), *_raised()):
        found[status].add(code)
    return {status: sorted(names) for status, names in sorted(found.items())}


def _raised() -> Iterator[tuple[int, str]]:
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if is_call and node.func.id == "ProblemError" and len(node.args) >= 2:  # type: ignore[attr-defined]
                status, code = node.args[:2]  # type: ignore[attr-defined]
                if isinstance(status, ast.Constant) and isinstance(code, ast.Constant):
                    yield int(str(status.value)), str(code.value)
