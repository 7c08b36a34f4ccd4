"""The guard of every view: the methods that it takes, the verb that each needs, and the question whether it is allowed.

`studio.urls` takes no view without one, so that none can forget to ask.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path
from django.views.decorators.csrf import csrf_protect

from studio import refusals
from studio.access import RefusedError, Verb, allowed
from studio.refusals import Subject
from studio.views.errors import bad_request, forbidden, not_allowed, sign_in_first

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]
Names = Mapping[str, Any]  # what the address names


def subject_of(names: Names) -> Subject:
    """Return what an address is about."""
    return Subject(names.get("name"), names.get("id", ""))


@dataclass(frozen=True, slots=True)
class Rule:
    """What a guarded view takes and needs."""

    methods: tuple[str, ...]
    verbs: Mapping[str, Verb]
    deed: str = ""  # what the audit trail calls it, where a refused try leaves a row there
    takes_payload: bool = False
    about: Callable[[Names], Subject] = subject_of

    @property
    def is_public(self) -> bool:
        return not self.verbs


_rules: dict[Any, Rule] = {}


def guard(
    *,
    get: Verb | None = None,
    post: Verb | None = None,
    deed: str = "",
    takes_payload: bool = False,
    about: Callable[[Names], Subject] = subject_of,
) -> Callable[[View[P]], View[P]]:
    """Let a view take GET or POST, or both, from whoever may do what is named; refuse the rest.

    Somebody who is not signed in is sent to do so; then a method that it does not take is 405, and a missing right 403.
    `takes_payload` lets the body be as large as the settings allow instead of 64 KiB.
    """
    verbs = {method: verb for method, verb in (("GET", get), ("POST", post)) if verb is not None}
    return _guarded(Rule(_methods(*verbs), verbs, deed, takes_payload, about))


def public(*methods: str) -> Callable[[View[P]], View[P]]:
    """Open a view to everybody, signed in or not."""
    return _guarded(Rule(_methods(*methods), {}))


def rule_of(view: object) -> Rule | None:
    """Return the rule of a guarded view; None for any other, also for one that is wrapped around a guarded one."""
    return _rules.get(view)


def guarded_path(where: str, view: View[P], name: str, **names: Any) -> URLPattern:
    """Make an address of a guarded view. Raises ImproperlyConfigured for a view without a guard."""
    if rule_of(view) is None:
        raise ImproperlyConfigured(
            f'The view of "{where}" has not said who may use it: put @guard(…) or @public(…) above it, outermost.'
        )
    return path(where, view, names, name=name)


def _methods(*methods: str) -> tuple[str, ...]:
    # Nothing in a body or a header overrides the method.
    return (*methods, "HEAD") if "GET" in methods else methods


def _guarded(rule: Rule) -> Callable[[View[P]], View[P]]:
    def decorate(view: View[P]) -> View[P]:
        # Also where the site has it as middleware: whoever leaves that out does not open the Studio to other sites.
        safe = csrf_protect(view)

        @wraps(view)
        def asking(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if (
                request.method == "POST"
            ):  # what was typed may be secret: Django leaves it out of error reports
                request.sensitive_post_parameters = "__ALL__"  # type: ignore[attr-defined]
            refused = _refusal(rule, request, kwargs)
            if refused is not None:
                return refused
            try:
                return safe(request, *args, **kwargs)
            except RefusedError as error:
                return forbidden(request, error.verb)

        _rules[asking] = rule
        return asking

    return decorate


def _refusal(rule: Rule, request: HttpRequest, names: Names) -> HttpResponseBase | None:
    user = getattr(request, "user", None)
    if not rule.is_public and not getattr(user, "is_authenticated", False):
        return sign_in_first(request)
    if request.method not in rule.methods:
        return not_allowed(request, rule.methods)
    verb = rule.verbs.get("GET" if request.method == "HEAD" else request.method)
    if verb is not None:
        subject = rule.about(names)
        if not allowed(user, verb, subject.workflow):
            if rule.deed and request.method == "POST":
                refusals.note(rule.deed, subject, user)
            return forbidden(request, verb)
    return None if _is_text(request) else bad_request(request)


def _is_text(request: HttpRequest) -> bool:
    """Tell whether all that was typed can be stored and shown: some encodings make lone surrogates."""
    try:
        for name, values in request.POST.lists():
            "".join((name, *values)).encode()
    except UnicodeEncodeError:
        return False
    return True
