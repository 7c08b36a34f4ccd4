"""Guard every view: a decorator names the methods it accepts and the verb that each needs, and checks both.

`studio.urls` accepts guarded views only, so that no view can forget to check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured, RequestDataTooBig, TooManyFieldsSent
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path
from django.views.decorators.csrf import csrf_protect

from studio.access import denied_audit
from studio.access.anonymous_queue import accept
from studio.access.denied_audit import Subject
from studio.access.permissions import RefusedError, Verb, allowed
from studio.frame.compression import compress
from studio.frame.errors import (
    LONGEST_PATH,
    bad_request,
    forbidden,
    not_allowed,
    not_found,
    sign_in_first,
    too_long,
)
from studio.frame.headers import set_headers
from studio.frame.notes import store_notes
from studio.frame.payload_body import read_payload
from studio.frame.pieces import HtmxRequest, with_htmx

P = ParamSpec("P")
View = Callable[Concatenate[HtmxRequest, P], HttpResponseBase]
Names = Mapping[str, Any]  # the named parts of a path


def subject_of(names: Names) -> Subject:
    """Return what a path is about."""
    return Subject(names.get("name"), names.get("id", ""))


@dataclass(frozen=True, slots=True)
class Rule:
    """The methods that a guarded view accepts, and the verbs that they need."""

    methods: tuple[str, ...]
    verbs: Mapping[str, Verb]
    action: str = ""  # its verb in the audit trail, where denied attempts are recorded
    takes_payload: bool = False
    about: Callable[[Names], Subject] = subject_of
    is_by_token: bool = False  # of the HTTP API, which sessions do not open
    strangers_bytes: int = 64 * 1024  # in the body of a request without credentials
    is_signed: bool = False  # deliveries of webhooks, whose senders sign each instead of signing in

    @property
    def is_public(self) -> bool:
        return not self.verbs


_rules: dict[Any, Rule] = {}


def guard(
    *,
    get: Verb | None = None,
    post: Verb | None = None,
    action: str = "",
    takes_payload: bool = False,
    about: Callable[[Names], Subject] = subject_of,
) -> Callable[[View[P]], View[P]]:
    """Let a view accept GET, POST or both, from users with the given permissions.

    Anonymous users are redirected to sign-in. Other methods get a 405, a missing permission a 403. `takes_payload`
    allows a body of MAX_BODY_BYTES to people who are signed in, instead of 64 KiB.
    """
    verbs = {method: verb for method, verb in (("GET", get), ("POST", post)) if verb is not None}
    return _guarded(Rule(_methods(*verbs), verbs, action, takes_payload, about))


def public(*methods: str) -> Callable[[View[P]], View[P]]:
    """Let everybody use a view."""
    return _guarded(Rule(_methods(*methods), {}))


def rule_of(view: object) -> Rule | None:
    """Return the rule of a guarded view; None for any other view, including a wrapper around a guarded one."""
    return _rules.get(view)


def add_rule(view: object, rule: Rule) -> None:
    """Give a view that checks for itself a rule, so that the Studio's limits apply to it."""
    _rules[view] = rule


def guarded_path(where: str, view: View[P], name: str, **names: Any) -> URLPattern:
    """Return the URL pattern of a guarded view. Raises ImproperlyConfigured for any other view."""
    if rule_of(view) is None:
        raise ImproperlyConfigured(
            f'The view of "{where}" has no guard. Add @guard(…) or @public(…) as its outermost decorator.'
        )
    return path(where, view, names, name=name)


def _methods(*methods: str) -> tuple[str, ...]:
    # Nothing in the body or the headers overrides the method.
    return (*methods, "HEAD") if "GET" in methods else methods


def _guarded(rule: Rule) -> Callable[[View[P]], View[P]]:
    def decorate(view: View[P]) -> View[P]:
        @csrf_protect  # even if the site leaves out Django's middleware
        def checked(request: HtmxRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            refused = _refusal(rule, request, kwargs)
            return view(request, *args, **kwargs) if refused is None else refused

        @wraps(view)
        def asking(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            response = answer(with_htmx(request), *args, **kwargs)
            store_notes(request, response)
            set_headers(response)
            compress(request, response)
            return response

        def answer(request: HtmxRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if len(request.path) > LONGEST_PATH:
                return too_long(request)
            if request.method == "POST":
                # What was typed may be secret: Django leaves it out of error reports.
                request.sensitive_post_parameters = "__ALL__"  # type: ignore[attr-defined]
            try:
                if rule.takes_payload:
                    read_payload(request)
                return checked(request, *args, **kwargs)
            except RefusedError as error:
                return forbidden(request, error.verb)
            except (RequestDataTooBig, TooManyFieldsSent) as error:
                return bad_request(request, error)
            except Http404:
                return not_found(request)

        # Django's LoginRequiredMiddleware would refuse probes and the sign-in page, and redirect fragments: the guard
        # decides.
        asking.login_required = False  # type: ignore[attr-defined]
        # The middleware would read the form before `read_payload`; `checked` asks for the token.
        asking.csrf_exempt = rule.takes_payload  # type: ignore[attr-defined]
        add_rule(asking, rule)
        return asking

    return decorate


def _refusal(rule: Rule, request: HtmxRequest, names: Names) -> HttpResponseBase | None:
    user = getattr(request, "user", None)
    if not rule.is_public and not getattr(user, "is_authenticated", False):
        return sign_in_first(request)
    if request.method not in rule.methods:
        return not_allowed(request, rule.methods)
    verb = rule.verbs.get("GET" if request.method == "HEAD" else request.method)
    if verb is not None:
        subject = rule.about(names)
        if allowed(user, verb, subject.workflow):
            session_key = request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")
            accept(getattr(request, "scope", {}), session_key)
        else:
            if rule.action and request.method == "POST":
                denied_audit.record(rule.action, subject, user)
            return forbidden(request, verb)
    return None if _is_text(request) else bad_request(request)


def _is_text(request: HttpRequest) -> bool:
    """Return whether the form is valid Unicode: some charsets decode to lone surrogates, which cannot be stored."""
    try:
        for name, values in request.POST.lists():
            "".join((name, *values)).encode()
    except UnicodeEncodeError:
        return False
    return True
