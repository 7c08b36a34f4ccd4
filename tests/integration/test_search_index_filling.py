"""Which paths are indexed: added by workers, filled and removed by `workflow index`, beside starts, ends and kills."""

from __future__ import annotations

import time
from datetime import timedelta
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from django.db.models import F

from engine import workflows
from engine.models import IndexedPath, Instance, SearchValue, Worker
from engine.models.connection import parameters
from engine.status.searching.indexed import indexed
from engine.steer.clock import database_time
from engine.steer.indexing import filling, paths, updating
from engine.steer.indexing.removal import Removed
from engine.steer.indexing.writers import Waiting
from tests.integration.cuts import cut_everywhere
from tests.integration.orders import PLANT, declare, found, redeclare, worker_of
from tests.integration.sessions import in_background, together, until_blocked
from tests.integration.test_periodic import keeping_time
from tests.shifts import running_shift, wait_until
from tests.stories import run_to_end

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_registry")]


def test_the_paths_of_a_workflow_without_instances_are_complete_at_once() -> None:
    declare("customer", "output.total")
    paths.register()
    paths.register()
    assert [(one.workflow, one.path, one.is_complete) for one in indexed(["order"])] == [
        ("order", "output.total", True),
        ("order", "params.customer", True),
    ]
    assert indexed(["other"]) == []
    assert len(indexed()) == 2


def test_a_path_is_incomplete_until_the_instances_that_were_there_are_indexed() -> None:
    order = declare()
    old = run_to_end(order.start({"customer": "c", "returns": 7}))
    order = redeclare("customer", "output")
    paths.register()
    new = order.start({"customer": "d"})
    assert found(old) == {}
    assert found(new) == {"params.customer": ("d", None)}
    assert not any(one.is_complete for one in indexed())
    assert [*updating.update()] == [filling.Progress("order", 2)]
    assert all(one.is_complete for one in indexed())
    assert found(old) == {"params.customer": ("c", None), "output": ("7", Decimal(7))}
    assert [*updating.update()] == []


def test_an_uncommitted_start_keeps_a_path_incomplete_and_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paths, "WAIT_SECONDS", 0.1)
    order = declare()
    with psycopg.connect(**parameters()) as other:
        other.execute(PLANT, ["early"])  # its trigger has not seen the path
        order = redeclare("customer")
        paths.register()
        assert [one.is_complete for one in indexed()] == [False]
        work = updating.update()
        assert next(work) == Waiting(1)
        assert next(work) == Waiting(1)
        order.start({"customer": "late"})
        other.commit()
    left = [one for one in work if not isinstance(one, Waiting)]
    assert left == [filling.Progress("order", 2)]
    assert [one.is_complete for one in indexed()] == [True]
    assert sorted(SearchValue.objects.values_list("text", flat=True)) == ["early", "late"]


def test_a_start_that_is_rolled_back_does_not_keep_a_path_incomplete() -> None:
    declare()
    with psycopg.connect(**parameters()) as other:
        other.execute(PLANT, ["never"])
        redeclare("customer")
        answer = in_background(paths.register)
        time.sleep(0.1)
        other.rollback()
        assert answer() is None
    assert [one.is_complete for one in indexed()] == [True]


def test_a_fill_that_is_killed_anywhere_is_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling, "FIRST_BATCH", 1)
    monkeypatch.setattr(filling, "MOST_AT_ONCE", 1)
    order = declare()
    for number in range(2):
        run_to_end(order.start({"customer": f"c{number}", "returns": number}))
    redeclare("customer", "output")
    begun = set[int]()

    def work(turn: int) -> None:
        if turn not in begun:
            begun.add(turn)
            with psycopg.connect(**parameters()) as other:  # which is not cut
                other.execute("DELETE FROM engine_indexedpath")
                other.execute("DELETE FROM engine_searchvalue")
            list(updating.update())
            return
        list(updating.update())
        assert [one.is_complete for one in indexed()] == [True, True]
        assert SearchValue.objects.count() == 4

    assert cut_everywhere(work, after=True) > 10
    assert cut_everywhere(lambda turn: work(-turn), after=False) > 10


def test_a_fill_waits_for_rows_that_are_locked_and_holds_nothing_meanwhile() -> None:
    order = declare()
    done, open_ = run_to_end(order.start({"customer": "a", "returns": 1})), order.start({"customer": "b"})
    redeclare("customer", "output")
    with psycopg.connect(**parameters()) as other:
        other.execute("SELECT FROM engine_instance WHERE key = %s FOR UPDATE", [done.key])
        answer = in_background(lambda: list(updating.update()))
        wait_until(lambda: found(open_) == {"params.customer": ("b", None)})
        open_.terminate()
        assert not any(one.is_complete for one in indexed())
        assert found(done) == {}
    assert answer() == [filling.Progress("order", 2)]
    assert found(done) == {"params.customer": ("a", None), "output": ("1", Decimal(1))}


@pytest.mark.parametrize(
    ("params", "after"),
    [({"customer": "b"}, {"params.customer": ("b", None)}), ({}, {})],
)
def test_a_restart_that_changes_the_params_waits_for_a_fill_that_reads_them(
    monkeypatch: pytest.MonkeyPatch, params: dict[str, str], after: dict[str, tuple[str, None]]
) -> None:
    instance = declare().start({"customer": "a"})
    redeclare("customer")
    answers = []
    fill = filling._do

    def slow(*given: Any, **values: Any) -> None:
        fill(*given, **values)
        if not answers:
            answers.append(in_background(lambda: instance.restart(params=params).generation))
            until_blocked()

    monkeypatch.setattr(filling, "_do", slow)
    list(updating.update())
    assert [answer() for answer in answers] == [2]
    assert found(instance) == after


def test_two_fills_at_once_beside_starts_and_ends_leave_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling, "FIRST_BATCH", 1)
    monkeypatch.setattr(filling, "MOST_AT_ONCE", 3)
    order = declare()
    first = [order.start({"customer": f"a{number}", "returns": number}) for number in range(20)]
    with running_shift():
        order = redeclare("customer", "output")

        def work(number: int) -> None:
            if number < 2:
                list(updating.update())
            else:
                order.start_many([{"params": {"customer": f"{number}-{n}", "returns": n}} for n in range(10)])

        assert together(4, work) == [None] * 4
        wait_until(lambda: not Instance.objects.exclude(status="complete").exists())
        first[0].restart()
        first[1].delete()
        wait_until(lambda: not Instance.objects.exclude(status="complete").exists())
    assert [one.is_complete for one in indexed()] == [True, True]
    assert SearchValue.objects.count() == 39 * 2


def test_a_path_that_is_no_longer_declared_goes_with_its_values() -> None:
    order = declare("customer", "other")
    paths.register()
    instance = order.start({"customer": "c", "other": 1})
    redeclare("customer")
    paths.register()
    assert found(instance) == {"params.customer": ("c", None), "params.other": ("1", Decimal(1))}
    assert [*updating.update()] == [
        Removed("order", "params.other", 1),
        Removed("order", "params.other", 1, True),
    ]
    assert [one.path for one in indexed()] == ["params.customer"]
    assert found(instance) == {"params.customer": ("c", None)}


def test_a_removal_waits_for_starts_that_still_write_values() -> None:
    declare("customer")
    paths.register()
    with psycopg.connect(**parameters()) as other:
        other.execute(PLANT, ["early"])
        redeclare()
        work = updating.update()
        assert next(work) == Waiting(1)
        assert indexed() == []
        other.commit()
    assert [one for one in work if isinstance(one, Removed)][-1] == Removed(
        "order", "params.customer", 1, True
    )
    assert not SearchValue.objects.exists()
    assert not IndexedPath.objects.exists()


def test_a_removal_that_is_stopped_is_ended_before_the_path_is_declared_again() -> None:
    order = declare("customer")
    paths.register()
    instance = order.start({"customer": "c"})
    redeclare()
    next(updating.update())
    order = redeclare("customer")
    paths.register()
    assert indexed() == []
    later = order.start({"customer": "d"})
    assert found(later) == {}
    list(updating.update())
    assert [one.is_complete for one in indexed()] == [True]
    assert (found(instance), found(later)) == (
        {"params.customer": ("c", None)},
        {"params.customer": ("d", None)},
    )


def test_paths_of_a_workflow_that_only_another_cluster_declares_stay() -> None:
    declare("customer")
    paths.register()
    workflows._workflows.pop("order")
    worker_of("order", seen_at=database_time())
    assert [*updating.update()] == []
    Worker.objects.update(
        started_at=F("seen_at") - timedelta(minutes=5), seen_at=F("seen_at") - timedelta(minutes=2)
    )
    assert [*updating.update()] == [Removed("order", "params.customer", 0, True)]


def test_a_worker_adds_the_declared_paths_when_it_starts() -> None:
    declare("customer")
    with keeping_time("one"):
        wait_until(lambda: [one.is_complete for one in indexed()] == [True])
