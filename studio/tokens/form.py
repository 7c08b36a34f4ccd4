"""The form of a new token: what was typed, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.http import QueryDict

from studio.access import token_rules
from studio.access.permissions import ROLES, Verb, allowed
from studio.access.token_rules import InvalidTokenError

DAYS = ("30", "90", "365")
ON_DATE, NEVER = "date", "never"

SAYS = {
    Verb.VIEW: ("View", "See workflows, instances and the audit trail."),
    Verb.OPERATE: ("Operate", "Start and steer instances, send events, control schedules."),
    Verb.APPROVE: ("Approve", "Answer requests."),
}


@dataclass(frozen=True, slots=True)
class Choice:
    """A verb of the form. `missing` is the role that the person lacks for it."""

    verb: Verb
    label: str
    help: str
    is_chosen: bool
    missing: str

    @property
    def is_fixed(self) -> bool:
        return self.verb is Verb.VIEW or bool(self.missing)


@dataclass(frozen=True, slots=True)
class Typed:
    """What was typed."""

    name: str = ""
    verbs: frozenset[str] = frozenset({Verb.VIEW})
    workflows: str = "*"
    lasts: str = "90"
    until: str = ""

    @classmethod
    def of(cls, given: QueryDict) -> Typed:
        return cls(
            name=given.get("name", ""),
            verbs=frozenset({Verb.VIEW, *given.getlist("verbs")}),
            workflows=given.get("workflows", ""),
            lasts=given.get("lasts", ""),
            until=given.get("until", ""),
        )

    @property
    def patterns(self) -> list[str]:
        """The patterns, which lines, blanks or commas separate."""
        return patterns_in(self.workflows)

    def expires_at(self, now: datetime) -> datetime | None:
        """Return when the token ends: at the end of the last day, in UTC. Raises InvalidTokenError."""
        if self.lasts == NEVER:
            return None
        if self.lasts in DAYS:
            return now + timedelta(days=int(self.lasts))
        try:
            last = date.fromisoformat(self.until)
            return datetime.combine(last, time(), UTC) + timedelta(days=1)
        except (ValueError, OverflowError):
            raise InvalidTokenError("expires_at", "Choose the last day, or another expiry.") from None


@dataclass(frozen=True, slots=True)
class Checked:
    """The token that was asked for, if there are no problems."""

    verbs: frozenset[Verb] = frozenset()
    expires_at: datetime | None = None
    problems: Mapping[str, str] = field(default_factory=dict)


def choices(user: Any, verbs: frozenset[str], *, is_team: bool) -> list[Choice]:
    """Return the verbs, with those that this person cannot give.

    Everybody can give `approve` to a token of their own: requests may be put to them by name.
    """
    found = []
    for verb, (label, said) in SAYS.items():
        is_given = allowed(user, verb, None) or (verb is Verb.APPROVE and not is_team)
        chosen = verb in verbs and is_given
        found.append(Choice(verb, label, _said(verb, said, is_team), chosen, "" if is_given else ROLES[verb]))
    return found


def check(typed: Typed, user: Any, now: datetime, *, is_team: bool) -> Checked:
    """Read what was typed, and collect what is wrong."""
    problems: dict[str, str] = {}

    def run(rule: Callable[[], Any]) -> Any:
        try:
            return rule()
        except InvalidTokenError as error:
            problems[error.field] = str(error)

    verbs = frozenset(one for one in Verb if one in typed.verbs)
    offered = choices(user, typed.verbs, is_team=is_team)
    missing = next((one.missing for one in offered if one.missing and one.verb in typed.verbs), "")
    if missing:
        problems["verbs"] = f"This requires the {missing} role, which you do not have."
    run(lambda: token_rules.check_verbs(verbs))
    run(lambda: token_rules.check_name(typed.name))
    run(lambda: token_rules.check_patterns(typed.patterns))
    expires_at = run(lambda: typed.expires_at(now))
    run(lambda: token_rules.check_expiry(expires_at, now))
    return Checked(verbs, expires_at, problems)


def patterns_in(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _said(verb: Verb, said: str, is_team: bool) -> str:
    if verb is not Verb.APPROVE:
        return said
    return "Answer requests that name nobody." if is_team else "Answer requests that you may answer."
