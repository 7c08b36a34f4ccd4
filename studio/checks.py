"""System checks: what the Studio needs of a site, each with the line to add, and groups that grant nothing.

`manage.py check` reads the settings; `manage.py check --database default` looks at the groups, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.staticfiles import finders
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as Caution
from django.db import DEFAULT_DB_ALIAS, DatabaseError
from django.template import TemplateDoesNotExist
from django.template.loader import get_template
from django.urls import NoReverseMatch, Resolver404, get_script_prefix, resolve, reverse
from django.utils.module_loading import import_string

from studio.access.permissions import ROLES

# What the Studio needs of the site, and why. Leaving one out breaks the Studio but does not open it.
MIDDLEWARE = {
    "django.contrib.sessions.middleware.SessionMiddleware": "it keeps people signed in",
    "django.contrib.auth.middleware.AuthenticationMiddleware": "views check the permissions of its user",
    "django.contrib.messages.middleware.MessageMiddleware": "actions use it to report what they did",
}
TEMPLATE = "studio/frame/base.html"
STYLE = "studio/frame/base.css"
URLS = 'Add path("ops/", include("studio.urls")), with a prefix of your choice, to the urlpatterns of ROOT_URLCONF.'
STATIC_HINT = (
    'Add "django.contrib.staticfiles.finders.AppDirectoriesFinder" to STATICFILES_FINDERS, and '
    '"django.contrib.staticfiles" to INSTALLED_APPS.'
)


@register("studio")
def check_settings(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """Check that the site has everything that the Studio's pages need."""
    return [*_middleware(), *_templates(), *_static(), *_urls(), *_asgi()]


@register("studio", Tags.database)
def check_groups(
    app_configs: Any = None, databases: Sequence[str] | None = None, **_: Any
) -> list[CheckMessage]:
    """Warn about groups with the names of the default groups that have no permission of the Studio."""
    if not databases or DEFAULT_DB_ALIAS not in databases:
        return []
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


def _templates() -> Iterator[CheckMessage]:
    try:
        found = get_template(TEMPLATE)
    except TemplateDoesNotExist:
        hint = 'Set "APP_DIRS": True in a DjangoTemplates backend of TEMPLATES, or add the loader for app directories.'
        yield Error("The Studio's templates cannot be found.", hint=hint, id="studio.E002")
    else:
        yield from _replaced(found.origin.name)  # type: ignore[attr-defined]


def _replaced(file: str) -> Iterator[CheckMessage]:
    if not Path(file).resolve().is_relative_to(_ours("templates")):
        yield Caution(
            f"{TEMPLATE} is taken from {file}, not from the Studio.",
            hint="Rename it: templates under studio/ are the Studio's.",
            id="studio.W002",
        )


def _static() -> Iterator[CheckMessage]:
    if finders.find(STYLE) is None:
        yield Error("The Studio's static files cannot be found.", hint=STATIC_HINT, id="studio.E003")


def _urls() -> Iterator[CheckMessage]:
    try:
        home = reverse("studio:home")
        is_ours = resolve(home.removeprefix(get_script_prefix().rstrip("/"))).view_name == "studio:home"
    except NoReverseMatch:
        yield Error("The Studio has no address.", hint=URLS, id="studio.E004")
        return
    except Resolver404:
        is_ours = False
    if not is_ours:
        yield Error(
            f"Another page has the Studio's address, {home}.",
            hint="Give the Studio a prefix that no other page begins with, or move its line up.",
            id="studio.E005",
        )


def _asgi() -> Iterator[CheckMessage]:
    """Ask where sockets go; without ASGI_APPLICATION, runserver has none. A server that is named elsewhere is fine."""
    if apps.is_installed("daphne") and not getattr(settings, "ASGI_APPLICATION", None):
        yield Caution(
            "ASGI_APPLICATION is not set, so the pages of the Studio do not update by themselves under runserver.",
            hint='Set ASGI_APPLICATION = "studio.asgi.application", or wrap your own application in with_studio().',
            id="studio.W003",
        )


def _ours(folder: str) -> Path:
    return (Path(__file__).parent / folder).resolve()


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
