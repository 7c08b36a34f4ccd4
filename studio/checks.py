"""System checks: settings that the Studio needs, and groups that look like ours but grant nothing.

`manage.py check` reads the settings; `manage.py check --database default` looks at the groups, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import ip_network
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as Caution
from django.db import DEFAULT_DB_ALIAS, DatabaseError
from django.utils.module_loading import import_string

from studio.access.permissions import ROLES

# What the Studio needs, and why. Leaving one out breaks the Studio but does not open it.
MIDDLEWARE = {
    "django.contrib.sessions.middleware.SessionMiddleware": "it keeps people signed in",
    "django.contrib.auth.middleware.AuthenticationMiddleware": "views check the permissions of its user",
    "django.contrib.messages.middleware.MessageMiddleware": "actions use it to report what they did",
    "django_htmx.middleware.HtmxMiddleware": "views answer htmx with the changed parts of a page",
}
CONTEXT_PROCESSORS = {
    "django.template.context_processors.request": "pages mark the current section",
    "django.contrib.auth.context_processors.auth": "pages show who is signed in",
    "django.contrib.messages.context_processors.messages": "actions use it to report what they did",
    "studio.context.frame": "it fills the frame of every page",
}


@register("studio")
def check_settings(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """Check that the settings have everything that the Studio's pages need."""
    return [*_middleware(), *_context_processors(), *_origins(), *_proxies()]


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


def _context_processors() -> Iterator[CheckMessage]:
    engines: list[Any] = settings.TEMPLATES
    there = {name for one in engines for name in one.get("OPTIONS", {}).get("context_processors", [])}
    for name, use in CONTEXT_PROCESSORS.items():
        if name not in there:
            hint = f'Add "{name}" to the context_processors of TEMPLATES.'
            yield Error(f"The Studio needs {name}: {use}.", hint=hint, id="studio.E002")


def _origins() -> Iterator[CheckMessage]:
    if not getattr(settings, "REPRISE_ORIGINS", None):
        hint = 'Set it to the origins that people use, such as REPRISE_ORIGINS = ["https://studio.example"].'
        yield Error(
            "REPRISE_ORIGINS is not set, so the Studio does not know which pages may open its sockets.",
            hint=hint,
            id="studio.E003",
        )


def _proxies() -> Iterator[CheckMessage]:
    for one in getattr(settings, "REPRISE_TRUSTED_PROXIES", ()):
        try:
            ip_network(one, strict=False)
        except ValueError:
            hint = "Use addresses and networks, such as 10.0.0.5 or 10.0.0.0/8."
            yield Error(
                f"REPRISE_TRUSTED_PROXIES contains {one!r}, which is not an address or a network.",
                hint=hint,
                id="studio.E004",
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
