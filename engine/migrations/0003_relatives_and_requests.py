import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

from engine.migrations._sql import CHANGES_OF_0003


class Migration(migrations.Migration):
    dependencies = [
        ("engine", "0002_event_buffered"),
    ]

    operations = [
        migrations.CreateModel(
            name="OpenRequest",
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
                (
                    "instance",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="open_requests",
                        to="engine.instance",
                    ),
                ),
                ("generation", models.IntegerField()),
                ("seq", models.IntegerField()),
                ("opened_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField(null=True)),
                (
                    "assignees",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=200), default=list, size=None
                    ),
                ),
            ],
            options={
                "db_table": "engine_open_request",
            },
        ),
        migrations.CreateModel(
            name="Waiter",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "waiter_id",
                        "generation",
                        "seq",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "waiter",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="engine.instance",
                    ),
                ),
                ("generation", models.IntegerField()),
                ("seq", models.IntegerField()),
                (
                    "instance",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="waiters",
                        to="engine.instance",
                    ),
                ),
            ],
            options={
                "db_table": "engine_waiter",
            },
        ),
        migrations.AddField(
            model_name="instance",
            name="depth",
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="instance",
            name="ends_as",
            field=models.CharField(blank=True, db_default="", default="", max_length=10),
        ),
        migrations.AddField(
            model_name="instance",
            name="is_tied",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="instance",
            name="owes",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="instance",
            name="parent_generation",
            field=models.IntegerField(null=True),
        ),
        migrations.AddField(
            model_name="instance",
            name="parent_key",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="instance",
            name="parent_step",
            field=models.IntegerField(null=True),
        ),
        migrations.AddIndex(
            model_name="waiter",
            index=models.Index(fields=["instance"], name="engine_waiter_instance"),
        ),
        *(migrations.RunSQL(statement, reverse_sql=reverse) for statement, reverse in CHANGES_OF_0003),
    ]
