"""Where people sign in: on the project's own page if it has one, otherwise on the Studio's."""

from __future__ import annotations

from django.conf import global_settings, settings
from django.shortcuts import resolve_url
from django.urls import Resolver404, resolve, reverse

from studio.access.routes import match_of

_NO_PAGE = "/accounts/login/no-page/"


def login_address() -> str:
    """Return the address of LOGIN_URL, or of the Studio's own page if the project has no page for it."""
    own = reverse("studio:sign-in")
    if settings.LOGIN_URL is None:
        return own
    wanted = resolve_url(settings.LOGIN_URL)
    if settings.LOGIN_URL == global_settings.LOGIN_URL and not _is_a_page(wanted):
        return own
    return wanted


def is_own_login() -> bool:
    """Tell whether people sign in on the Studio's own page. Otherwise passwords are the project's business."""
    return login_address() == reverse("studio:sign-in")


def _is_a_page(address: str) -> bool:
    """Tell whether the project has a page there, and not just one for every address that it has no other page for."""
    try:
        found = match_of(address)
    except Resolver404:
        return False
    try:
        return found.func is not resolve(_NO_PAGE).func
    except Resolver404:
        return True
