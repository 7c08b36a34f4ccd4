"""Find templates: those of a workflow, for people who may start it."""

from __future__ import annotations

import re
from typing import Any

from django.db.models import QuerySet

from studio.access.permissions import Verb, allowed, visible_rows
from studio.models import StartTemplate

_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")


def seen_by(user: Any, workflow: str) -> QuerySet[StartTemplate]:
    """Return the templates of a workflow by name; none for people who may not start it."""
    if not allowed(user, Verb.OPERATE, workflow):
        return StartTemplate.objects.none()
    rows = StartTemplate.objects.filter(visible_rows(user), workflow=workflow)
    return rows.select_related("made_by", "changed_by").order_by("name")


def find(user: Any, workflow: str, slug: str) -> StartTemplate | None:
    """Return the template of a slug; None if there is none, or if no template can have such a slug."""
    return seen_by(user, workflow).filter(slug=slug).first() if _SLUG.fullmatch(slug) else None


def may_delete(user: Any, template: StartTemplate) -> bool:
    """Return whether a person may delete it: their own, or any with the administrator role."""
    is_own = template.made_by_id is not None and template.made_by_id == user.pk
    verb = Verb.OPERATE if is_own else Verb.ADMINISTER
    return allowed(user, verb, template.workflow)
