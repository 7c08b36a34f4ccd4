"""The list of instances: bounded, filtered by its address, paged by keys."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from engine import WorkflowStep, workflow
from engine.models import Instance
from engine.status import search
from engine.status.gathering import without_values
from engine.status.searching import newest
from studio.frame.patience import TooSlowError, patience
from studio.instances import queries, status_counts
from studio.workflows import queries as overviews
from tests.studio import factories

pytestmark = pytest.mark.django_db


def ids(page: str) -> list[str]:
    return re.findall(r'<td class="id"><a [^>]*>([^<]+)</a>', page)


def listed(client: Client, query: str = "") -> list[str]:
    answer = client.get(f"/instances/{query}")
    assert answer.status_code == 200
    return ids(answer.content.decode())


def link(page: str, rel: str) -> str:
    """Return the address of a link to another page of the list."""
    match = re.search(rf'href="([^"]*)" rel="{rel}"', page)
    assert match
    return match[1]


def many(count: int, **given: Any) -> list[Instance]:
    now = timezone.now()
    rows = [
        Instance(workflow="orders", id=f"o-{n}", status="queued", params={}, wake_at=now, **given)
        for n in range(count)
    ]
    return Instance.objects.bulk_create(rows)


def test_nothing_yet_says_how_to_begin(operator: Client) -> None:
    assert "Nothing has run yet" in operator.get("/instances/").content.decode()


@pytest.mark.parametrize(
    ("status", "given"),
    [
        ("queued", {}),
        ("running", {}),
        ("sleeping", {"status": "waiting", "waiting_for": "sleep", "wake_at": factories.ago(minutes=-5)}),
        ("retrying", {"status": "waiting", "waiting_for": "retry", "wake_at": factories.ago(minutes=-5)}),
        ("waiting", {"status": "waiting", "waiting_for": "event"}),
        ("waiting", {"status": "waiting", "waiting_for": "child"}),
        ("paused", {}),
        ("complete", {}),
        ("errored", {}),
        ("terminated", {}),
    ],
)
def test_each_status_is_found_under_its_word(operator: Client, status: str, given: dict[str, Any]) -> None:
    other = "complete" if status != "complete" else "queued"
    factories.instance(other, id="other")
    factories.instance(given.pop("status", status), id="wanted", **given)
    assert listed(operator, f"?status={status}") == ["wanted"]
    assert f'class="chip s-{status} ' in operator.get("/instances/").content.decode()


def test_what_is_pausing_runs_and_says_so(operator: Client) -> None:
    factories.instance("waiting_for_pause", id="wanted")
    assert listed(operator, "?status=running") == ["wanted"]
    assert "pausing</span>" in operator.get("/instances/").content.decode()


def test_filters_work_together(operator: Client) -> None:
    factories.instance("errored", id="a-1")
    factories.instance("errored", id="a-2", workflow="imports")
    factories.instance("complete", id="a-3")
    factories.instance("errored", id="b-1")
    assert listed(operator, "?workflow=orders&status=errored&q=a") == ["a-1"]
    assert listed(operator, "?status=closed&workflow=orders") == ["b-1", "a-3", "a-1"]


@pytest.mark.parametrize("q", ["Order-17", "order-1", "ORDER-17", "o"])
@pytest.mark.parametrize(
    "more", ["", "&workflow=orders", "&status=errored", "&workflow=orders&status=closed"]
)
def test_the_start_of_an_id_is_found_in_any_case_however_old(operator: Client, q: str, more: str) -> None:
    """Older than any window that a search could have: all rows are in the index."""
    factories.instance("errored", id="Order-17")
    newest = factories.instance(id="x-1")
    Instance.objects.filter(key=newest.key).update(key=newest.key + 1_000_000)
    assert listed(operator, f"?q={q}{more}") == ["Order-17"]


def test_an_underscore_in_a_search_is_no_wildcard(operator: Client) -> None:
    factories.instance(id="a_1")
    factories.instance(id="ab1")
    assert listed(operator, "?q=a_") == ["a_1"]


def counts(page: str) -> dict[str, str]:
    """Return those of groups, and those of statuses that are not 0. All of them have their place."""
    found = dict(re.findall(r'(\w+) <span class="num">([^<]*)</span>', page.partition('id="strip"')[2]))
    assert len(found) in (0, 12)
    return {name: n for name, n in found.items() if n != "0" or name in ("open", "closed")}


def test_the_statuses_have_the_counts_of_what_is_searched_whatever_status_it_asks_for(
    operator: Client,
) -> None:
    many(3)
    factories.instance("complete", id="a-1")
    factories.instance("complete", id="a-2", workflow="imports")
    factories.instance("errored", id="a-3", workflow="imports")
    page = operator.get("/instances/?query=id:a").content.decode()
    assert counts(page) == {"open": "0", "closed": "3", "complete": "2", "errored": "1"}
    page = operator.get("/instances/?query=id:a+workflow:imports+status:errored").content.decode()
    assert counts(page) == {"open": "0", "closed": "2", "complete": "1", "errored": "1"}
    page = operator.get("/instances/?query=workflow:orders+status:complete").content.decode()
    assert counts(page) == {"open": "3", "closed": "1", "queued": "3", "complete": "1"}


def test_a_status_replaces_that_of_the_search(operator: Client) -> None:
    factories.instance("errored")
    page = operator.get("/instances/?query=status:open+workflow:orders&sort=started").content.decode()
    assert 'href="/instances/?query=workflow:orders+status:errored&amp;sort=started"' in page
    assert re.search(r'<a href="/instances/\?query=workflow:orders&amp;sort=started">All</a>', page)
    assert re.search(r'<a class="s-open" href="[^"]*" aria-current="true">\s*open', page)


def test_what_no_index_counts_has_no_counts(operator: Client) -> None:
    factories.instance(params={"a": 1})
    page = operator.get("/instances/?query=params.a:1").content.decode()
    assert ids(page) != []
    assert counts(page) == {}
    assert page.count('<a class="s-') == 12


def test_a_search_asks_the_index_of_ids_whatever_else_there_is() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO engine_instance (workflow, id, status, params, output, finished_at)"
            " SELECT 'bulk-' || n % 3, 'b-' || n, 'complete', '{}', '1', now() FROM generate_series(1, 20000) n"
        )
        cursor.execute("ANALYZE engine_instance")
    plan = Instance.objects.filter(search.id_begins("B-1999")).values_list("key").explain()
    assert "engine_instance_id_start" in plan
    assert "Seq Scan" not in plan
    assert search.keys_alike("b-199") is not None


def test_whether_an_id_begins_so_is_asked_of_their_index_even_if_most_do() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO engine_instance (workflow, id, status, params, output, finished_at)"
            " SELECT 'bulk', CASE WHEN n < 2000 THEN 'a-' ELSE 'Order-' END || n, 'complete', '{}', '1', now()"
            " FROM generate_series(1, 20000) n"
        )
        cursor.execute("ANALYZE engine_instance")
    with CaptureQueriesContext(connection) as asked:
        assert search.is_beginning("order-1")
    assert [search.is_beginning(text) for text in ("ORDER-19", "a-1", "rder-1", "order-3_")] == [
        True,
        True,
        False,
        False,
    ]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {asked[0]['sql']}")
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "engine_instance_id_start" in plan
    assert "Seq Scan" not in plan


def test_counts_stand_beside_the_statuses(operator: Client) -> None:
    many(3)
    factories.instance("complete")
    page = operator.get("/instances/").content.decode()
    assert re.search(r'queued <span class="num">3</span>', page)
    assert re.search(r'complete <span class="num">1</span>', page)


def test_a_count_stops_at_its_cap(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_counts, "COUNT_CAP", 3)
    many(5)
    assert status_counts.counts_by_status(["orders"]) == {"orders": {"queued": 2}}
    assert 'queued <span class="num">2+</span>' in operator.get("/instances/").content.decode()


def test_a_few_that_try_again_are_counted_beside_more_sleepers_than_are_counted(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_counts, "COUNT_CAP", 4)
    for n in range(6):
        factories.instance("waiting", waiting_for="sleep", wake_at=factories.ago(hours=-1), id=f"s-{n}")
    factories.retrying()
    page = operator.get("/instances/").content.decode()
    assert 'sleeping <span class="num">3+</span>' in page
    assert 'retrying <span class="num">1</span>' in page


def test_pages_follow_each_other_without_gap_or_repeat(operator: Client) -> None:
    many(queries.PAGE * 2 + 20)
    where, seen = "/instances/", []
    for _ in range(3):
        page = operator.get(where).content.decode()
        seen += ids(page)
        older = re.search(r'href="([^"]*before=[^"]*)" rel="next"', page)
        where = html.unescape(older[1]) if older else ""
    assert where == ""
    assert seen == [f"o-{n}" for n in reversed(range(queries.PAGE * 2 + 20))]


def test_newer_leads_back(operator: Client) -> None:
    many(queries.PAGE * 2)
    first = operator.get("/instances/?query=workflow:orders").content.decode()
    assert 'rel="prev"' not in first
    second = operator.get(html.unescape(link(first, "next"))).content.decode()
    assert 'rel="next"' not in second
    back = operator.get(html.unescape(link(second, "prev"))).content.decode()
    assert ids(back) == ids(first) == [f"o-{n}" for n in reversed(range(queries.PAGE, queries.PAGE * 2))]


def test_rows_that_come_meanwhile_shift_no_page(operator: Client) -> None:
    many(queries.PAGE + 10)
    older = link(operator.get("/instances/").content.decode(), "next")
    factories.instance(id="late")
    assert ids(operator.get(html.unescape(older)).content.decode()) == [f"o-{n}" for n in reversed(range(10))]


@pytest.mark.parametrize(
    "query",
    [
        "?page=-1",
        "?before=-1",
        "?before=99999999999999999999",
        "?after=x",
        "?limit=1000000",
        "?order=password",
        "?filter[user__password__startswith]=a",
        "?q=(",
        "?q=%5E(a%2B)%2B%24",
        "?q=%00",
        "?q=" + "x" * 5_000,
        "?status=%00&workflow=%00",
        "?workflow=" + "w" * 5_000,
        "?status=errored&status=running",
        "?q=%ff%fe",
        "?" + "&".join(f"a{n}=1" for n in range(500)),
    ],
)
def test_a_strange_query_is_no_error(operator: Client, query: str) -> None:
    many(60)
    page = operator.get(f"/instances/{query[:1900]}")
    assert page.status_code == 200
    assert len(ids(page.content.decode())) <= queries.PAGE


def test_a_page_asks_a_fixed_number_of_questions(
    operator: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for status in ("running", "waiting", "errored", "paused") * 5:
        made = factories.instance(status)
        factories.step(made, "reserve", "running" if status == "running" else "complete")
    with django_assert_max_num_queries(32):
        operator.get("/instances/")


def test_a_row_reads_no_payloads(operator: Client) -> None:
    factories.instance("complete", params={"secret": "s3cr3t-param"}, output={"secret": "s3cr3t-output"})
    assert not {"params", "output", "error"} & set(without_values().get().__dict__)


def dawdle() -> None:
    with patience(1), connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '50ms'")
        cursor.execute("SELECT pg_sleep(2)")


def test_patience_really_ends() -> None:
    with pytest.raises(TooSlowError):
        dawdle()


def test_the_socket_watches_the_rows_on_the_page(operator: Client) -> None:
    made = many(2)
    page = operator.get("/instances/?query=workflow:orders&sort=-started&columns=params.a").content.decode()
    shown = f"keys={made[1].key}%2C{made[0].key}"
    assert f"topic=list&amp;query=workflow%3Aorders&amp;columns=params.a&amp;{shown}" in page


@pytest.mark.parametrize("others", [0, 2])
def test_an_empty_list_announces_what_is_new(operator: Client, others: int) -> None:
    many(others)
    page = operator.get("/instances/?status=complete").content.decode()
    match = re.search(r'topic=list[^"]*', page)
    assert match is not None
    where = f"/_f/live/?{html.unescape(match[0])}"
    assert "new · show" not in operator.get(where).content.decode()
    factories.instance("terminated")
    assert "new · show" not in operator.get(where).content.decode()
    factories.instance("complete")
    assert "1 new · show" in operator.get(where).content.decode()


class TestReconcile:
    def test_it_answers_with_every_piece_once(self, operator: Client) -> None:
        made = many(2)
        where = f"/_f/live/?topic=list&keys={made[0].key},{made[1].key}&top={made[1].key}"
        answer = operator.get(where)
        page = answer.content.decode()
        for piece in ("strip", "more", f"i-{made[0].key}", f"i-{made[1].key}"):
            assert page.count(f'hx-target="#{piece}"') == 1
        again = operator.get(where, headers={"HX-PTag": answer.headers["HX-PTag"]})
        assert (again.status_code, again.content) == (304, b"")

    def test_a_change_makes_another_tag(self, operator: Client) -> None:
        made = factories.instance("waiting")
        where = f"/_f/live/?topic=instance:{made.key}"
        before = operator.get(where).headers["HX-PTag"]
        made.pause()
        assert operator.get(where, headers={"HX-PTag": before}).status_code == 200


def test_the_table_of_workflows_has_those_of_the_code_and_of_the_record(operator: Client) -> None:
    factories.instance(workflow="forgotten")
    factories.instance("complete", workflow="process-order")
    page = operator.get("/workflows/").content.decode()
    assert "no longer in the code" in page
    assert "Reserve the items, wait for somebody&#x27;s approval, and ship." in page
    assert "never run" in page


def test_the_page_of_a_workflow_that_left_the_code_stays_readable(operator: Client) -> None:
    made = factories.instance("complete", workflow="forgotten")
    page = operator.get("/workflows/forgotten/").content.decode()
    assert "no longer in the code" in page
    assert made.id in page
    assert operator.get("/workflows/nowhere/").status_code == 404


@pytest.mark.usefixtures("own_registry")
def test_a_workflow_with_a_limit_says_how_many_run_and_what_is_held_back(operator: Client) -> None:
    @workflow(max_running=2)
    async def limited(step: WorkflowStep) -> None: ...

    for _ in range(2):
        factories.instance("running", workflow="limited")
    waits = factories.instance("queued", workflow="limited")
    factories.workers(["limited"])
    page = operator.get("/workflows/limited/").content.decode()
    assert "at most 2 (max_running)" in page
    assert "2 of at most 2 running" in page
    assert "held back: 2 of 2 run" in page
    assert (
        "2 of 2 <code>limited</code> run (max_running)"
        in operator.get(waits.get_absolute_url()).content.decode()
    )
    assert "no limit" in operator.get("/workflows/tick/").content.decode()


def test_the_overviews_never_walk_past_the_rows_of_other_workflows() -> None:
    """Asked plainly, the planner would take the primary key for the newest of each status."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO engine_instance (workflow, id, status, params, output, finished_at)"
            " SELECT 'bulk-' || n % 3, 'b-' || n, 'complete', '{}', '1', now() FROM generate_series(1, 20000) n"
        )
        cursor.execute("ANALYZE engine_instance")
        cursor.execute(
            f"EXPLAIN (FORMAT TEXT) {overviews._NEWEST}", [["bulk-1", "tick"], overviews._STATUSES, 1]
        )
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "engine_instance_list" in plan
    assert "pkey" not in plan
    assert "Seq Scan" not in plan


@pytest.mark.parametrize("statement", [status_counts._OF_EACH, status_counts._OF_ALL, newest._NEWEST])
def test_what_waits_is_counted_and_found_by_what_it_waits_for(statement: str) -> None:
    """Among many that wait for something else, and without reading their rows to know for what."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO engine_instance (workflow, id, status, waiting_for, params, wake_at)"
            " SELECT 'bulk-' || n % 3, 'b-' || n, 'waiting', CASE n % 99 WHEN 0 THEN 'retry' ELSE 'sleep' END, '{}',"
            " now() FROM generate_series(1, 20000) n"
        )
        cursor.execute("ANALYZE engine_instance")
        # As if it had been vacuumed, which a transaction cannot do.
        cursor.execute("UPDATE pg_class SET relallvisible = relpages WHERE oid = 'engine_instance'::regclass")
        values = {
            "names": ["bulk-1", "tick"],
            "statuses": ["queued"],
            "kinds": ["retry"],
            "cap": 10_001,
            "most": 200,
        }
        cursor.execute(f"EXPLAIN {statement}", values)
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Index Only Scan using engine_instance_waiting" in plan
    assert "(ROW(workflow, waiting_for) >= " in plan
    assert "Seq Scan" not in plan
