from django.db import migrations, models
from django.db.models import Index, Q

from engine.migrations._operations import AddCheck, AddIndexUnlessThere
from engine.migrations._sql import AUDIT_IS_NOT_TRUNCATED, LOSE_ATTEMPTS_OF_PAUSED
from engine.models.fields import times

INDEXES = (
    # Of 0002 to 0004, which built them while they kept everybody out of the tables.
    ("event", Index(fields=["instance", "key"], condition=Q(state="buffered"), name="engine_event_buffered")),
    (
        "instance",
        Index(fields=["parent_key"], condition=Q(parent_key__isnull=False), name="engine_instance_children"),
    ),
    ("instance", Index(fields=["key"], condition=Q(owes=True), name="engine_instance_owes")),
    (
        "instance",
        Index(
            fields=["workflow", "wake_at"],
            condition=Q(wake_at__isnull=False, owner__isnull=True, started_at__isnull=False),
            name="engine_instance_woken",
        ),
    ),
    (
        "instance",
        Index(fields=["key"], condition=Q(retention__isnull=False), name="engine_instance_own_retention"),
    ),
    (
        "audit",
        Index(fields=["workflow", "instance_id"], condition=Q(verb="delete"), name="engine_audit_deleted"),
    ),
)
TIMES = (
    (
        "instance",
        times("engine_instance", "created_at", "deadline_at", "finished_at", "paused_at", "started_at"),
    ),
    ("generation", times("engine_generation", "finished_at", "started_at")),
    ("step", times("engine_step", "finished_at", "started_at")),
    ("attempt", times("engine_attempt", "finished_at", "started_at")),
    ("event", times("engine_event", "received_at")),
    ("log", times("engine_log", "at")),
    ("audit", times("engine_audit", "at")),
    ("openrequest", times("engine_open_request", "expires_at", "opened_at")),
    ("waiter", times("engine_waiter", "told_at")),
    ("schedulerow", times("engine_schedule", "created_at", "last_planned_at", "next_at", "paused_at")),
    ("worker", times("engine_worker", "seen_at", "started_at")),
)


class Migration(migrations.Migration):
    """Nothing here keeps others waiting for longer than a moment, and what was interrupted can be run again."""

    atomic = False
    dependencies = [
        ("engine", "0004_steering"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AddField(
                    model_name="waiter",
                    name="told_at",
                    field=models.DateTimeField(null=True),
                ),
            ],
            database_operations=[
                migrations.RunSQL(
                    "ALTER TABLE engine_waiter ADD COLUMN IF NOT EXISTS told_at timestamptz",
                    "ALTER TABLE engine_waiter DROP COLUMN IF EXISTS told_at",
                ),
            ],
        ),
        *(AddIndexUnlessThere(model_name=model, index=index) for model, index in INDEXES),
        *(AddCheck(model_name=model, constraint=constraint) for model, constraint in TIMES),
        migrations.RunSQL(AUDIT_IS_NOT_TRUNCATED[0], AUDIT_IS_NOT_TRUNCATED[1]),
        migrations.RunSQL(LOSE_ATTEMPTS_OF_PAUSED, migrations.RunSQL.noop),
    ]
