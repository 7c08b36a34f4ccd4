"""Searches over HTTP: one language, in each order, page by page, and every wrong term named."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from engine.models import Instance
from engine.status.searching import searching
from tests.sample.workflows import tick
from tests.studio import factories
from tests.studio.api.conftest import Program, Programs
from tests.studio.api.test_lists import get, ids, pages

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("only_possible_rows")]


def at(query: str, **others: str) -> str:
    return "/instances?" + "&".join(
        f"{name}={quote(value)}" for name, value in {"query": query, **others}.items()
    )


@pytest.fixture
def made(db: None) -> list[Instance]:
    return [
        factories.instance("complete", id="a-1", tags=["red"], params={"region": "eu", "n": 1}),
        factories.instance("errored", id="a-2", params={"region": "us", "n": 2}),
        factories.instance("paused", id="b-1", workflow="imports", params={"region": "eu", "n": 3}),
        tick.start(id="t-1"),
    ]


def test_finds_what_its_terms_mean_together_with_the_other_filters(
    program: Program, made: list[Instance]
) -> None:
    for query, wanted in {
        "params.region=eu": ["b-1", "a-1"],
        "params.n>1 -status:paused": ["a-2"],
        "id:A-": ["a-2", "a-1"],
        "tag:red status:closed": ["a-1"],
        "status:queued": ["t-1"],
        '"never there"': [],
    }.items():
        assert ids(get(program, at(query))) == wanted, query
    assert ids(get(program, at("params.region=eu", workflow="imports"))) == ["b-1"]
    assert ids(get(program, at("params.region:*", status="finished", q="A"))) == ["a-2", "a-1"]
    assert get(program, "/instances")["searched"] is None
    assert get(program, at("id:a"))["searched"] == {"rows": None, "of": None, "hint": None}


def test_orders_hold_all_pages_together(program: Program, made: list[Instance]) -> None:
    for sort in ("started", "-started", "finished", "-finished", "duration", "-duration"):
        found = [one["id"] for page in pages(program, f"/instances?sort={sort}", "instances") for one in page]
        there = {row.id for row in made if "finished" not in sort or row.is_finished}
        assert (len(found), {*found}) == (len(there), there), sort


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("staus:open", 'staus:open: There is no field "staus". Did you mean "status"?'),
        ("status:open params.a>", "params.a>: A value is missing."),
        ('"', "A quote is not closed."),
    ],
)
def test_a_wrong_term_is_named_and_nothing_is_searched(program: Program, query: str, said: str) -> None:
    answer = program.get(at(query))
    problem = json.loads(answer.content)
    assert (answer.status_code, problem["code"]) == (422, "invalid_query")
    assert problem["detail"].startswith("The search cannot be understood: ")
    [wrong] = problem["errors"]
    assert (wrong["path"], wrong["code"]) == ("query", "invalid_term")
    assert said in wrong["message"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (at("x" * 2001), 422),
        (at("a\0b"), 422),
        (at("<script>alert(1)</script>"), 200),
        (at("‮evil"), 200),
        (at("params.a=%_\\"), 200),
        ("/instances?sort=id", 422),
        ("/instances?sort=-started&cursor=1.2.3.4.5", 422),
        ("/instances?sort=-finished&cursor=12", 422),
        ("/instances?sort=-finished&cursor=w12", 200),
        ("/instances?sort=-finished&cursor=1.2.3.4.5", 200),
        ("/instances?sort=-finished&cursor=1.2.3", 422),
    ],
)
def test_hostile_searches_are_answered_or_refused(program: Program, path: str, status: int) -> None:
    assert program.get(path).status_code == status


def test_a_search_goes_window_by_window_and_says_so(
    program: Program, made: list[Instance], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = searching.search

    def narrow(*given: Any, **options: Any) -> Any:
        return whole(*given, **options, window=2)

    monkeypatch.setattr("studio.api.operations.instances.search", narrow)
    first = get(program, at("params.n=1"))
    assert (ids(first), first["searched"]) == ([], {"rows": 2, "of": 4, "hint": None})
    second = get(program, at("params.n=1", cursor=first["next_cursor"]))
    assert (ids(second), second["next_cursor"]) == (["a-1"], None)


def test_a_narrow_token_finds_only_what_it_may_see(program_of: Programs, made: list[Instance]) -> None:
    narrow = program_of("viewer", workflows=["imp*"])
    for query in ("params.region=eu", "id:a", "status:open", "-tag:red", "workflow:orders", "t-1"):
        for sort in ("-started", "-duration"):
            assert {*ids(get(narrow, at(query, sort=sort)))} <= {"b-1"}, query
    assert ids(get(narrow, "/instances?sort=started")) == ["b-1"]
