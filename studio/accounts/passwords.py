"""Signing in and changing a password: attempts are limited, and so is how many are hashed at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast
from urllib.parse import urlsplit

from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.contrib.auth.password_validation import password_validators_help_texts
from django.contrib.auth.views import LoginView, PasswordChangeView
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import Resolver404, reverse_lazy

from studio.access.addresses import address_of
from studio.access.anonymous_queue import release_turn
from studio.access.login import is_own_login
from studio.access.permissions import Verb
from studio.access.routes import match_of
from studio.accounts import password_limits
from studio.accounts.password_limits import TooManyAttemptsError, attempt
from studio.display.rendering import render
from studio.frame.errors import busy, sign_in_first, too_many
from studio.frame.guard import guard, public
from studio.frame.notes import note
from studio.frame.pieces import HtmxRequest

SESSION_PAGES = ("studio:sign-in", "studio:sign-out", "studio:theme")


@contextmanager
def hashed(request: HttpRequest) -> Iterator[None]:
    """Wait for a slot to hash in, and let other requests go on meanwhile."""
    release_turn(getattr(request, "scope", {}))
    with password_limits.slot(address_of(request)):
        yield


class SignInForm(AuthenticationForm):
    """Django's form, with the same text for every failure: nobody learns which names exist."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["username"]
        if self.username_field.name == "username":
            field.label = "User name"
        said = f"Wrong {str(field.label).lower()} or password."
        self.error_messages = {"invalid_login": said, "inactive": said}

    def clean(self) -> dict[str, Any]:
        name, password = self.cleaned_data.get("username"), self.cleaned_data.get("password")
        if self.request is None or not name or not password:
            return super().clean()
        with attempt(address_of(self.request), name), hashed(self.request):
            return super().clean()


class PasswordForm(PasswordChangeForm):
    """Django's form; a wrong old password counts as a failed sign-in."""

    def __init__(self, *args: Any, request: HttpRequest, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request = request

    def clean_old_password(self) -> str:
        with attempt(address_of(self.request), self.user.get_username()), hashed(self.request):
            return super().clean_old_password()

    def save(self, commit: bool = True) -> Any:
        with hashed(self.request):
            return super().save(commit)


class LimitedView:
    """Answer 429 after too many attempts, or if too many wait for a slot. Render as all pages of the Studio."""

    request: HttpRequest
    template_name: str

    def render_to_response(self, context: dict[str, Any], **_: Any) -> HttpResponse:
        return render(self.request, self.template_name, context)

    def post(self, request: HttpRequest, *args: str, **kwargs: Any) -> HttpResponse:
        view: Any = super()
        try:
            response: HttpResponse = view.post(request, *args, **kwargs)
        except TooManyAttemptsError as error:
            return too_many(request, error.wait)
        except password_limits.BusyError:
            return busy(request, password_limits.RETRY_AFTER)
        return response


class SignIn(LimitedView, LoginView):
    """Django changes the session id at sign-in, and follows `next` on this site only."""

    template_name = "studio/accounts/sign-in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True
    next_page = "studio:home"

    def dispatch(self, request: HttpRequest, *args: str, **kwargs: Any) -> HttpResponseBase:
        """Send people to the project's own page if it has one: it may ask for more than a password."""
        if not is_own_login():
            return sign_in_first(cast(HtmxRequest, request), back=self.get_redirect_url())
        return super().dispatch(request, *args, **kwargs)

    def get_redirect_url(self, *args: Any) -> str:
        """Return `next`, unless it leads to signing in or out: that would be a loop."""
        target = super().get_redirect_url(*args)
        return "" if _name_of(target) in SESSION_PAGES else target


class ChangePassword(LimitedView, PasswordChangeView):
    """Django keeps this session under a new id, and ends all others of the account."""

    template_name = "studio/accounts/password.html"
    form_class = PasswordForm
    success_url = reverse_lazy("studio:home")

    def dispatch(self, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not is_own_login():
            raise Http404
        return super().dispatch(*args, **kwargs)

    def get_form_kwargs(self) -> dict[str, Any]:
        return {**super().get_form_kwargs(), "request": self.request}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), "rules": password_validators_help_texts()}

    def form_valid(self, form: Any) -> HttpResponse:
        response = super().form_valid(form)
        note(self.request, "Your password was changed. Your other sessions were signed out.")
        return response


sign_in = public("GET", "POST")(SignIn.as_view())
change_password = guard(get=Verb.VIEW, post=Verb.VIEW)(ChangePassword.as_view())


def _name_of(target: str) -> str | None:
    try:
        return match_of(urlsplit(target).path).view_name
    except (Resolver404, ValueError):
        return None
