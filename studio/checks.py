"""System checks: what the Studio needs of a site's settings, and groups of its names that give nobody anything.

`manage.py check` reads the settings; `manage.py check --database default` looks for the groups.
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

from studio.access import ROLES

# What is needed, and what it is for. None of it opens the Studio by being left out; it does not work without it.
MIDDLEWARE = {
    "django.contrib.sessions.middleware.SessionMiddleware": "people are signed in by it",
    "django.contrib.auth.middleware.AuthenticationMiddleware": "views ask it who somebody is",
    "django.contrib.messages.middleware.MessageMiddleware": "actions say by it what they have done",
}
CONTEXT_PROCESSORS = {
    "django.template.context_processors.request": "pages show where somebody is",
    "django.contrib.auth.context_processors.auth": "pages name who is signed in",
    "django.contrib.messages.context_processors.messages": "actions say by it what they have done",
    "studio.context.frame": "pages have a frame",
}


@register("studio")
def check_settings(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """Check that everything is there that the Studio's pages need."""
    return [*_middleware(), *_context_processors(), *_origins(), *_proxies()]


@register("studio", Tags.database)
def check_groups(
    app_configs: Any = None, databases: Sequence[str] | None = None, **_: Any
) -> list[CheckMessage]:
    """Name the groups that are called like ours and have none of our permissions."""
    if not databases or DEFAULT_DB_ALIAS not in databases:
        return []
    return [
        Caution(
            f'The group "{name}" has none of the Studio\'s permissions: its members may not even see anything.',
            hint="It was there before the Studio, which takes over no group. Give it the permissions "
            '"studio | access" that its members should have, or delete it.',
            id="studio.W001",
        )
        for name in _strangers()
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
        hint = 'Set REPRISE_ORIGINS = ["https://studio.example"] to the addresses that people type.'
        yield Error("The Studio does not know which pages may open its sockets.", hint=hint, id="studio.E003")


def _proxies() -> Iterator[CheckMessage]:
    for one in getattr(settings, "REPRISE_TRUSTED_PROXIES", ()):
        try:
            ip_network(one, strict=False)
        except ValueError:
            hint = "It takes addresses and networks, as 10.0.0.5 or 10.0.0.0/8."
            yield Error(f"REPRISE_TRUSTED_PROXIES holds {one!r}.", hint=hint, id="studio.E004")


def _is_kind_of(name: str, wanted: str) -> bool:
    """Tell whether a middleware is the wanted one, or a class of the site's own that is made from it."""
    if name == wanted:
        return True
    try:
        found, base = import_string(name), import_string(wanted)
    except ImportError:
        return False
    return isinstance(found, type) and issubclass(found, base)


def _strangers() -> list[str]:
    # Not at the top: models are not there yet when checks are registered.
    from django.contrib.auth.models import Group

    try:
        ours = Group.objects.filter(name__in=[f"reprise-{role}" for role in ROLES.values()])
        return sorted(
            ours.exclude(permissions__content_type__app_label="studio").values_list("name", flat=True)
        )
    except DatabaseError:
        return []  # not migrated yet
