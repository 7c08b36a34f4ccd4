"""Signing in and out, and the colours of the page."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import logout
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from studio.views.guard import public

THEMES = ("system", "light", "dark")
YEAR_S = 365 * 24 * 3600


class SignInForm(AuthenticationForm):
    """Django's own, with one text for every reason: it tells nobody which names exist."""

    error_messages = {
        "invalid_login": "That name and password do not go together.",
        "inactive": "That name and password do not go together.",
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""


class SignIn(LoginView):
    """The session id changes at sign-in, and `next` leads only to this site: both are Django's own doing."""

    template_name = "pages/sign-in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True
    next_page = "home"


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
