"""Which bulk job the dialog is about: the action, and a search or instances that were ticked."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Self

from django.http import HttpRequest
from django.urls import reverse

from engine.bulk import BulkAction
from engine.models import Instance
from engine.status.search import workflow_names
from engine.values.errors import LimitError
from studio.access.permissions import Verb, allowed, sees_all
from studio.frame.addresses import is_ours, keys
from studio.instances.address import address_of

MOST_TICKED = 1_000
LONGEST_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for. With a search, ticks do not count."""

    action: str
    query: str
    ticked: tuple[int, ...]
    back: str
    rollback: bool
    same_keys: bool

    @classmethod
    def of(cls, request: HttpRequest) -> Self:
        """Read it from the form, or from the address."""
        given = request.POST if request.method == "POST" else request.GET
        query = given.get("q", "").replace("\0", "").strip()
        parts = [*given.getlist("key"), *given.get("keys", "").split(",")]
        ticked = () if query else tuple(dict.fromkeys(keys(",".join(parts), MOST_TICKED + 1)))
        back = given.get("next", "")
        listed = address_of({"query": query}) if query else reverse("studio:instances")
        return cls(
            action=given.get("action", "")[:LONGEST_SHOWN],
            query=query,
            ticked=ticked,
            back=back if is_ours(request, back) else listed,
            rollback=bool(given.get("rollback")) and given.get("action") == BulkAction.TERMINATE,
            same_keys=given.get("idempotency") == "same" and given.get("action") == BulkAction.RESTART,
        )

    @property
    def keys(self) -> str:
        """What was ticked, as the form has it."""
        return ",".join(str(key) for key in self.ticked)

    @property
    def list_address(self) -> str:
        """The list, with the search."""
        return address_of({"query": self.query})

    @property
    def is_empty(self) -> bool:
        return not self.query and not self.ticked

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of the action that are not the usual ones."""
        return {"rollback": self.rollback or None, "keys": "same" if self.same_keys else None}

    @property
    def chosen(self) -> dict[str, Any]:
        """The instances, as the engine takes them. Raises LimitError."""
        if self.query:
            return {"query": self.query}
        if len(self.ticked) > MOST_TICKED:
            advice = "Select all that match instead, or narrow the search."
            raise LimitError("number of ticked instances", len(self.ticked), MOST_TICKED, advice=advice)
        return {"instances": Instance.objects.of_users().filter(key__in=self.ticked).only("key")}


def operable(user: Any) -> Collection[str] | None:
    """Return the workflows whose instances a user may change; None if that is all."""
    if sees_all(user):
        return None
    return [name for name in workflow_names() if allowed(user, Verb.OPERATE, name)]
