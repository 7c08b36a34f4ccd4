"""Every invariant finds what violates it, and nothing else; `manage.py verify` asks them all."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from engine.invariants import INVARIANTS, Invariant, look
from engine.invariants.instances import TIMES
from engine.models import Instance
from tests.integration.plants import PLANTS, child_of
from tests.integration.rows import NOW, leased, row_of, step_of
from tests.sample.workflows import listen_for, nap, process_order, tick
from tests.shifts import run_to_end, running_shift, wait_for

LIMITS = {"tick": 2}


@pytest.fixture
def unguarded(db: None) -> None:
    """Remove what refuses impossible rows, until the test's transaction is rolled back."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT format('ALTER TABLE %I DROP CONSTRAINT %I CASCADE', conrelid::regclass::text, conname)
            FROM pg_constraint WHERE conrelid::regclass::text LIKE 'engine\\_%' AND contype IN ('c', 'u', 'f')
            UNION ALL
            SELECT format('DROP INDEX %s', indexrelid::regclass::text) FROM pg_index
            WHERE indrelid::regclass::text LIKE 'engine\\_%' AND indisunique AND NOT indisprimary
              AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
            UNION ALL
            SELECT format('ALTER TABLE %s DISABLE TRIGGER USER', oid::regclass::text) FROM pg_class
            WHERE relname LIKE 'engine\\_%' AND relkind = 'r'
            """
        )
        for (statement,) in cursor.fetchall():
            cursor.execute(statement)


def is_violated(name: str) -> bool:
    [invariant] = [one for one in INVARIANTS if one.name == name]
    with connection.cursor() as cursor:
        return look(cursor, invariant, limits=LIMITS).count > 0


def violated() -> set[str]:
    return {one.name for one in INVARIANTS if is_violated(one.name)}


@pytest.mark.parametrize(("name", "plant"), PLANTS, ids=[plant.__name__.strip("_") for _, plant in PLANTS])
def test_a_planted_violation_is_found(unguarded: None, name: str, plant: Callable[[], object]) -> None:
    assert not is_violated(name)
    plant()
    assert is_violated(name)


def test_every_moment_of_every_table_is_looked_at(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
            WHERE c.relname LIKE 'engine\\_%' AND c.relkind = 'r' AND a.atttypid = 'timestamptz'::regtype
            """
        )
        assert set(cursor.fetchall()) == {
            (table, one) for table, (_, columns) in TIMES.items() for one in columns
        }


def test_every_invariant_is_shown_to_be_able_to_fail() -> None:
    assert {name for name, _ in PLANTS} == {one.name for one in INVARIANTS}


def test_the_guards_of_the_tables_are_back_after_a_plant(db: None) -> None:
    """Otherwise the other plants, and other tests, would prove less than they say."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_trigger WHERE tgname = 'engine_step_is_final' AND tgenabled = 'O'"
        )
        assert cursor.fetchone() == (1,)


def test_names_are_unique_and_sentences_are_sentences() -> None:
    assert len({one.name for one in INVARIANTS}) == len(INVARIANTS)
    assert [one.name for one in INVARIANTS if not one.sentence.endswith(".")] == []


@pytest.mark.django_db
def test_what_is_wrong_is_told_with_its_first_offenders() -> None:
    rows = [row_of(id=f"one-{number}", wake_at=NOW) for number in range(7)]
    [overdue] = [one for one in INVARIANTS if one.name == "nothing-is-overdue"]
    with connection.cursor() as cursor:
        finding = look(cursor, overdue)
    assert (finding.count, [bad.key for bad in finding.offenders]) == (7, [row.key for row in rows[:5]])
    assert str(finding.offenders[0]) == "tick/one-0"


@pytest.mark.django_db
def test_what_waits_for_a_place_is_not_overdue() -> None:
    row_of(id="waits", wake_at=NOW)
    for name in ("one", "two"):
        assert "nothing-is-overdue" in violated()
        leased(row_of(id=name))
        Instance.objects.filter(id=name).update(fence=1)
    assert violated() == set()


@pytest.mark.django_db
def test_a_branch_that_was_left_to_itself_is_no_orphan() -> None:
    parent = row_of(id="parent", status="terminated", finished_at=NOW, wake_at=None)
    options = {"on_failure": "leave"}
    step_of(parent, kind="parallel", status="errored", finished_at=NOW, error={}, options=options, delivery=1)
    step_of(parent, 2, parent=1, kind="child", status="cancelled", finished_at=NOW)
    child_of(parent, 2)
    assert "no-orphans" not in violated()


def verify(**options: Any) -> tuple[int, str]:
    out = io.StringIO()
    try:
        call_command("verify", stdout=out, no_color=True, **options)
    except CommandError as error:
        return error.returncode, out.getvalue()
    return 0, out.getvalue()


def test_a_database_that_has_worked_violates_nothing(engine_db: None) -> None:
    """Of every status: complete, errored, terminated, paused, sleeping, waiting, queued."""
    run_to_end(tick.start())
    order = process_order.start({"customer": "c", "items": [{"sku": "s", "quantity": 1}]})
    sleeper, listener = nap.start({"seconds": 3600}), listen_for.start(["a", "b"])
    stopped, halted = nap.start({"seconds": 3600}), listen_for.start(["a"])
    with running_shift():
        order.send_event("order-approved", {"approved": False})
        listener.send_event("a", 1.5)
        wait_for(order)
        for one in (sleeper, listener, stopped, halted):
            wait_for(one, "waiting")
        stopped.terminate()
        halted.pause()
    tick.start()
    code, said = verify()
    assert (code, said.count("ok  "), "FAIL" in said) == (0, len(INVARIANTS), False)


def test_verify_fails_and_names_who_offends(engine_db: None) -> None:
    row_of(id="late", wake_at=NOW)
    code, said = verify()
    assert code == 1
    assert "FAIL  I7        1  Every due instance is claimed" in said
    assert "tick/late: due since" in said
    assert "no timer fires early" in said


def test_verify_forgives_what_is_overdue_within_the_grace(engine_db: None) -> None:
    row_of(wake_at=timezone.now() - timedelta(minutes=10))
    assert verify()[0] == 1
    assert verify(grace=3600)[0] == 0


def test_verify_tells_machines_as_json(engine_db: None) -> None:
    row_of(id="late", wake_at=NOW)
    code, said = verify(json=True)
    found = {one["name"]: one for one in json.loads(said)}
    assert (code, len(found)) == (1, len(INVARIANTS))
    bad = found["nothing-is-overdue"]
    assert (bad["id"], bad["count"]) == ("I7", 1)
    assert [(one["workflow"], one["id"]) for one in bad["offenders"]] == [("tick", "late")]


def test_verify_says_what_it_could_not_check_in_time(
    engine_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Invariant("I0", "slow", "It takes its time.", "SELECT 1, 'x' FROM pg_sleep(5)")
    quick = Invariant("I0", "quick", "It is asked all the same.", "SELECT 1, 'x' WHERE false")
    monkeypatch.setattr("engine.management.commands.verify.INVARIANTS", (slow, quick))
    code, said = verify(timeout=0.05)
    assert code == 2
    assert [line[:4].strip() for line in said.splitlines()[1:3]] == ["?", "ok"]


def test_verify_can_write_nothing(engine_db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    writes = Invariant("I0", "writes", "It writes.", "SELECT nextval('engine_instance_key_seq'), 'x'")
    monkeypatch.setattr("engine.management.commands.verify.INVARIANTS", (writes,))
    with pytest.raises(Exception, match="read-only transaction"):
        verify()
