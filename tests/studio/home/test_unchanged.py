"""What people see alike on Home is read once, never shows what has changed since, and never what is somebody else's."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier, Event

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from engine import failures, pauses
from engine.models import Failure, Instance
from engine.status.search import workflow_names
from studio.display.times import with_times
from studio.frame import unchanged
from studio.frame.unchanged import Unchanged
from studio.home.attention import attention
from studio.home.facts import facts_of
from studio.templatetags.studio_tags import at
from tests.studio import factories
from tests.studio.home.conftest import Fail, Home

pytestmark = pytest.mark.usefixtures("engine_db")


def client_of(name: str, role: str = "operator") -> Client:
    client = Client()
    client.force_login(factories.person(role, name))
    return client


def in_thread(ask: Callable[[], object]) -> None:
    """Run it over a connection of its own, which commits."""

    def run() -> None:
        try:
            ask()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(run).result()


def test_who_sees_the_same_does_not_read_it_again(fail: Fail) -> None:
    fail(), fail()
    ana, zoe = client_of("ana"), client_of("zoe")
    for _ in range(3):  # PostgreSQL may have written something for itself
        first = Home(ana)
        with CaptureQueriesContext(connection) as asked:
            second = Home(zoe)
        assert [(row.id, row.count) for row in second.rows] == [(row.id, row.count) for row in first.rows]
        if not [one["sql"] for one in asked if "newest_stuck" in one["sql"]]:
            break
    else:
        pytest.fail("Home was read again each time")


def test_a_page_asks_once_whether_something_was_written(fail: Fail) -> None:
    fail(by="ana")
    ana = client_of("ana")
    with CaptureQueriesContext(connection) as asked:
        Home(ana)
    assert len([one["sql"] for one in asked if "pg_current_snapshot" in one["sql"]]) == 1


def test_each_write_is_on_the_next_page_whoever_writes_it(fail: Fail) -> None:
    ana = client_of("ana")
    for count in range(1, 4):
        in_thread(fail)
        assert [row.count for row in Home(ana).rows] == [str(count)]
    pauses.pause("orders", by="zoe", reason="the provider is down")
    assert "paused" in Home(ana).rows[0].line
    Instance.objects.filter(status="errored").first().restart(by="zoe")  # type: ignore[union-attr]
    assert [row.count for row in Home(ana).rows] == ["2"]


def test_each_kind_of_change_is_on_the_next_page(fail: Fail) -> None:
    """Though rows that are as they were are not rendered again, and what no longer changes is not read again."""
    ana = client_of("ana")

    def rows() -> dict[str, str]:
        return {row.title: row.count for row in Home(ana).rows}

    assert rows() == {}
    fail(delay=600, attempts=3)
    assert rows() == {"charge_card: no answer within 5 s": "1"}
    fail()
    assert rows() == {"charge_card: no answer within 5 s": "1", "The same error, backing off": "1"}
    parked = factories.instance("waiting", workflow="orders")
    factories.request(parked)
    assert rows()["Refund 1,240 € to ACME?"] == "1"
    factories.request(factories.instance("waiting", workflow="orders"))
    assert rows()["Refund 1,240 € to ACME? · and 1 more"] == "2"
    parked.terminate(by="zoe")
    assert rows()["Refund 1,240 € to ACME?"] == "1"
    factories.instance("paused", workflow="orders", pause_reason={"type": "CodeChangedError"})
    assert rows()["The code has changed"] == "1"
    started = factories.instance("queued", workflow="orders", started_by="ana")
    assert started.id in Home(ana).html
    failures.ignore(Failure.objects.get().fingerprint, by="zoe", reason="known")
    assert sorted(rows()) == ["Refund 1,240 € to ACME?", "The code has changed"]


def test_a_count_that_says_at_least_is_another_row(fail: Fail, monkeypatch: pytest.MonkeyPatch) -> None:
    ana = client_of("ana")
    for _ in range(4):
        fail()
    assert [row.count for row in Home(ana).rows] == ["4"]
    monkeypatch.setattr("engine.status.failures.failing.CAP", 5)
    monkeypatch.setattr("studio.home.failing.CAP", 5)
    fail()
    assert [row.count for row in Home(ana).rows] == ["4+"]


def test_times_of_a_row_that_is_as_it_was_go_on() -> None:
    now = timezone.now()
    html = at(now - timedelta(minutes=3), "ago") + at(now, "minute")
    old = html.replace("3 min ago", "2 min ago")
    assert old != html
    assert with_times(old) == html


def test_one_flood_of_errors_hides_no_other(fail: Fail, monkeypatch: pytest.MonkeyPatch) -> None:
    """More failures of a workflow than are looked at: each group is counted by itself."""
    ana = client_of("ana")
    fail(message="no kit"), fail(message="no kit"), fail()
    before = Home(ana)
    assert [row.count for row in before.rows] == ["2", "1"]
    monkeypatch.setattr("engine.status.failures.failing.LOOKED_AT", 1)
    in_thread(lambda: factories.instance("queued"))
    after = Home(ana)
    assert [(row.title, row.count) for row in after.rows] == [(row.title, row.count) for row in before.rows]


def test_what_is_not_committed_is_seen_by_its_own_transaction_only(fail: Fail) -> None:
    fail()
    with transaction.atomic():
        failures.resolve(Failure.objects.get().fingerprint, by="ana")
        assert facts_of(workflow_names()).blocks == ()
        seen: list[int] = []
        in_thread(lambda: seen.append(len(facts_of(workflow_names()).blocks)))
    assert seen == [1]
    assert facts_of(workflow_names()).blocks == ()


def test_an_old_snapshot_is_for_nobody_else(fail: Fail) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT count(*) FROM engine_instance")
        in_thread(fail)
        assert facts_of(["orders"]).blocks == ()
    assert len(facts_of(["orders"]).blocks) == 1


def test_what_one_person_started_or_may_answer_is_never_another_ones(fail: Fail) -> None:
    fail(by="oli")
    fail(message="no kit", by="zoe")
    factories.request(factories.instance("waiting", workflow="orders"), assignees=["oli"])
    olis, zoes = client_of("oli"), client_of("zoe")
    for _ in range(2):
        oli, zoe = Home(olis, "?who=mine"), Home(zoes, "?who=mine")
        assert [row.title for row in oli.rows] == [
            "charge_card: no answer within 5 s",
            "Refund 1,240 € to ACME?",
        ]
        assert [row.title for row in zoe.rows] == ["charge_card: no kit"]
        assert (oli.switch, zoe.switch) == ("Everything 3 Mine 2", "Everything 3 Mine 1")
        assert "waits for you" in Home(olis).html
        assert "waits for you" not in Home(zoes).html


def test_who_may_see_other_workflows_is_shown_these_only(fail: Fail) -> None:
    fail("orders"), fail("secret")
    person = factories.person("operator", "ana")
    for names in (["orders", "secret"], ["orders"], ["secret"], [], ["orders", "secret"]):
        found = attention(names, person)
        shares = {share.workflow for group in found.everything for share in group.shares}
        assert sorted(shares) == names


def test_rights_are_those_of_the_reader(fail: Fail) -> None:
    fail(), fail()
    operator, viewer = Home(client_of("ana")), Home(client_of("vic", "viewer"))
    assert "disabled" not in operator.rows[0].html
    assert "disabled" in viewer.rows[0].html


def test_what_follows_from_the_clock_is_read_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, numbers = Unchanged[int](most=2), iter(range(10))
    assert [kept.read("a", lambda: next(numbers)) for _ in range(2)] == [0, 0]
    monkeypatch.setattr(unchanged, "OLDEST_S", -1.0)
    assert kept.read("a", lambda: next(numbers)) == 1


def test_no_more_is_kept_than_allowed() -> None:
    kept, numbers = Unchanged[int](most=2), iter(range(10))
    found = [kept.read(key, lambda: next(numbers)) for key in ("a", "b", "a", "c", "a", "b")]
    assert found == [0, 1, 0, 2, 0, 3]


def test_who_asks_meanwhile_shares_the_next_reading() -> None:
    """The reading under way may lack what was written before they asked: one more is enough for all of them."""
    kept, numbers = Unchanged[int](most=2), iter(range(10))
    has_begun, may_end, all_ask = Event(), Event(), Barrier(6, timeout=30)

    def slowly() -> int:
        number = next(numbers)
        has_begun.set()
        assert may_end.wait(30)
        return number

    def ask() -> int:
        try:
            all_ask.wait()
            return kept.read("a", slowly)
        finally:
            connection.close()

    def first() -> int:
        try:
            return kept.read("a", slowly)
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as threads:
        leading = threads.submit(first)
        assert has_begun.wait(30)
        factories.instance("queued")  # what is being read now is not for those who ask from here on
        others = [threads.submit(ask) for _ in range(5)]
        all_ask.wait()
        may_end.set()
        found = [one.result() for one in others]
    assert leading.result() == 0
    assert found == [1] * 5


def test_a_reading_that_fails_is_not_kept() -> None:
    kept = Unchanged[int](most=2)
    with pytest.raises(ValueError, match="no"):
        kept.read("a", lambda: int("no"))
    assert kept.read("a", lambda: 1) == 1
