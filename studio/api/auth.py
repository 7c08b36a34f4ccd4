"""Decide who sends a request to the API, and whether they may: a token, or the project's own authentication.

Cookies are never read: a page of another site could send them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables
from ninja.security.base import AuthBase

from studio.access import denied_audit, tokens
from studio.access.anonymous_queue import accept, forget
from studio.access.credentials import bearer, program_keys
from studio.access.denied_audit import Subject
from studio.access.permissions import Verb, allowed
from studio.access.principals import Principal
from studio.api import project_auth, rates
from studio.api.body import body_of
from studio.api.problems import ProblemError

REALM = 'Bearer realm="reprise"'


About = Callable[[Mapping[str, Any]], Subject]  # what the named parts of a path are about


def subject_of(names: Mapping[str, Any]) -> Subject:
    """Return the workflow or the instance in a path."""
    return Subject(names.get("name"), names.get("id", ""))


class ApiRequest(HttpRequest):
    """A request to the API, as operations get it."""

    auth: Any
    """Who sends it: the holder of a token, or a user of the project's own authentication."""


class Needs(AuthBase):
    """What an operation needs: a verb, for the workflow in the path if there is one.

    With `action`, its verb in the audit trail, denied attempts are recorded. The holder of the request is then
    `request.auth`.
    """

    openapi_type = "http"
    openapi_scheme = "bearer"
    openapi_name = "Token"

    def __init__(self, verb: Verb, *, action: str = "", about: About | None = None) -> None:
        self.verb, self.action, self.about = verb, action, about or subject_of
        super().__init__()

    def __call__(self, request: HttpRequest) -> Any:
        """Return who sends it. Raises ProblemError: 401, 403 or 429."""
        holder = authenticate(request)
        names: Mapping[str, Any] = getattr(request.resolver_match, "kwargs", {})
        workflow = names.get("name")
        if not allowed(holder, self.verb, workflow):
            if self.action and allowed(holder, Verb.VIEW, workflow):
                denied_audit.record(self.action, self.about(names), holder)
            raise refusal(holder, self.verb, workflow)
        # Before ninja reads it, under the limits of the site.
        body_of(request)
        return holder


@sensitive_variables("scope")
def authenticate(request: HttpRequest) -> Any:
    """Return who sends a request, and count it. Raises ProblemError with 401 or 429."""
    scope: Any = getattr(request, "scope", None)
    keys = program_keys(scope["headers"]) if scope else ()
    try:
        holder = holder_of(request)
    except ProblemError:
        forget(keys)
        raise
    for key in keys:
        # Beside a token of ours, another header has opened nothing.
        if not isinstance(holder, Principal) or key.startswith("authorization "):
            accept(scope, key)
    request.rate_headers = rates.spend(principal_key(holder))  # type: ignore[attr-defined]
    return holder


@sensitive_variables("text")
def holder_of(request: HttpRequest) -> Any:
    """Return who sends a request. Raises ProblemError with 401."""
    text = bearer(request.headers.get("Authorization", ""))
    holder: Any = (tokens.find(text) if text else None) or project_auth.holder_of(request)
    if holder is None:
        raise _unknown(has_token=bool(text))
    return holder


def refusal(holder: Any, verb: Verb, workflow: str | None) -> ProblemError:
    """Return the answer to a holder who may not do this: 404 for a workflow that they may not even see."""
    may_view = verb is not Verb.VIEW and allowed(holder, Verb.VIEW, workflow)
    if not may_view and workflow is not None and allowed(holder, Verb.VIEW, None):
        return not_found()
    return ProblemError(403, "not_allowed", f'This needs the verb "{verb}", which the token does not allow.')


def not_found() -> ProblemError:
    """Return the answer for what does not exist, or must not be seen: nobody can tell the two apart."""
    return ProblemError(
        404, "not_found", "There is nothing at this address, or the token does not allow to see it."
    )


def principal_key(holder: Any) -> str:
    """Return a key for the holder, which limits and idempotency keys go with."""
    if isinstance(holder, Principal):
        return holder.key
    # The project's authentication may know several kinds of users.
    which = f"{type(holder).__module__}.{type(holder).__qualname__} {holder.pk} {holder.get_username()}"
    return f"user:{hashlib.sha256(which.encode(errors='replace')).hexdigest()}"


def _unknown(*, has_token: bool) -> ProblemError:
    challenge = f'{REALM}, error="invalid_token"' if has_token else REALM
    detail = (
        "The token is unknown, expired or revoked."
        if has_token
        else "Send a token in the header Authorization: Bearer …"
    )
    return ProblemError(401, "not_authenticated", detail, headers={"WWW-Authenticate": challenge})
