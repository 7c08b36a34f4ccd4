"""What the tables refuse, whoever writes: the record stays possible, and what is finished stays as it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.db.models import F
from django.utils import timezone

from engine.models import Audit, Generation, Instance, Step
from tests.integration.rows import NOW, attempt_of, event_of, row_of, step_of

pytestmark = pytest.mark.django_db

ENDED: dict[str, Any] = {"status": "complete", "finished_at": NOW, "wake_at": None, "output": {"a": 1}}


def assert_refused(constraint: str, write: Any) -> None:
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        write()


@pytest.mark.parametrize(
    ("values", "constraint"),
    [
        ({"id": "a b"}, "engine_instance_id_form"),
        ({"id": ""}, "engine_instance_id_form"),
        ({"id": "a\n"}, "engine_instance_id_form"),
        ({"status": "lost"}, "engine_instance_status"),
        ({"rollback": "perhaps"}, "engine_instance_rollback"),
        ({"status": "waiting"}, "engine_instance_waiting_says_for_what"),
        ({"waiting_for": "sleep"}, "engine_instance_waiting_says_for_what"),
        (
            {"status": "waiting", "waiting_for": "sleep", "wake_at": None},
            "engine_instance_sleeper_has_wake_up",
        ),
        (
            {"status": "waiting", "waiting_for": "retry", "wake_at": None},
            "engine_instance_sleeper_has_wake_up",
        ),
        ({"status": "running", "owner": 1, "wake_at": None}, "engine_instance_owner_has_lease"),
        ({"status": "running"}, "engine_instance_running_has_owner"),
        ({"status": "waiting_for_pause"}, "engine_instance_running_has_owner"),
        ({"owner": 1}, "engine_instance_running_has_owner"),
        ({"status": "paused", "wake_at": None}, "engine_instance_paused_is_still"),
        ({"status": "paused", "paused_at": NOW}, "engine_instance_paused_is_still"),
        ({"status": "complete", "wake_at": None}, "engine_instance_finished_is_still"),
        ({"status": "complete", "finished_at": NOW}, "engine_instance_finished_is_still"),
        ({"finished_at": NOW}, "engine_instance_finished_is_still"),
        ({"wake_at": datetime(1969, 12, 31, tzinfo=UTC)}, "engine_instance_wake_at_readable"),
    ],
)
def test_an_impossible_instance_is_refused(values: dict[str, Any], constraint: str) -> None:
    assert_refused(constraint, lambda: row_of(**values))


def test_two_instances_of_one_id_are_refused() -> None:
    row_of(id="one")
    assert_refused("engine_instance_id", lambda: row_of(id="one"))


@pytest.mark.parametrize(
    ("values", "constraint"),
    [
        ({"kind": "nap"}, "engine_step_kind"),
        ({"status": "lost"}, "engine_step_status"),
        ({"status": "complete"}, "engine_step_finished_once"),
        ({"finished_at": NOW}, "engine_step_finished_once"),
        ({"delivery": 1}, "engine_step_finished_once"),
        ({"kind": "sleep", "status": "waiting"}, "engine_step_sleeper_has_wake_up"),
        ({"wake_at": datetime(1969, 1, 1, tzinfo=UTC)}, "engine_step_wake_at_readable"),
    ],
)
def test_an_impossible_step_is_refused(values: dict[str, Any], constraint: str) -> None:
    instance = row_of()
    assert_refused(constraint, lambda: step_of(instance, **values))


@pytest.mark.parametrize(
    ("values", "constraint"),
    [
        ({"status": "waiting", "finished_at": NOW}, "engine_attempt_status"),
        ({"phase": "again"}, "engine_attempt_phase"),
        ({"status": "lost"}, "engine_attempt_finished"),
        ({"finished_at": NOW}, "engine_attempt_finished"),
    ],
)
def test_an_impossible_attempt_is_refused(values: dict[str, Any], constraint: str) -> None:
    instance = row_of()
    assert_refused(constraint, lambda: attempt_of(instance, **values))


@pytest.mark.parametrize(
    ("values", "constraint"),
    [
        ({"state": "lost"}, "engine_event_state"),
        ({"state": "consumed"}, "engine_event_state"),
        ({"consumed_by": 1}, "engine_event_state"),
    ],
)
def test_an_impossible_event_is_refused(values: dict[str, Any], constraint: str) -> None:
    instance = row_of()
    assert_refused(constraint, lambda: event_of(instance, **values))


def test_one_wait_consumes_one_event() -> None:
    instance = row_of()
    taken = {"state": "consumed", "consumed_generation": 1, "consumed_by": 1}
    event_of(instance, **taken)
    assert_refused("engine_event_one_per_wait", lambda: event_of(instance, **taken))


def test_a_dedup_key_is_used_once_an_instance() -> None:
    one, two = row_of(id="one"), row_of(id="two")
    event_of(one, dedup_key="k")
    event_of(two, dedup_key="k")
    event_of(one)
    event_of(one)
    assert_refused("engine_event_dedup", lambda: event_of(one, dedup_key="k"))


@pytest.mark.parametrize(
    "change",
    [
        {"status": "errored"},
        {"output": {"a": 2}},
        {"output": None},
        {"error": {"type": "E"}},
        {"finished_at": NOW + timedelta(seconds=1)},
        {"status": "queued", "finished_at": None},
    ],
)
def test_a_finished_instance_never_changes(change: dict[str, Any]) -> None:
    key = row_of(**ENDED).key
    assert_refused("finished generation", lambda: Instance.objects.filter(key=key).update(**change))


def test_a_new_generation_may_begin_where_one_finished() -> None:
    key = row_of(**ENDED).key
    Instance.objects.filter(key=key).update(
        generation=F("generation") + 1, status="queued", output=None, finished_at=None, wake_at=timezone.now()
    )
    assert Instance.objects.get(key=key).generation == 2


def test_what_is_no_outcome_may_change_after_the_end() -> None:
    key = row_of(**ENDED).key
    assert Instance.objects.filter(key=key).update(rollback="complete", tags=["kept"]) == 1
    assert Instance.objects.filter(key=key).update(status="complete", output={"a": 1}) == 1


@pytest.mark.parametrize(
    "change",
    [{"params": {"b": 1}}, {"id": "two"}, {"workflow": "nap"}, {"created_at": NOW - timedelta(days=1)}],
)
def test_an_instance_stays_itself(change: dict[str, Any]) -> None:
    key = row_of().key
    assert_refused("never change", lambda: Instance.objects.filter(key=key).update(**change))


@pytest.mark.parametrize(
    "change",
    [
        {"status": "errored"},
        {"output": {"a": 2}},
        {"error": {"type": "E"}},
        {"delivery": 2},
        {"name": "other"},
        {"kind": "sleep"},
        {"count": 2},
        {"finished_at": NOW + timedelta(seconds=1)},
    ],
)
@pytest.mark.parametrize("status", ["complete", "errored", "cancelled"])
def test_a_finished_step_never_changes(status: str, change: dict[str, Any]) -> None:
    if change == {"status": status}:
        change = {"status": "running", "finished_at": None, "delivery": None}
    instance = row_of()
    step_of(instance, status=status, finished_at=NOW, delivery=1, output={"a": 1})
    assert_refused("finished step", lambda: Step.objects.filter(instance=instance).update(**change))


def test_a_finished_step_may_be_rolled_back() -> None:
    instance = row_of()
    step_of(instance, status="complete", finished_at=NOW, delivery=1)
    assert Step.objects.filter(instance=instance).update(rollback="complete") == 1


def test_the_audit_trail_is_append_only() -> None:
    Audit.objects.create(verb="pause", workflow="tick", instance_id="one")
    assert_refused("append-only", lambda: Audit.objects.update(reason="another"))
    assert_refused("append-only", lambda: Audit.objects.all().delete())
    assert Audit.objects.count() == 1


def test_an_earlier_generation_never_changes() -> None:
    Generation.objects.create(instance=row_of(), number=1, status="complete")
    assert_refused("earlier generation", lambda: Generation.objects.update(status="errored"))


@pytest.mark.parametrize("value", [1e16, -0.0, {"zz": 1, "b": 2}, 0.1, 9007199254740993, "\\u0000", [], None])
def test_values_come_back_as_they_went_in(value: Any) -> None:
    """The columns are json, not jsonb."""
    instance = row_of(params=[value])
    (read,) = Instance.objects.get(key=instance.key).params
    assert repr(read) == repr(value)


def test_the_busy_tables_are_kept_apart_from_the_rest() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, reloptions FROM pg_class WHERE relname LIKE 'engine_%' AND reloptions IS NOT NULL"
        )
        options = dict(cursor.fetchall())
    assert options == {
        "engine_instance": [
            "fillfactor=70",
            "autovacuum_vacuum_scale_factor=0.02",
            "autovacuum_vacuum_threshold=500",
        ],
        "engine_step": ["fillfactor=85", "autovacuum_vacuum_scale_factor=0.05"],
        "engine_attempt": ["fillfactor=85", "autovacuum_vacuum_scale_factor=0.05"],
        "engine_workflow_count": ["fillfactor=80", "autovacuum_vacuum_scale_factor=0.02"],
        "engine_workflow_count_delta": [
            "autovacuum_vacuum_scale_factor=0",
            "autovacuum_vacuum_threshold=5000",
            "autovacuum_vacuum_insert_scale_factor=0",
        ],
        "engine_workflow_span": ["fillfactor=80", "autovacuum_vacuum_scale_factor=0.02"],
    }


def test_the_models_and_the_migrations_agree() -> None:
    call_command("makemigrations", "engine", check=True, dry_run=True, verbosity=0)
