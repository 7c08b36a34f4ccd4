"""Tokens as pages list them, and the workflows that patterns match."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Case, Q, QuerySet, When
from django.utils import timezone

from studio.access import tokens
from studio.access.permissions import visible
from studio.access.principals import Scope
from studio.models import Token

SHOWN = 200
ENDED_FOR = timedelta(days=30)  # how long pages show a token that has ended
LONGEST_SEARCH = 12  # `rpr_` and the prefix: a pasted token is cut before its secret
NAMED = 12  # workflows that the preview names

REASONS = {
    "revoked": "revoked",
    "expired": "expired",
    "disabled": "its owner is disabled",
    "password": "its owner has another password",
}


@dataclass(frozen=True, slots=True)
class Listed:
    """A token on a page. `ended` says why it opens nothing any more; empty if it works."""

    row: Token
    ended: str

    @property
    def verbs(self) -> str:
        return ", ".join(self.row.verbs)

    @property
    def workflows(self) -> str:
        return ", ".join(self.row.workflows)

    @property
    def is_for_all(self) -> bool:
        return Scope(frozenset(), tuple(self.row.workflows)).is_for_all

    @property
    def is_revoked(self) -> bool:
        return self.row.revoked_at is not None

    @property
    def reason(self) -> str:
        return REASONS.get(self.ended, "")


@dataclass(frozen=True, slots=True)
class Matches:
    """The workflows of today that patterns match."""

    names: list[str]
    total: int
    is_for_all: bool

    @property
    def first(self) -> list[str]:
        return self.names[:NAMED]

    @property
    def more(self) -> int:
        return max(len(self.names) - NAMED, 0)


def own(user: Any) -> list[Listed]:
    """Return the tokens of a person."""
    return _listed(Token.objects.filter(owner=user.pk))


def of_team() -> list[Listed]:
    return _listed(Token.objects.filter(owner=None))


def of_people(wanted: str = "") -> list[Listed]:
    """Return the tokens of all people; with `wanted`, those whose prefix, name or owner begins with it."""
    rows = Token.objects.exclude(owner=None)
    if wanted:
        owner = f"owner__{get_user_model().USERNAME_FIELD}__istartswith"
        prefix = wanted.removeprefix(f"{tokens.START}_")
        rows = rows.filter(Q(prefix__startswith=prefix) | Q(name__istartswith=wanted) | Q(**{owner: wanted}))
    return _listed(rows)


def matches(user: Any, patterns: list[str], names: list[str]) -> Matches:
    """Return which of these workflows a token with such patterns would see."""
    seen = visible(user, names)
    scope = Scope(frozenset(), tuple(patterns))
    return Matches([name for name in seen if scope.covers(name)], len(seen), scope.is_for_all)


def _listed(rows: QuerySet[Token]) -> list[Listed]:
    """Return those that work, the newest first, then those that have ended lately."""
    now = timezone.now()
    since = now - ENDED_FOR
    has_ended = Q(revoked_at__isnull=False) | Q(expires_at__lte=now)
    recent = rows.exclude(revoked_at__lt=since).exclude(expires_at__lt=since)
    found = recent.select_related("owner").order_by(Case(When(has_ended, then=1), default=0), "-key")
    return [Listed(row, _end_of(row, now)) for row in found[:SHOWN]]


def _end_of(row: Token, now: datetime) -> str:
    if row.revoked_at is not None:
        return "revoked"
    if not row.is_valid_at(now):
        return "expired"
    if row.owner is not None and not row.owner.is_active:
        return "disabled"
    return "" if tokens.is_usable(row, now) else "password"
