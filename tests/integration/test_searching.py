"""A search finds what its terms mean, in each order, page by page, whether by an index or by looking."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from engine.models import Attempt, Instance, Step
from engine.status.gathering import database_now, starts_of_generations
from engine.status.searching import newest, searching
from engine.status.searching.counting import count_by_status, count_newer
from engine.status.searching.found import Searched
from engine.status.searching.searching import search
from engine.steer.requests import open_requests
from engine.testing import workflow_test
from engine.values.query.order import Sort
from engine.values.query.parsing import parse
from engine.values.shown import CLOSED, OPEN, display_status
from tests.integration import found

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_registry")]

Test = Callable[[Instance], Any]


@pytest.fixture
def made(own_registry: None, db: None) -> Iterator[list[Instance]]:
    with workflow_test(allow_unused=True, skips_time=False) as test:
        yield found.make(test, 2)


def ids(text: str, **options: Any) -> list[str]:
    """Return the ids that a search finds, page by page, and check that the pages back are the same."""
    query = parse(text)
    assert not query.problems
    pages, cursor = [], ""
    while True:
        page = search(query, workflows=None, before=cursor, **options)
        pages.append(page.keys)
        cursor = page.older or page.searched.go_on
        if not cursor:
            break
    back = pages[-1:]
    while page.newer:
        page = search(query, workflows=None, after=page.newer, **options)
        back.insert(0, page.keys)
    if "window" not in options:
        assert [one for one in back if one] == [one for one in pages if one]
    elif "sort" not in options:  # other pages of the same instances
        assert [*itertools.chain(*back)] == [*itertools.chain(*pages)]
    names = dict(Instance.objects.values_list("key", "id"))
    return [names[key] for key in itertools.chain(*pages)]


def shown(row: Instance) -> str:
    asks = open_requests().filter(instance_id=row.key).exists()
    return display_status(row.status, row.waiting_for, asks=asks)


def at(row: Instance, *path: Any) -> Any:
    value: Any = {"params": row.params, "output": row.output}
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return ...
    return value


def errors(row: Instance) -> str:
    attempts = Attempt.objects.filter(instance_id=row.key, error__isnull=False)
    open_ones = [one.error for one in attempts] if row.waiting_for == "retry" else []
    return " ".join(f"{one['type']}: {one['message']}" for one in [row.error, *open_ones] if one).lower()


def took(row: Instance) -> timedelta:
    return (row.finished_at or database_now()) - starts_of_generations([row])[row.key]


def has_step(row: Instance, name: str) -> bool:
    return Step.objects.filter(instance_id=row.key, generation=row.generation, name=name).exists()


TERMS: dict[str, Test] = {
    "workflow:orders": lambda row: row.workflow == "orders",
    "workflow:ref*,none": lambda row: row.workflow == "refund",
    "status:complete": lambda row: shown(row) == "complete",
    "status:open": lambda row: shown(row) in OPEN,
    "status:closed": lambda row: shown(row) in CLOSED,
    "status:approval": lambda row: shown(row) == "approval",
    "status:waiting,sleeping,retrying": lambda row: shown(row) in ("waiting", "sleeping", "retrying"),
    "status:queued": lambda row: row.status == "queued",
    "status:paused": lambda row: row.status == "paused",
    "id:ORDERS-1": lambda row: row.id.lower().startswith("orders-1"),
    "orders-1": lambda row: row.id.startswith("orders-1"),
    "provider": lambda row: "provider" in errors(row),
    'error:"timed out"': lambda row: "timed out" in errors(row),
    "error:CONNECTIONERROR": lambda row: "connectionerror" in errors(row),
    "error:%": lambda row: "%" in errors(row),
    "step:charge": lambda row: has_step(row, "charge"),
    "step:re*": lambda row: has_step(row, "reserve") or has_step(row, "rest"),
    "tag:eu": lambda row: "eu" in row.tags,
    "tag:eu,late": lambda row: {"eu", "late"} & {*row.tags},
    "tag:e*": lambda row: any(tag.startswith("e") for tag in row.tags),
    "by:ana": lambda row: row.started_by.lower() == "ana",
    "by:B*": lambda row: row.started_by.lower().startswith("b"),
    "started:<30m": lambda row: row.created_at > database_now() - timedelta(minutes=30),
    "started:>30m": lambda row: row.created_at < database_now() - timedelta(minutes=30),
    "started:1999-01-01..9998-12-31": lambda row: True,
    "started:<0001-01-02": lambda row: False,
    "finished:<30m": lambda row: row.finished_at and row.finished_at > database_now() - timedelta(minutes=30),
    "duration:>1m": lambda row: took(row) > timedelta(minutes=1),
    "duration:<=1m": lambda row: took(row) <= timedelta(minutes=1),
    "params.region=eu": lambda row: at(row, "params", "region") == "eu",
    "params.region=eu*": lambda row: str(at(row, "params", "region")).startswith("eu"),
    "params.region!=eu": lambda row: at(row, "params", "region") not in ("eu", ...),
    "params.region:*": lambda row: at(row, "params", "region") is not ...,
    "params.region=null": lambda row: at(row, "params", "region") is None,
    "params.total=100": lambda row: (
        at(row, "params", "total") in (100, "100") and at(row, "params", "total") is not True
    ),
    'params.total="100"': lambda row: at(row, "params", "total") == "100",
    "params.total=true": lambda row: at(row, "params", "total") is True,
    "params.total>99": lambda row: _number(at(row, "params", "total")) > 99,
    "params.total:<=99.5": lambda row: _number(at(row, "params", "total"), 1e9) <= 99.5,
    "params.day>2026-11-10": lambda row: (
        str(at(row, "params", "day")) > "2026-11-10" and at(row, "params", "day") is not ...
    ),
    "params.sub.list.0.sku=a-1": lambda row: at(row, "params", "sub", "list", 0, "sku") == "a-1",
    "params.sub.list.1.sku:*": lambda row: at(row, "params", "sub", "list", 1, "sku") is not ...,
    'params.note="100 %_\\\\"': lambda row: at(row, "params", "note") == "100 %_\\",
    'params.note="<b>&amp;"': lambda row: at(row, "params", "note") == "<b>&amp;",
    "output.paid=100": lambda row: at(row, "output", "paid") in (100, "100"),
    "output.paid>99": lambda row: _number(at(row, "output", "paid")) > 99,
    "output.note=quick": lambda row: at(row, "output", "note") == "quick",
}


def _number(value: Any, otherwise: float = -1e9) -> float:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else otherwise


def test_each_term_finds_what_it_means_and_its_negation_the_rest(made: list[Instance]) -> None:
    for text, test in TERMS.items():
        wanted = [row.id for row in made if test(row)]
        assert ids(text) == wanted, text
        assert ids(text, limit=3) == wanted, text
        assert ids(text, limit=3, window=5) == wanted, text
        assert ids(f"-{text}", limit=4) == [row.id for row in made if not test(row)], text
    assert {text for text, test in TERMS.items() if not any(test(row) for row in made)} == {
        "error:%",
        "started:<0001-01-02",
    }


def test_terms_together_must_all_hold(made: list[Instance]) -> None:
    for one, other in itertools.combinations([*TERMS][::2], 2):
        wanted = [row.id for row in made if TERMS[one](row) and not TERMS[other](row)]
        assert ids(f"{one} -{other}", limit=3) == wanted, (one, other)


@pytest.mark.parametrize("sizes", [(1, 2), (2, 5, 100)])
def test_the_newest_of_workflows_and_statuses_are_all_there(
    made: list[Instance], monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...]
) -> None:
    """Also if few of those that are looked at first match, or none of the looks finds enough."""
    monkeypatch.setattr(newest, "_SIZES", sizes)
    names = [text for text in TERMS if text.startswith(("workflow:", "status:"))]
    for text in (*names, *(f"{one} {other}" for one, other in itertools.permutations(names, 2))):
        wanted = [row.id for row in made if all(TERMS[one](row) for one in text.split())]
        assert ids(text, limit=3) == wanted, text


@pytest.mark.parametrize("text", ["", "workflow:orders", "params.region=eu", "step:reserve", "status:closed"])
def test_the_orders_hold_all_pages_together(made: list[Instance], text: str) -> None:
    rows = [row for row in made if not text or TERMS.get(text, lambda row: has_step(row, "reserve"))(row)]
    for sort, value in (
        ("started", lambda row: row.key),
        ("finished", lambda row: row.finished_at),
        ("duration", took),
    ):
        there = [row for row in rows if sort != "finished" or row.finished_at]
        for sign in ("", "-"):
            wanted = sorted(there, key=lambda row: (value(row), row.key), reverse=bool(sign))
            got = ids(text, sort=Sort.of(f"{sign}{sort}"), limit=3)
            if sort == "duration":  # the open ones grow while they are compared
                assert sorted(got) == sorted(row.id for row in wanted)
                closed = [row.id for row in wanted if row.finished_at]
                assert [one for one in got if one in closed] == closed
            else:
                assert got == [row.id for row in wanted], (sort, sign)


def test_the_pages_of_a_window_lead_to_the_next_window(made: list[Instance]) -> None:
    for sort in ("-duration", "duration", "-finished", "finished"):
        wanted = sorted(row.id for row in made if "finished" not in sort or row.finished_at)
        for limit in (2, 3, 5):
            assert sorted(ids("", sort=Sort.of(sort), limit=limit, window=5)) == wanted, (sort, limit)


def test_no_row_is_lost_or_repeated_while_others_arrive(made: list[Instance]) -> None:
    orders = made[0].workflow and found_workflow()
    for sort in ("-started", "-finished"):
        seen, cursor, before = (
            list[int](),
            "",
            {row.key for row in Instance.objects.all() if sort == "-started" or row.finished_at},
        )
        while True:
            page = search(parse(""), workflows=None, sort=Sort.of(sort), before=cursor, limit=2)
            seen += page.keys
            orders.start({"region": "new"})
            if not (cursor := page.older):
                break
        assert len(seen) == len({*seen})
        assert before - {*seen} == set()


def found_workflow(name: str = "orders") -> Any:
    from engine import workflows

    return workflows[name]


def test_it_says_what_was_searched(made: list[Instance]) -> None:
    def searched(text: str, **options: Any) -> tuple[int | None, bool, str]:
        said = search(parse(text), workflows=None, **options).searched
        assert said.of == (None if said.is_all else len(made))
        return said.rows, bool(said.go_on), said.hint

    assert searched("") == (None, False, "")
    assert searched("workflow:orders params.region=eu") == (None, False, "")
    assert searched("step:never") == (None, False, "")  # all were looked at
    assert searched("step:never", window=5) == (5, True, "")
    assert searched("params.region=never", window=5) == (5, True, "workflow:orders")
    assert searched("workflow:orders params.region=never", window=5) == (None, False, "")
    assert searched("step:reserve", window=5, limit=2) == (None, False, "")  # a full page of the newest
    assert searched("", sort=Sort.of("-duration"), window=5) == (5, True, "")
    assert searched("id:orders-1", sort=Sort.of("-duration"), window=5) == (None, False, "")


def test_only_the_workflows_that_may_be_seen_are_searched(made: list[Instance]) -> None:
    for text in ("", "id:orders", "step:reserve", "params.region=eu", "status:open"):
        for allowed in ([], ["refund"], ["orders", "gone"]):
            page = search(parse(text), workflows=allowed)
            found_in = set(Instance.objects.filter(key__in=page.keys).values_list("workflow", flat=True))
            assert found_in <= {*allowed}
            counts = count_by_status(parse(text), workflows=allowed)
            assert counts is None or sum(counts.values()) == len(page.keys)
            assert count_newer(parse(text), 0, workflows=allowed) == len(page.keys)


@pytest.mark.parametrize("text", ["step:never", "params.colour=never"])
@pytest.mark.parametrize("sort", ["-started", "started", "-duration"])
def test_what_may_not_be_seen_is_not_counted_either(made: list[Instance], text: str, sort: str) -> None:
    def searched() -> Searched:
        return search(parse(text), workflows=["orders"], sort=Sort.of(sort), window=2).searched

    before = searched()
    for _ in range(7):
        found_workflow("refund").start({})
    assert searched() == before
    assert (before.rows, before.of) == (2, sum(row.workflow == "orders" for row in made))


def test_many_that_may_be_seen_are_estimated(made: list[Instance], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "EXACTLY", 1)
    said = search(parse("step:never"), workflows=["orders"], window=2).searched
    assert said.of is not None
    assert said.of >= 2


def test_an_id_of_a_workflow_that_is_not_searched_hides_no_error(made: list[Instance]) -> None:
    wanted = ids("workflow:orders provider")
    assert wanted
    found_workflow("refund").start({}, id="provider-1")
    assert ids("workflow:orders provider") == wanted
    assert len(search(parse("provider"), workflows=["orders"]).keys) == len(wanted)
    assert ids("provider") == ["provider-1"]


def test_what_an_index_finds_is_counted_by_shown_status(made: list[Instance]) -> None:
    wanted: dict[str, int] = {}
    for row in made:
        if row.workflow == "orders":
            wanted[shown(row)] = wanted.get(shown(row), 0) + 1
    assert count_by_status(parse("workflow:orders"), workflows=None) == wanted
    assert count_by_status(parse("step:reserve"), workflows=None) is None
    assert count_newer(parse("workflow:orders"), made[3].key, workflows=None) == sum(
        row.workflow == "orders" for row in made[:3]
    )
    assert count_newer(parse("step:reserve"), 0, workflows=None, cap=3) == 3


@pytest.mark.parametrize(
    "cursor", ["", "x", "-1", "9" * 30, "1.2.3", "1.2.3.4.5", "w0", "w9", "\0", "é", "1.2.3.4.-5"]
)
@pytest.mark.parametrize("sort", ["-started", "finished", "-duration"])
def test_a_wrong_cursor_raises_nothing(db: None, cursor: str, sort: str) -> None:
    for where in ("before", "after"):
        assert search(parse(""), workflows=None, sort=Sort.of(sort), **{where: cursor}).keys == []


@pytest.mark.parametrize("sort", ["-started", "started", "-duration"])
def test_a_wrong_cursor_is_that_of_the_first_page(made: list[Instance], sort: str) -> None:
    first = search(parse("id:orders"), workflows=None, sort=Sort.of(sort), limit=2)
    wrong = search(parse("id:orders"), workflows=None, sort=Sort.of(sort), limit=2, after="x")
    assert (wrong.keys, bool(wrong.older), wrong.newer) == (first.keys, True, "")


@pytest.mark.parametrize(("sort", "forward"), [("-started", 1), ("started", -1)])
def test_an_empty_page_on_the_way_back_leads_in_both_directions(
    made: list[Instance], sort: str, forward: int
) -> None:
    query = parse("step:never")
    there = search(query, workflows=None, sort=Sort.of(sort), window=3)
    back = search(query, workflows=None, sort=Sort.of(sort), window=1, after=there.searched.go_on)
    assert (back.keys, bool(back.newer)) == ([], True)
    assert int(back.older) == int(there.searched.go_on) + forward


@pytest.mark.parametrize("text", ["-", "name", "--started", "started-", "STARTED", "key", ""])
def test_a_wrong_order_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not an order\. There are started, -started, finished"):
        Sort.of(text)


@pytest.mark.parametrize(
    "value",
    ["'", '\\"', "\\\\", "%", "_", "‮evil", "<script>", "{}", "[1]", "1e999", "-0", "😀", "null", "a" * 200],
)
def test_whatever_is_searched_for_is_only_a_value(made: list[Instance], value: str) -> None:
    for field in ("id", "error", "step", "tag", "by", "workflow", "params.region", "params.note", "output.x"):
        assert ids(f'{field}:"{value}"') == [] or value in ("%", "_", "null")
    for operator in ("=", "!=", "<", ">="):
        query = parse(f"params.total{operator}{value}")
        assert query.problems or search(query, workflows=None)
