import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import engine.models.fields
import engine.values.states
from engine.migrations._sql import STATEMENTS


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Worker",
            fields=[
                ("key", models.BigAutoField(primary_key=True, serialize=False)),
                ("role", models.CharField(max_length=8)),
                ("name", models.CharField(max_length=100)),
                ("seat", models.IntegerField(unique=True)),
                (
                    "workflows",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64), size=None
                    ),
                ),
                ("slots", models.IntegerField()),
                ("held", models.IntegerField(db_default=0, default=0)),
                ("started_at", models.DateTimeField()),
                ("seen_at", models.DateTimeField()),
            ],
            options={
                "db_table": "engine_worker",
            },
        ),
        migrations.CreateModel(
            name="Audit",
            fields=[
                ("key", models.BigAutoField(primary_key=True, serialize=False)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("verb", models.CharField(max_length=32)),
                ("actor", models.CharField(blank=True, default="", max_length=150)),
                ("user_key", models.CharField(blank=True, default="", max_length=64)),
                ("workflow", models.CharField(max_length=64)),
                ("instance_id", models.CharField(max_length=100)),
                ("instance_key", models.BigIntegerField(null=True)),
                ("before", models.CharField(blank=True, default="", max_length=20)),
                ("after", models.CharField(blank=True, default="", max_length=20)),
                ("outcome", models.CharField(default="done", max_length=8)),
                ("reason", models.TextField(blank=True, default="")),
                ("data", engine.models.fields.JsonField(null=True)),
            ],
            options={
                "db_table": "engine_audit",
                "indexes": [models.Index(fields=["instance_key", "key"], name="engine_audit_instance")],
            },
        ),
        migrations.CreateModel(
            name="Instance",
            fields=[
                ("key", models.BigAutoField(primary_key=True, serialize=False)),
                ("workflow", models.CharField(max_length=64)),
                ("id", models.CharField(max_length=100)),
                ("generation", models.IntegerField(db_default=1, default=1)),
                (
                    "status",
                    models.CharField(default=engine.values.states.InstanceStatus["QUEUED"], max_length=20),
                ),
                ("waiting_for", models.CharField(blank=True, db_default="", default="", max_length=8)),
                ("rollback", models.CharField(blank=True, db_default="", default="", max_length=8)),
                ("params", engine.models.fields.JsonField()),
                ("output", engine.models.fields.JsonField(null=True)),
                ("error", engine.models.fields.JsonField(null=True)),
                (
                    "unreached",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(), db_default=[], default=list, size=None
                    ),
                ),
                (
                    "tags",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=100), db_default=[], default=list, size=None
                    ),
                ),
                ("started_by", models.CharField(blank=True, db_default="", default="", max_length=150)),
                ("code", models.CharField(blank=True, db_default="", default="", max_length=64)),
                ("wake_at", models.DateTimeField(null=True)),
                ("deadline_at", models.DateTimeField(null=True)),
                ("owner", models.IntegerField(null=True)),
                ("fence", models.BigIntegerField(db_default=0, default=0)),
                ("signals", models.BigIntegerField(db_default=0, default=0)),
                ("isolated", models.BooleanField(db_default=False, default=False)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("started_at", models.DateTimeField(null=True)),
                ("paused_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "engine_instance",
                "indexes": [
                    models.Index(
                        condition=models.Q(("owner__isnull", True), ("wake_at__isnull", False)),
                        fields=["workflow", "wake_at"],
                        name="engine_instance_due",
                    ),
                    models.Index(
                        condition=models.Q(("owner__isnull", False)),
                        fields=["owner"],
                        name="engine_instance_owned",
                    ),
                    models.Index(
                        condition=models.Q(("isolated", True), ("owner__isnull", True)),
                        fields=["workflow", "wake_at"],
                        name="engine_instance_isolated",
                    ),
                    models.Index(fields=["workflow", "status", "-key"], name="engine_instance_list"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("workflow", "id"), name="engine_instance_id"),
                    models.CheckConstraint(
                        condition=models.Q(("id__regex", "^[A-Za-z0-9_][A-Za-z0-9_-]{0,99}$")),
                        name="engine_instance_id_form",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "status__in",
                                [
                                    "queued",
                                    "running",
                                    "waiting",
                                    "waiting_for_pause",
                                    "paused",
                                    "complete",
                                    "errored",
                                    "terminated",
                                ],
                            )
                        ),
                        name="engine_instance_status",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("rollback__in", ["", "running", "complete", "failed"])),
                        name="engine_instance_rollback",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("status", "waiting"),
                                ("waiting_for__in", ["sleep", "event", "retry", "child"]),
                            ),
                            models.Q(models.Q(("status", "waiting"), _negated=True), ("waiting_for", "")),
                            _connector="OR",
                        ),
                        name="engine_instance_waiting_says_for_what",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("status", "waiting"), ("waiting_for__in", ["sleep", "retry"]), _negated=True
                            ),
                            ("wake_at__isnull", False),
                            _connector="OR",
                        ),
                        name="engine_instance_sleeper_has_wake_up",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("owner__isnull", True), ("wake_at__isnull", False), _connector="OR"
                        ),
                        name="engine_instance_owner_has_lease",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("owner__isnull", False), ("status__in", ["running", "waiting_for_pause"])
                            ),
                            models.Q(
                                models.Q(("status__in", ["running", "waiting_for_pause"]), _negated=True),
                                ("owner__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="engine_instance_running_has_owner",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("status", "paused"), _negated=True),
                            models.Q(("paused_at__isnull", False), ("wake_at__isnull", True)),
                            _connector="OR",
                        ),
                        name="engine_instance_paused_is_still",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("finished_at__isnull", False),
                                ("status__in", ["complete", "errored", "terminated"]),
                                ("wake_at__isnull", True),
                            ),
                            models.Q(
                                models.Q(
                                    ("status__in", ["complete", "errored", "terminated"]), _negated=True
                                ),
                                ("finished_at__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="engine_instance_finished_is_still",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("wake_at__isnull", True),
                            models.Q(
                                ("wake_at__gte", "1970-01-01T00:00:00Z"),
                                ("wake_at__lt", "9999-12-31T00:00:00Z"),
                            ),
                            _connector="OR",
                        ),
                        name="engine_instance_wake_at_readable",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Generation",
            fields=[
                ("key", models.BigAutoField(primary_key=True, serialize=False)),
                ("number", models.IntegerField()),
                ("status", models.CharField(max_length=20)),
                ("output", engine.models.fields.JsonField(null=True)),
                ("error", engine.models.fields.JsonField(null=True)),
                ("rollback", models.CharField(blank=True, db_default="", default="", max_length=8)),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "instance",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="generations",
                        to="engine.instance",
                    ),
                ),
            ],
            options={
                "db_table": "engine_generation",
                "constraints": [
                    models.UniqueConstraint(fields=("instance", "number"), name="engine_generation_number")
                ],
            },
        ),
        migrations.CreateModel(
            name="Event",
            fields=[
                ("key", models.BigAutoField(primary_key=True, serialize=False)),
                ("type", models.CharField(max_length=100)),
                ("payload", engine.models.fields.JsonField()),
                ("dedup_key", models.CharField(max_length=255, null=True)),
                ("sent_by", models.CharField(blank=True, db_default="", default="", max_length=150)),
                ("received_at", models.DateTimeField()),
                ("state", models.CharField(db_default="buffered", default="buffered", max_length=8)),
                ("consumed_generation", models.IntegerField(null=True)),
                ("consumed_by", models.IntegerField(null=True)),
                (
                    "instance",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="engine.instance",
                    ),
                ),
            ],
            options={
                "db_table": "engine_event",
                "indexes": [models.Index(fields=["instance", "key"], name="engine_event_order")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("dedup_key__isnull", False)),
                        fields=("instance", "dedup_key"),
                        name="engine_event_dedup",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("consumed_by__isnull", False),
                                ("consumed_generation__isnull", False),
                                ("state", "consumed"),
                            ),
                            models.Q(("consumed_by__isnull", True), ("state__in", ["buffered", "dropped"])),
                            _connector="OR",
                        ),
                        name="engine_event_state",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("state", "consumed")),
                        fields=("instance", "consumed_generation", "consumed_by"),
                        name="engine_event_one_per_wait",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Attempt",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "instance_id",
                        "generation",
                        "step_seq",
                        "phase",
                        "number",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("generation", models.IntegerField()),
                ("step_seq", models.IntegerField()),
                ("phase", models.CharField(db_default="do", default="do", max_length=8)),
                ("number", models.IntegerField()),
                ("status", models.CharField(max_length=9)),
                ("worker", models.CharField(blank=True, db_default="", default="", max_length=100)),
                ("alone", models.BooleanField(db_default=False, default=False)),
                ("error", engine.models.fields.JsonField(null=True)),
                ("started_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "instance",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attempts",
                        to="engine.instance",
                    ),
                ),
            ],
            options={
                "db_table": "engine_attempt",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "status__in",
                                ["running", "complete", "errored", "timed_out", "lost", "cancelled"],
                            )
                        ),
                        name="engine_attempt_status",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("phase__in", ["do", "rollback"])), name="engine_attempt_phase"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("finished_at__isnull", True), ("status", "running")),
                            models.Q(
                                models.Q(("status", "running"), _negated=True), ("finished_at__isnull", False)
                            ),
                            _connector="OR",
                        ),
                        name="engine_attempt_finished",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Log",
            fields=[
                ("key", models.BigAutoField(primary_key=True, serialize=False)),
                ("generation", models.IntegerField()),
                ("position", models.IntegerField(null=True)),
                ("step_seq", models.IntegerField(null=True)),
                ("attempt", models.IntegerField(null=True)),
                ("level", models.CharField(max_length=8)),
                ("message", models.TextField()),
                ("fields", engine.models.fields.JsonField(null=True)),
                ("at", models.DateTimeField()),
                (
                    "instance",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="logs",
                        to="engine.instance",
                    ),
                ),
            ],
            options={
                "db_table": "engine_log",
                "indexes": [models.Index(fields=["instance", "key"], name="engine_log_order")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("position__isnull", False)),
                        fields=("instance", "generation", "position"),
                        name="engine_log_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Step",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "instance_id",
                        "generation",
                        "seq",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("generation", models.IntegerField()),
                ("seq", models.IntegerField()),
                ("parent", models.IntegerField(db_default=0, default=0)),
                ("kind", models.CharField(max_length=8)),
                ("name", models.CharField(max_length=256)),
                ("count", models.IntegerField()),
                ("status", models.CharField(max_length=9)),
                ("delivery", models.IntegerField(null=True)),
                ("options", engine.models.fields.JsonField(null=True)),
                ("sensitive", models.BooleanField(db_default=False, default=False)),
                ("attempts", models.IntegerField(db_default=0, default=0)),
                ("lost", models.IntegerField(db_default=0, default=0)),
                (
                    "event_types",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=100), null=True, size=None
                    ),
                ),
                ("wake_at", models.DateTimeField(null=True)),
                ("wake_is_fixed", models.BooleanField(db_default=False, default=False)),
                ("output", engine.models.fields.JsonField(null=True)),
                ("error", engine.models.fields.JsonField(null=True)),
                ("rollback", models.CharField(blank=True, db_default="", default="", max_length=8)),
                ("started_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "instance",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="steps",
                        to="engine.instance",
                    ),
                ),
            ],
            options={
                "db_table": "engine_step",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "kind__in",
                                ["do", "sleep", "event", "request", "child", "parallel", "map", "progress"],
                            )
                        ),
                        name="engine_step_kind",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("status__in", ["running", "waiting", "complete", "errored", "cancelled"])
                        ),
                        name="engine_step_status",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("finished_at__isnull", False),
                                ("status__in", ["complete", "errored", "cancelled"]),
                            ),
                            models.Q(
                                models.Q(("status__in", ["complete", "errored", "cancelled"]), _negated=True),
                                ("delivery__isnull", True),
                                ("finished_at__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="engine_step_finished_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("kind", "sleep"), ("status", "waiting"), _negated=True),
                            ("wake_at__isnull", False),
                            _connector="OR",
                        ),
                        name="engine_step_sleeper_has_wake_up",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("wake_at__isnull", True),
                            models.Q(
                                ("wake_at__gte", "1970-01-01T00:00:00Z"),
                                ("wake_at__lt", "9999-12-31T00:00:00Z"),
                            ),
                            _connector="OR",
                        ),
                        name="engine_step_wake_at_readable",
                    ),
                ],
            },
        ),
        *(migrations.RunSQL(statement, reverse_sql=reverse) for statement, reverse in STATEMENTS),
    ]
