from django.db import migrations, models

from engine.migrations._notices import STATEMENTS
from engine.models.fields import times


class Migration(migrations.Migration):
    dependencies = [
        ("engine", "0006_attention_and_search"),
    ]

    operations = [
        migrations.CreateModel(
            name="Notice",
            fields=[
                ("key", models.BigAutoField(primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=20)),
                ("at", models.DateTimeField()),
                ("workflow", models.CharField(blank=True, db_default="", default="", max_length=64)),
                ("instance_id", models.CharField(blank=True, db_default="", default="", max_length=100)),
                ("instance_key", models.BigIntegerField(null=True)),
                ("generation", models.IntegerField(db_default=0, default=0)),
                ("step", models.TextField(blank=True, db_default="", default="")),
                ("count", models.IntegerField(db_default=1, default=1)),
                ("attempt", models.IntegerField(db_default=0, default=0)),
                ("phase", models.CharField(blank=True, db_default="", default="", max_length=8)),
                ("worker", models.CharField(blank=True, db_default="", default="", max_length=100)),
                ("error_type", models.TextField(blank=True, db_default="", default="")),
                ("error_message", models.TextField(blank=True, db_default="", default="")),
                ("reason", models.TextField(blank=True, db_default="", default="")),
                ("is_logged", models.BooleanField(db_default=False, default=False)),
                ("taken_until", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "engine_notice",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "kind__in",
                                [
                                    "instance_errored",
                                    "rollback_failed",
                                    "instance_paused",
                                    "attempt_lost",
                                    "worker_retired",
                                ],
                            )
                        ),
                        name="engine_notice_kind",
                    ),
                    times("engine_notice", "at", "taken_until"),
                ],
            },
        ),
        *(migrations.RunSQL(statement, reverse_sql=reverse) for statement, reverse in STATEMENTS),
    ]
