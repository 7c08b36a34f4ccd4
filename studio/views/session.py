"""Signing in and out, and the colours of the page."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth import logout
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import Resolver404, resolve, reverse
from django.utils.http import url_has_allowed_host_and_scheme

from studio import hashing
from studio.addresses import address_of
from studio.sign_in_limits import TooManyTriesError, one_try
from studio.views.errors import too_many
from studio.views.guard import public

THEMES = ("system", "light", "dark")
SESSION_PAGES = ("sign-in", "sign-out", "theme")
YEAR_S = 365 * 24 * 3600


class SignInForm(AuthenticationForm):
    """Django's own, with one text for every reason: it tells nobody which names exist.

    Cleaning it raises TooManyTriesError or BusyError before the password is looked at.
    """

    error_messages = {
        "invalid_login": "That name and password do not go together.",
        "inactive": "That name and password do not go together.",
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""

    def clean(self) -> dict[str, Any]:
        name, password = self.cleaned_data.get("username"), self.cleaned_data.get("password")
        if self.request is None or not name or not password:
            return super().clean()
        address = address_of(self.request)
        with one_try(address, name), hashing.place(address):
            return super().clean()


class SignIn(LoginView):
    """The session id changes at sign-in, and `next` leads only to this site: both are Django's own doing."""

    template_name = "pages/sign-in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True
    next_page = "home"

    def post(self, request: HttpRequest, *args: str, **kwargs: Any) -> HttpResponse:
        try:
            return super().post(request, *args, **kwargs)
        except TooManyTriesError as error:
            return too_many(request, error.wait)
        except hashing.BusyError:
            return too_many(request, hashing.RETRY_AFTER)

    def get_redirect_url(self, *args: Any) -> str:
        """Return where `next` leads; nowhere where that is a page about signing in or out, which leads back to it."""
        target = super().get_redirect_url(*args)
        return "" if _name_of(target) in SESSION_PAGES else target


sign_in = public("GET", "POST")(SignIn.as_view())


@public("POST")
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session here and forget in the browser what it kept of the pages."""
    logout(request)
    response = HttpResponseRedirect(reverse("sign-in"))
    response.headers["Clear-Site-Data"] = '"cache", "storage"'
    return response


@public("POST")
def theme(request: HttpRequest) -> HttpResponse:
    """Keep the wanted colours in a cookie, so that the server draws the first page in them."""
    wanted = request.POST.get("theme", "")
    wanted = wanted if wanted in THEMES else "system"
    back = request.POST.get("next", "/")
    if not url_has_allowed_host_and_scheme(
        back, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    ):
        back = "/"
    response = (
        HttpResponse(status=204)
        if request.headers.get("HX-Request") == "true"
        else HttpResponseRedirect(back)
    )
    response.set_cookie(
        "studio-theme", wanted, max_age=YEAR_S, samesite="Lax", httponly=True, secure=request.is_secure()
    )
    return response


def _name_of(target: str) -> str | None:
    try:
        return resolve(urlsplit(target).path).url_name
    except (Resolver404, ValueError):
        return None
