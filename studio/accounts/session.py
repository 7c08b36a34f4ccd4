"""Signing out, and the colour theme. Signing in is in `studio.accounts.passwords`."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import resolve_url
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from studio.access.login import is_own_login, login_address
from studio.accounts.preferences import THEMES, keep
from studio.frame.guard import public
from studio.frame.pieces import HtmxRequest


@public("POST")
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session here and forget in the browser what it kept of the pages."""
    logout(request)
    after = settings.LOGOUT_REDIRECT_URL
    response = HttpResponseRedirect(resolve_url(after) if after else login_address())
    if is_own_login():  # otherwise other pages of the site may keep something there
        response.headers["Clear-Site-Data"] = '"cache", "storage"'
    return response


@public("POST")
def theme(request: HtmxRequest) -> HttpResponse:
    """Keep the wanted colours in a cookie, so that the server draws the first page in them."""
    wanted = request.POST.get("theme", "")
    wanted = wanted if wanted in THEMES else "system"
    back = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(
        back, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    ):
        back = reverse("studio:home")
    response = HttpResponse(status=204) if request.htmx else HttpResponseRedirect(back)
    keep(request, response, theme=wanted)
    return response
