"""The pages of tokens. The text of a new one is in the answer to its form and nowhere else."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone

from engine.status.search import workflow_names
from engine.status.sentences.bidi import isolated
from studio.access import tokens
from studio.access.denied_audit import Subject
from studio.access.permissions import Verb, allowed
from studio.access.token_rules import InvalidTokenError
from studio.display.rendering import render
from studio.frame.addresses import ignored
from studio.frame.guard import Names, guard
from studio.frame.notes import note
from studio.frame.pieces import page
from studio.models import Token
from studio.tokens import queries
from studio.tokens.form import Checked, Typed, check, choices, patterns_in
from studio.tokens.queries import LONGEST_SEARCH

EXAMPLE = "api/v1/me"
OWN, TEAM, PEOPLE = "tokens", "team-tokens", "people-tokens"


def subject_of(names: Names) -> Subject:
    """Return the subject of a team token that was not made: no workflow."""
    return Subject("", data={"owner": None})


@guard(get=Verb.VIEW, post=Verb.VIEW)
def own(request: HttpRequest) -> HttpResponse:
    return _answer(request, OWN)


@guard(get=Verb.ADMINISTER, post=Verb.ADMINISTER, action=tokens.ISSUE, about=subject_of)
def team(request: HttpRequest) -> HttpResponse:
    return _answer(request, TEAM)


@guard(get=Verb.ADMINISTER)
def people(request: HttpRequest) -> HttpResponse:
    wanted = request.GET.get("q", "").replace("\0", "").strip()[:LONGEST_SEARCH]
    return page(
        request,
        "studio/tokens/tokens.html",
        tab=PEOPLE,
        is_admin=True,
        q=wanted,
        ignored=ignored(request.GET, ("q",)),
        longest=LONGEST_SEARCH,
        listed=queries.of_people(wanted),
    )


@guard(get=Verb.VIEW)
def matches(request: HttpRequest) -> HttpResponse:
    """Return which workflows the patterns of the form match."""
    found = _matches(request, request.GET.get("workflows", ""))
    return render(request, "studio/tokens/matches.html", {"matches": found})


@guard(post=Verb.VIEW)
def revoke(request: HttpRequest, key: int) -> HttpResponse:
    """End a token. One that somebody may not revoke is not there for them."""
    row = Token.objects.filter(key=key).select_related("owner").first()
    if row is None or not tokens.may_revoke(request.user, row):
        raise Http404
    if tokens.revoke(row, by=request.user):
        note(request, f"Revoked {isolated(row.name)}. Programs that send it are refused.")
    else:
        note(request, f"{isolated(row.name)} was revoked already.")
    return HttpResponseRedirect(reverse(f"studio:{_tab_of(row, request.user)}"))


def _tab_of(row: Token, user: Any) -> str:
    if row.owner_id is None:
        return TEAM
    return OWN if row.owner_id == user.pk else PEOPLE


def _answer(request: HttpRequest, tab: str) -> HttpResponse:
    if request.method != "POST":
        return _page(request, tab, Typed())
    typed = Typed.of(request.POST)
    checked = check(typed, request.user, timezone.now(), is_team=tab == TEAM)
    if "preview" in request.POST:
        return _page(request, tab, typed)
    if checked.problems:
        return _page(request, tab, typed, checked, status=422)
    try:
        issued = tokens.issue(
            typed.name,
            by=request.user,
            owner=None if tab == TEAM else request.user,
            verbs=checked.verbs,
            workflows=typed.patterns,
            expires_at=checked.expires_at,
        )
    except InvalidTokenError as error:
        return _page(request, tab, typed, Checked(problems={error.field: str(error)}), status=422)
    # No redirect: the next page could show it only from a place where it was stored.
    return _page(request, tab, Typed(), status=201, issued=issued)


def _page(
    request: HttpRequest,
    tab: str,
    typed: Typed,
    checked: Checked | None = None,
    *,
    status: int = 200,
    **context: Any,
) -> HttpResponse:
    is_team = tab == TEAM
    problems = checked.problems if checked is not None else {}
    return page(
        request,
        "studio/tokens/tokens.html",
        status=status,
        tab=tab,
        is_team=is_team,
        ignored=ignored(request.GET, ()),
        is_admin=allowed(request.user, Verb.ADMINISTER, None),
        listed=queries.of_team() if is_team else queries.own(request.user),
        typed=typed,
        problems=problems,
        refused=_refusal(len(problems)),
        choices=choices(request.user, typed.verbs, is_team=is_team),
        matches=_matches(request, typed.workflows),
        example=request.build_absolute_uri(f"{reverse('studio:home')}{EXAMPLE}"),
        **context,
    )


def _matches(request: HttpRequest, text: str) -> queries.Matches:
    return queries.matches(request.user, patterns_in(text), workflow_names())


def _refusal(n: int) -> str:
    return f"Not created: fix {n} field{'s' if n > 1 else ''}." if n else ""
