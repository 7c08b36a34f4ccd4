"""The fragment that suggests whom a note can mention."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from django.apps import apps
from django.http import HttpRequest, HttpResponse

from studio.access.permissions import Verb, allowed
from studio.display.rendering import render
from studio.frame.guard import guard
from studio.frame.patience import TooSlowError, patience

MOST = 8
LONGEST = 150  # characters of a user name
LOOKED_AT = 40  # users whose permissions are read for one answer
PATIENCE_S = 1


@guard(get=Verb.OPERATE)
def people(request: HttpRequest, name: str) -> HttpResponse:
    """Answer the users who may see a workflow and whose names begin with the text `begins`.

    Only for those who may write notes: the names of users are nothing for viewers.
    """
    begins = request.GET.get("begins", "").replace("\0", "")
    found: list[tuple[str, str]] = []
    if len(begins) <= LONGEST and apps.is_installed("django.contrib.auth"):
        try:
            with patience(PATIENCE_S):
                found = list(islice(_people(begins, name), MOST))
        except TooSlowError:
            found = []
    return render(request, "studio/instance/people.html", {"people": found})


def _people(begins: str, workflow: str) -> Iterator[tuple[str, str]]:
    """Yield the user names and the full names of active users who may see the workflow."""
    from django.contrib.auth import get_user_model

    users: Any = get_user_model()
    field = users.USERNAME_FIELD
    rows = users._default_manager.filter(**{f"{field}__istartswith": begins}).order_by(field)
    for user in rows[:LOOKED_AT]:
        if allowed(user, Verb.VIEW, workflow):
            yield user.get_username(), user.get_full_name() if hasattr(user, "get_full_name") else ""
