"""System checks: what the Studio needs of a site, each with the line to add, and groups that grant nothing.

`manage.py check` reads the settings; `manage.py check --database default` looks at the groups, too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
from django.apps import apps
from django.conf import settings
from django.contrib.staticfiles import finders
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as Caution
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections
from django.shortcuts import resolve_url
from django.templatetags.static import static
from django.urls import NoReverseMatch, Resolver404, URLResolver, get_resolver, reverse
from django.utils.functional import Promise
from django.utils.module_loading import import_string

from engine.configuration import usable
from engine.status import schema
from studio.access.permissions import ROLES
from studio.access.routes import match_of
from studio.api import project_auth

# What the Studio needs of the site, and why. Leaving one out breaks the Studio but does not open it.
MIDDLEWARE = {
    "django.contrib.sessions.middleware.SessionMiddleware": "it keeps people signed in",
    "django.contrib.auth.middleware.AuthenticationMiddleware": "views check the permissions of its user",
}
STYLE = "studio/frame/base.css"
URLS = 'Add path("ops/", include("studio.urls")), with a prefix of your choice, to the urlpatterns of ROOT_URLCONF.'
STATIC_HINT = (
    'Add "django.contrib.staticfiles" to INSTALLED_APPS, and STATIC_URL; STATICFILES_FINDERS, if set, needs '
    '"django.contrib.staticfiles.finders.AppDirectoriesFinder".'
)
ASGI_HINT = 'Add: ASGI_APPLICATION = "studio.asgi.application"'
COMPOSE = (
    "At the end of that module, add: from studio.server.application import with_studio; "
    "application = with_studio(application)"
)


@register("studio")
def check_settings(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """Check that the site has everything that the Studio's pages need."""
    return [*_middleware(), *_static(), *_urls(), *_login(), *_sockets(), *_api()]


@register("studio", Tags.database)
def check_groups(
    app_configs: Any = None, databases: Sequence[str] | None = None, **_: Any
) -> list[CheckMessage]:
    """Warn about groups with the names of the default groups that have no permission of the Studio."""
    if not databases or DEFAULT_DB_ALIAS not in databases:
        return []
    return [*_tables(), *_groups()]


def _tables() -> Iterator[CheckMessage]:
    """Look for the Studio's own tables. `engine.checks` reports a missing or unreachable PostgreSQL."""
    if connections[DEFAULT_DB_ALIAS].vendor != "postgresql" or sys.argv[1:2] != ["check"]:
        return
    try:
        lacking = schema.missing(apps=("studio",))
    except psycopg.Error:
        return
    if lacking:
        message = schema.sentence(lacking).removesuffix(f" {schema.ADVICE}")
        yield Error(message, hint=schema.ADVICE, id="studio.E008")


def _groups() -> list[CheckMessage]:
    return [
        Caution(
            f'The group "{name}" has none of the Studio\'s permissions: its members see nothing.',
            hint="It existed before the Studio, which does not change existing groups. Give it the permissions "
            '"studio | access" that its members should have, or rename it.',
            id="studio.W001",
        )
        for name in _groups_without_permissions()
    ]


def _middleware() -> Iterator[CheckMessage]:
    for name, use in MIDDLEWARE.items():
        if not any(_is_kind_of(one, name) for one in settings.MIDDLEWARE):
            yield Error(
                f"The Studio needs {name}: {use}.", hint=f'Add "{name}" to MIDDLEWARE.', id="studio.E001"
            )


def _api() -> Iterator[CheckMessage]:
    for path, why in project_auth.unusable(usable("API_AUTH")):
        yield Error(
            f'REPRISE["API_AUTH"] names {path}, which cannot authenticate requests to the API. {why}',
            hint="Name a function of a request, or a class or an instance of django-ninja's security classes, that "
            "returns a Django user. Without the setting, only tokens work.",
            id="studio.E011",
        )


def _static() -> Iterator[CheckMessage]:
    if (
        not apps.is_installed("django.contrib.staticfiles")
        or not settings.STATIC_URL
        or finders.find(STYLE) is None
    ):
        yield Error("The Studio's static files cannot be found.", hint=STATIC_HINT, id="studio.E003")
        return
    # With its links resolved: in a checkout, the folder is one.
    ours = (Path(__file__).parent / "static" / "studio").resolve().parent
    for file in sorted(one for one in ours.glob("studio/**/*.*") if one.is_file()):
        yield from _replaced(file, str(file.relative_to(ours)))
    try:
        static(STYLE)
    except ValueError:  # of a storage with a manifest; while DEBUG is on, it does not look
        yield Caution(
            "The static files have not been collected since the Studio was added: its pages would fail.",
            hint="Run `python manage.py collectstatic` before the site starts.",
            id="studio.W006",
        )


def _replaced(file: Path, name: str) -> Iterator[CheckMessage]:
    found: Any = finders.find(name)
    if found and Path(found).resolve() != file:
        yield Caution(
            f"The Studio's file {name} is replaced by {found}.",
            hint=f"Rename or remove {found}: everything under studio/ in static is the Studio's.",
            id="studio.W002",
        )


def _login() -> Iterator[CheckMessage]:
    """Check that LOGIN_URL is the name of a page, or an address. Another server may serve an address."""
    address = settings.LOGIN_URL
    try:
        if address is None or str(address).startswith("studio:"):
            return  # ours: the check of addresses says if it is missing
        resolve_url(address)
    except (NoReverseMatch, TypeError):
        # The text of a lazy address would be looked up again.
        shown = "a lazy address" if isinstance(address, Promise) else repr(address)
        yield Error(
            f"LOGIN_URL is {shown}, and no page has that name: nobody can sign in to the Studio.",
            hint='Set LOGIN_URL to the name or the address of your sign-in page, or to "studio:sign-in".',
            id="studio.E007",
        )


def _urls() -> Iterator[CheckMessage]:
    try:
        home = reverse("studio:home")
        match = match_of(home)
        is_ours = (match.url_name, match.app_names) == ("home", ["studio"])
    except NoReverseMatch:
        yield _without_address()
        return
    except Resolver404:
        is_ours = False
    if not is_ours:
        yield Error(
            f"Another page has the Studio's address, {home}.",
            hint="Give the Studio a prefix that no other page begins with, or move its line up.",
            id="studio.E005",
        )
    elif not home.endswith("/"):
        yield Error(
            f"The Studio's prefix, {home}, does not end with a slash, so its pages run into it.",
            hint=f'Write "{home.strip("/")}/" in its line of urlpatterns.',
            id="studio.E010",
        )


def _without_address() -> CheckMessage:
    if not _is_included(get_resolver()):
        return Error("The Studio has no address.", hint=URLS, id="studio.E004")
    return Error(
        "The Studio cannot find its own address: it is below another namespace, or its prefix takes an argument.",
        hint='Put path("ops/", include("studio.urls")) into urlpatterns of ROOT_URLCONF itself, with a fixed prefix.',
        id="studio.E009",
    )


def _is_included(resolver: URLResolver) -> bool:
    nested = [one for one in resolver.url_patterns if isinstance(one, URLResolver)]
    return any(one.app_name == "studio" or _is_included(one) for one in nested)


def _sockets() -> Iterator[CheckMessage]:
    """Ask where sockets go; without that the Studio's pages do not update by themselves."""
    if settings.DEBUG and not apps.is_installed("daphne") and settings.ROOT_URLCONF != "studio.site":
        yield Caution(
            "runserver has no sockets, so the pages of the Studio update only every few seconds.",
            hint='Add: INSTALLED_APPS.insert(0, "daphne")',
            id="studio.W005",
        )
    name = getattr(settings, "ASGI_APPLICATION", None)
    if not name and apps.is_installed("daphne"):
        yield Caution(
            "ASGI_APPLICATION is not set, so runserver has no sockets.", hint=ASGI_HINT, id="studio.W003"
        )
    elif name and not _mentions_studio(name.rpartition(".")[0]):
        yield Caution(
            f"ASGI_APPLICATION is {name}, which does not seem to serve the Studio's sockets.",
            hint=f"{COMPOSE} If another module does that, silence this check.",
            id="studio.W004",
        )


def _mentions_studio(module: str) -> bool:
    """Tell whether the source of a module names the Studio. It is only read: running it may take long or go wrong."""
    if module == "studio.asgi":
        return True
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        return False
    file = Path(spec.origin) if spec and spec.origin else None
    return (
        file is not None
        and file.is_file()
        and any(word in file.read_text() for word in ("with_studio", "studio.asgi"))
    )


def _is_kind_of(name: str, wanted: str) -> bool:
    """Tell whether a middleware is the wanted one or a subclass of it."""
    if name == wanted:
        return True
    try:
        found, base = import_string(name), import_string(wanted)
    except ImportError:
        return False
    return isinstance(found, type) and issubclass(found, base)


def _groups_without_permissions() -> list[str]:
    # Models are not loaded yet when checks are registered.
    from django.contrib.auth.models import Group

    try:
        ours = Group.objects.filter(name__in=[f"reprise-{role}" for role in ROLES.values()])
        return sorted(
            ours.exclude(permissions__content_type__app_label="studio").values_list("name", flat=True)
        )
    except DatabaseError:
        return []  # not migrated yet
