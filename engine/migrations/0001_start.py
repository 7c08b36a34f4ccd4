"""The tables of the engine, from the first to the last; `start/` has their triggers, and how the busy ones are stored.

The models say what the columns mean. A comment above an index names the query that it serves. Constraints and triggers
make the database refuse rows that cannot be. Most foreign keys have no constraint and no index: every checkpoint would
pay for them, and the engine deletes the rows of an instance itself.
"""

from pathlib import Path
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models
from django.db.models import CASCADE, CheckConstraint, CompositePrimaryKey, Index, Q, UniqueConstraint
from django.db.models.functions import Collate, Lower, Now

from engine.models.earlier import is_upgradable
from engine.models.fields import JsonField, times

SQL = Path(__file__).parent / "start"

FINAL = ["complete", "errored", "terminated"]
HELD = ["running", "waiting_for_pause"]
FINAL_STEP = ["complete", "errored", "cancelled"]
# Moments that Python can read.
WAKE_AT_READABLE = Q(wake_at__isnull=True) | Q(
    wake_at__gte="1970-01-01T00:00:00Z", wake_at__lt="9999-12-31T00:00:00Z"
)

EMPTY: dict[str, Any] = {"default": "", "db_default": "", "blank": True}
NO: dict[str, Any] = {"default": False, "db_default": False}
ZERO: dict[str, Any] = {"default": 0, "db_default": 0}
ONE: dict[str, Any] = {"default": 1, "db_default": 1}
EMPTY_LIST: dict[str, Any] = {"default": list, "db_default": []}
KEY: dict[str, Any] = {"primary_key": True, "serialize": False}
COMPOSITE: dict[str, Any] = {"blank": True, "editable": False, "primary_key": True, "serialize": False}


def of_instance(related_name: str) -> models.ForeignKey[Any, Any]:
    return models.ForeignKey(
        "engine.instance", on_delete=CASCADE, related_name=related_name, db_constraint=False, db_index=False
    )


class Migration(migrations.Migration):
    initial = False  # `migrate --fake-initial` must not take the tables of an earlier version for these
    dependencies = ()

    operations = [
        migrations.CreateModel(
            name="Instance",
            fields=[
                ("key", models.BigAutoField(**KEY)),
                ("workflow", models.CharField(max_length=64)),
                ("id", models.CharField(max_length=100)),
                ("generation", models.IntegerField(**ONE)),
                ("status", models.CharField(max_length=20, default="queued")),
                ("waiting_for", models.CharField(max_length=8, **EMPTY)),
                ("rollback", models.CharField(max_length=8, **EMPTY)),
                ("params", JsonField()),
                ("output", JsonField(null=True)),
                ("error", JsonField(null=True)),
                ("pause_reason", JsonField(null=True)),
                ("unreached", ArrayField(models.IntegerField(), **EMPTY_LIST)),
                ("tags", ArrayField(models.CharField(max_length=100), **EMPTY_LIST)),
                ("started_by", models.CharField(max_length=150, **EMPTY)),
                ("code", models.CharField(max_length=64, **EMPTY)),
                ("wake_at", models.DateTimeField(null=True)),
                ("deadline_at", models.DateTimeField(null=True)),
                ("owner", models.IntegerField(null=True)),
                ("fence", models.BigIntegerField(**ZERO)),
                ("signals", models.BigIntegerField(**ZERO)),
                ("quarantined", models.BooleanField(**NO)),
                ("parent_key", models.BigIntegerField(null=True)),
                ("parent_generation", models.IntegerField(null=True)),
                ("parent_step", models.IntegerField(null=True)),
                ("is_tied", models.BooleanField(**NO)),
                ("depth", models.IntegerField(**ZERO)),
                ("notify_pending", models.BooleanField(**NO)),
                ("ends_as", models.CharField(max_length=10, **EMPTY)),
                ("retention", JsonField(null=True)),
                ("created_at", models.DateTimeField(db_default=Now())),
                ("started_at", models.DateTimeField(null=True)),
                ("paused_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "engine_instance",
                "constraints": [
                    times(
                        "engine_instance",
                        "created_at",
                        "deadline_at",
                        "finished_at",
                        "paused_at",
                        "started_at",
                    ),
                    UniqueConstraint(fields=["workflow", "id"], name="engine_instance_id"),
                    CheckConstraint(
                        condition=Q(id__regex=r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,99}$"),
                        name="engine_instance_id_form",
                    ),
                    CheckConstraint(
                        condition=Q(
                            status__in=[
                                "queued",
                                "running",
                                "waiting",
                                "waiting_for_pause",
                                "paused",
                                "complete",
                                "errored",
                                "terminated",
                            ]
                        ),
                        name="engine_instance_status",
                    ),
                    CheckConstraint(
                        condition=Q(rollback__in=["", "running", "complete", "failed"]),
                        name="engine_instance_rollback",
                    ),
                    CheckConstraint(
                        condition=Q(status="waiting", waiting_for__in=["sleep", "event", "retry", "child"])
                        | (~Q(status="waiting") & Q(waiting_for="")),
                        name="engine_instance_waiting_says_for_what",
                    ),
                    CheckConstraint(
                        condition=~Q(status="waiting", waiting_for__in=["sleep", "retry"])
                        | Q(wake_at__isnull=False),
                        name="engine_instance_sleeper_has_wake_up",
                    ),
                    CheckConstraint(
                        condition=Q(owner__isnull=True) | Q(wake_at__isnull=False),
                        name="engine_instance_owner_has_lease",
                    ),
                    CheckConstraint(
                        condition=Q(status__in=HELD, owner__isnull=False)
                        | (~Q(status__in=HELD) & Q(owner__isnull=True)),
                        name="engine_instance_running_has_owner",
                    ),
                    CheckConstraint(
                        condition=~Q(status="paused") | Q(wake_at__isnull=True, paused_at__isnull=False),
                        name="engine_instance_paused_is_still",
                    ),
                    CheckConstraint(
                        condition=Q(status__in=FINAL, finished_at__isnull=False, wake_at__isnull=True)
                        | (~Q(status__in=FINAL) & Q(finished_at__isnull=True)),
                        name="engine_instance_finished_is_still",
                    ),
                    CheckConstraint(condition=WAKE_AT_READABLE, name="engine_instance_wake_at_readable"),
                ],
                "indexes": [
                    # CLAIM and NEXT_DUE. Without what a worker holds: a thousand of those would stand before the first
                    # that is free.
                    Index(
                        fields=["workflow", "wake_at"],
                        condition=Q(wake_at__isnull=False, owner__isnull=True),
                        name="engine_instance_due",
                    ),
                    # REAP, RENEW and HELD: what a dead worker held, and what a living one holds.
                    Index(fields=["owner"], condition=Q(owner__isnull=False), name="engine_instance_owned"),
                    # CLAIM_QUARANTINED: few, and not to be looked for among all that is due.
                    Index(
                        fields=["workflow", "wake_at"],
                        condition=Q(quarantined=True) & Q(owner__isnull=True),
                        name="engine_instance_quarantined",
                    ),
                    # CLAIM_WITH_LIMITS: what has run before goes ahead of what is new.
                    Index(
                        fields=["workflow", "wake_at"],
                        condition=Q(wake_at__isnull=False, owner__isnull=True, started_at__isnull=False),
                        name="engine_instance_woken",
                    ),
                    # The sweep of retention, for instances with a rule of their own.
                    Index(
                        fields=["key"],
                        condition=Q(retention__isnull=False),
                        name="engine_instance_own_retention",
                    ),
                    # The children of an instance.
                    Index(
                        fields=["parent_key"],
                        condition=Q(parent_key__isnull=False),
                        name="engine_instance_children",
                    ),
                    # The notices between relations that are still to be sent (`steer/relations.py`).
                    Index(
                        fields=["key"],
                        condition=Q(notify_pending=True),
                        name="engine_instance_notify_pending",
                    ),
                    # Lists by workflow and status, newest first; counts by status; the places of `max_running`.
                    Index(fields=["workflow", "status", "-key"], name="engine_instance_list"),
                    # The search for IDs by their beginning, ignoring case and over all rows.
                    Index(Collate(Lower("id"), "C"), name="engine_instance_id_start"),
                    # What needs attention: recent failures, retries, pauses by the engine.
                    Index(
                        fields=["workflow", "-finished_at"],
                        condition=Q(status="errored"),
                        name="engine_instance_failed",
                    ),
                    Index(
                        fields=["workflow", "-key"],
                        condition=Q(status="waiting", waiting_for="retry"),
                        name="engine_instance_retrying",
                    ),
                    Index(
                        fields=["workflow", "-key"],
                        condition=Q(status="paused", pause_reason__isnull=False),
                        name="engine_instance_pause_reason",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Generation",
            fields=[
                ("key", models.BigAutoField(**KEY)),
                (
                    "instance",
                    models.ForeignKey("engine.instance", on_delete=CASCADE, related_name="generations"),
                ),
                ("number", models.IntegerField()),
                ("status", models.CharField(max_length=20)),
                ("output", JsonField(null=True)),
                ("error", JsonField(null=True)),
                ("pause_reason", JsonField(null=True)),
                ("rollback", models.CharField(max_length=8, **EMPTY)),
                ("unreached", ArrayField(models.IntegerField(), **EMPTY_LIST)),
                ("code", models.CharField(max_length=64, **EMPTY)),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "engine_generation",
                "constraints": [
                    times("engine_generation", "finished_at", "started_at"),
                    UniqueConstraint(fields=["instance", "number"], name="engine_generation_number"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Step",
            fields=[
                ("pk", CompositePrimaryKey("instance_id", "generation", "seq", **COMPOSITE)),
                ("instance", of_instance("steps")),
                ("generation", models.IntegerField()),
                ("seq", models.IntegerField()),
                ("parent", models.IntegerField(**ZERO)),
                ("kind", models.CharField(max_length=8)),
                ("name", models.CharField(max_length=256)),
                ("count", models.IntegerField()),
                ("status", models.CharField(max_length=9)),
                ("delivery", models.IntegerField(null=True)),
                ("options", JsonField(null=True)),
                ("sensitive", models.BooleanField(**NO)),
                ("attempts", models.IntegerField(**ZERO)),
                ("lost", models.IntegerField(**ZERO)),
                ("event_types", ArrayField(models.CharField(max_length=100), null=True)),
                ("wake_at", models.DateTimeField(null=True)),
                ("wake_is_fixed", models.BooleanField(**NO)),
                ("output", JsonField(null=True)),
                ("error", JsonField(null=True)),
                ("rollback", models.CharField(max_length=8, **EMPTY)),
                ("kept_from", models.IntegerField(null=True)),
                ("started_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "engine_step",
                "constraints": [
                    times("engine_step", "finished_at", "started_at"),
                    CheckConstraint(
                        condition=Q(
                            kind__in=[
                                "do",
                                "sleep",
                                "event",
                                "request",
                                "child",
                                "parallel",
                                "map",
                                "progress",
                            ]
                        ),
                        name="engine_step_kind",
                    ),
                    CheckConstraint(
                        condition=Q(status__in=["running", "waiting", "complete", "errored", "cancelled"]),
                        name="engine_step_status",
                    ),
                    CheckConstraint(
                        condition=Q(status__in=FINAL_STEP, finished_at__isnull=False)
                        | (~Q(status__in=FINAL_STEP) & Q(finished_at__isnull=True, delivery__isnull=True)),
                        name="engine_step_finished_once",
                    ),
                    CheckConstraint(
                        condition=~Q(kind="sleep", status="waiting") | Q(wake_at__isnull=False),
                        name="engine_step_sleeper_has_wake_up",
                    ),
                    CheckConstraint(condition=WAKE_AT_READABLE, name="engine_step_wake_at_readable"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Attempt",
            fields=[
                (
                    "pk",
                    CompositePrimaryKey(
                        "instance_id", "generation", "step_seq", "phase", "number", **COMPOSITE
                    ),
                ),
                ("instance", of_instance("attempts")),
                ("generation", models.IntegerField()),
                ("step_seq", models.IntegerField()),
                ("phase", models.CharField(max_length=8, default="do", db_default="do")),
                ("number", models.IntegerField()),
                ("status", models.CharField(max_length=9)),
                ("worker", models.CharField(max_length=100, **EMPTY)),
                ("quarantined", models.BooleanField(**NO)),
                ("error", JsonField(null=True)),
                ("started_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "engine_attempt",
                "constraints": [
                    times("engine_attempt", "finished_at", "started_at"),
                    CheckConstraint(
                        condition=Q(
                            status__in=["running", "complete", "errored", "timed_out", "lost", "cancelled"]
                        ),
                        name="engine_attempt_status",
                    ),
                    CheckConstraint(condition=Q(phase__in=["do", "rollback"]), name="engine_attempt_phase"),
                    CheckConstraint(
                        condition=Q(status="running", finished_at__isnull=True)
                        | (~Q(status="running") & Q(finished_at__isnull=False)),
                        name="engine_attempt_finished",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Event",
            fields=[
                ("key", models.BigAutoField(**KEY)),
                ("instance", of_instance("events")),
                ("type", models.CharField(max_length=100)),
                ("payload", JsonField()),
                ("dedup_key", models.CharField(max_length=255, null=True)),
                ("sent_by", models.CharField(max_length=150, **EMPTY)),
                ("received_at", models.DateTimeField()),
                ("state", models.CharField(max_length=8, default="buffered", db_default="buffered")),
                ("consumed_generation", models.IntegerField(null=True)),
                ("consumed_by", models.IntegerField(null=True)),
            ],
            options={
                "db_table": "engine_event",
                "constraints": [
                    times("engine_event", "received_at"),
                    UniqueConstraint(
                        fields=["instance", "dedup_key"],
                        condition=Q(dedup_key__isnull=False),
                        name="engine_event_dedup",
                    ),
                    CheckConstraint(
                        condition=Q(
                            state="consumed", consumed_by__isnull=False, consumed_generation__isnull=False
                        )
                        | Q(state__in=["buffered", "dropped"], consumed_by__isnull=True),
                        name="engine_event_state",
                    ),
                    UniqueConstraint(
                        fields=["instance", "consumed_generation", "consumed_by"],
                        condition=Q(state="consumed"),
                        name="engine_event_one_per_wait",
                    ),
                ],
                "indexes": [
                    # The Studio's list of an instance's events.
                    Index(fields=["instance", "key"], name="engine_event_order"),
                    # BUFFERED_EVENTS and SEND: without the consumed ones, of which there are ever more.
                    Index(
                        fields=["instance", "key"],
                        condition=Q(state="buffered"),
                        name="engine_event_buffered",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Log",
            fields=[
                ("key", models.BigAutoField(**KEY)),
                ("instance", of_instance("logs")),
                ("generation", models.IntegerField()),
                ("position", models.IntegerField(null=True)),
                ("step_seq", models.IntegerField(null=True)),
                ("attempt", models.IntegerField(null=True)),
                ("level", models.CharField(max_length=8)),
                ("message", models.TextField()),
                ("fields", JsonField(null=True)),
                ("at", models.DateTimeField()),
            ],
            options={
                "db_table": "engine_log",
                "constraints": [
                    times("engine_log", "at"),
                    # A replay says the handler's lines again, and each is kept once.
                    UniqueConstraint(
                        fields=["instance", "generation", "position"],
                        condition=Q(position__isnull=False),
                        name="engine_log_once",
                    ),
                ],
                "indexes": [
                    # An instance's log in order.
                    Index(fields=["instance", "key"], name="engine_log_order"),
                ],
            },
        ),
        migrations.CreateModel(
            name="OpenRequest",
            fields=[
                ("pk", CompositePrimaryKey("instance_id", "generation", "seq", **COMPOSITE)),
                ("instance", of_instance("open_requests")),
                ("generation", models.IntegerField()),
                ("seq", models.IntegerField()),
                ("opened_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField(null=True)),
                ("assignees", ArrayField(models.CharField(max_length=200), default=list)),
            ],
            options={
                "db_table": "engine_open_request",
                "constraints": [times("engine_open_request", "expires_at", "opened_at")],
            },
        ),
        migrations.CreateModel(
            name="EndedRequest",
            fields=[
                ("pk", CompositePrimaryKey("instance_id", "generation", "seq", **COMPOSITE)),
                ("instance", of_instance("ended_requests")),
                ("generation", models.IntegerField()),
                ("seq", models.IntegerField()),
                ("ended_at", models.DateTimeField()),
            ],
            options={
                "db_table": "engine_ended_request",
                "constraints": [times("engine_ended_request", "ended_at")],
                "indexes": [
                    # The latest under Approvals.
                    Index(fields=["-ended_at"], name="engine_ended_request_latest"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Waiter",
            fields=[
                ("pk", CompositePrimaryKey("waiter_id", "generation", "seq", **COMPOSITE)),
                ("waiter", of_instance("+")),
                ("generation", models.IntegerField()),
                ("seq", models.IntegerField()),
                ("instance", of_instance("waiters")),
                ("told_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "engine_waiter",
                "constraints": [times("engine_waiter", "told_at")],
                "indexes": [
                    # Who waits for an instance that has ended, or is to be deleted.
                    Index(fields=["instance"], name="engine_waiter_instance"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Notice",
            fields=[
                ("key", models.BigAutoField(**KEY)),
                ("kind", models.CharField(max_length=20)),
                ("at", models.DateTimeField()),
                ("workflow", models.CharField(max_length=64, **EMPTY)),
                ("instance_id", models.CharField(max_length=100, **EMPTY)),
                ("instance_key", models.BigIntegerField(null=True)),
                ("generation", models.IntegerField(**ZERO)),
                ("step", models.TextField(**EMPTY)),
                ("count", models.IntegerField(**ONE)),
                ("attempt", models.IntegerField(**ZERO)),
                ("phase", models.CharField(max_length=8, **EMPTY)),
                ("worker", models.CharField(max_length=100, **EMPTY)),
                ("error_type", models.TextField(**EMPTY)),
                ("error_message", models.TextField(**EMPTY)),
                ("reason", models.TextField(**EMPTY)),
                ("is_logged", models.BooleanField(**NO)),
                ("taken_until", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "engine_notice",
                "constraints": [
                    CheckConstraint(
                        condition=Q(
                            kind__in=[
                                "instance_errored",
                                "rollback_failed",
                                "instance_paused",
                                "attempt_lost",
                                "worker_retired",
                            ]
                        ),
                        name="engine_notice_kind",
                    ),
                    times("engine_notice", "at", "taken_until"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Audit",
            fields=[
                ("key", models.BigAutoField(**KEY)),
                ("at", models.DateTimeField(db_default=Now())),
                ("verb", models.CharField(max_length=32)),
                ("actor", models.CharField(max_length=150, default="", blank=True)),
                ("user_key", models.CharField(max_length=64, default="", blank=True)),
                ("workflow", models.CharField(max_length=64)),
                ("instance_id", models.CharField(max_length=100)),
                ("instance_key", models.BigIntegerField(null=True)),
                ("before", models.CharField(max_length=20, default="", blank=True)),
                ("after", models.CharField(max_length=20, default="", blank=True)),
                ("outcome", models.CharField(max_length=8, default="done")),
                ("reason", models.TextField(default="", blank=True)),
                ("data", JsonField(null=True)),
            ],
            options={
                "db_table": "engine_audit",
                "constraints": [times("engine_audit", "at")],
                "indexes": [
                    # What was done to an instance, in order.
                    Index(fields=["instance_key", "key"], name="engine_audit_instance"),
                    # Who deleted an instance that is gone.
                    Index(
                        fields=["workflow", "instance_id"],
                        condition=Q(verb="delete"),
                        name="engine_audit_deleted",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ScheduleRow",
            fields=[
                ("key", models.BigAutoField(**KEY)),
                ("workflow", models.CharField(max_length=64)),
                ("name", models.CharField(max_length=100)),
                ("expression", models.CharField(max_length=100)),
                ("timezone", models.CharField(max_length=64)),
                ("params", JsonField(null=True)),
                ("is_declared", models.BooleanField(default=True, db_default=True)),
                ("paused_at", models.DateTimeField(null=True)),
                ("paused_by", models.CharField(max_length=150, **EMPTY)),
                ("next_at", models.DateTimeField(null=True)),
                ("last_planned_at", models.DateTimeField(null=True)),
                ("last_instance_key", models.BigIntegerField(null=True)),
                ("last_missed", models.IntegerField(**ZERO)),
                ("last_error", models.TextField(**EMPTY)),
                ("created_at", models.DateTimeField(db_default=Now())),
            ],
            options={
                "db_table": "engine_schedule",
                "constraints": [
                    times("engine_schedule", "created_at", "last_planned_at", "next_at", "paused_at"),
                    UniqueConstraint(fields=["workflow", "name"], name="engine_schedule_name"),
                    CheckConstraint(
                        condition=Q(next_at__isnull=True) | Q(is_declared=True, paused_at__isnull=True),
                        name="engine_schedule_still",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Worker",
            fields=[
                ("key", models.BigAutoField(**KEY)),
                ("role", models.CharField(max_length=8)),
                ("name", models.CharField(max_length=100)),
                ("worker_id", models.IntegerField(unique=True)),
                ("workflows", ArrayField(models.CharField(max_length=64))),
                ("slots", models.IntegerField()),
                ("held", models.IntegerField(**ZERO)),
                ("started_at", models.DateTimeField()),
                ("seen_at", models.DateTimeField()),
            ],
            options={
                "db_table": "engine_worker",
                "constraints": [times("engine_worker", "seen_at", "started_at")],
            },
        ),
        migrations.RunSQL((SQL / "final.sql").read_text(), "DROP FUNCTION engine_refuse() CASCADE"),
        migrations.RunSQL((SQL / "requests.sql").read_text(), "DROP FUNCTION engine_keep_request() CASCADE"),
        migrations.RunSQL(
            (SQL / "notices.sql").read_text(),
            "DROP FUNCTION engine_note_instance() CASCADE; DROP FUNCTION engine_note_attempt() CASCADE",
        ),
        migrations.RunSQL((SQL / "storage.sql").read_text(), migrations.RunSQL.noop),
    ]

    def apply(self, project_state: Any, schema_editor: Any, collect_sql: bool = False) -> Any:
        """Create the tables, or rename columns where an earlier version has created them; all of it or nothing."""
        if is_upgradable(schema_editor.connection):
            for file in ("upgrade", "final", "requests", "notices"):
                schema_editor.execute((SQL / f"{file}.sql").read_text(), params=None)
            return self.mutate_state(project_state, preserve=False)
        state = super().apply(project_state, schema_editor, collect_sql)
        # Django would do this later, and record the migration in a transaction after that one.
        while schema_editor.deferred_sql:
            schema_editor.execute(schema_editor.deferred_sql.pop(0), params=None)
        return state
