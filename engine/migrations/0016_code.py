"""The source of the versions of workflows' code. Workers of the version before write none: theirs is not known."""

from __future__ import annotations

from django.db import migrations, models

from engine.models.fields import times


class Migration(migrations.Migration):
    dependencies = (("engine", "0015_start_later"),)

    operations = (
        migrations.CreateModel(
            name="CodeVersion",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "workflow", "code", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("workflow", models.CharField(max_length=64)),
                ("code", models.CharField(max_length=64)),
                ("file", models.TextField()),
                ("function", models.TextField()),
                ("line", models.IntegerField()),
                ("text", models.TextField(null=True)),
                ("first_seen_at", models.DateTimeField()),
                ("last_seen_at", models.DateTimeField()),
            ],
            options={
                "db_table": "engine_code",
                "constraints": [times("engine_code", "first_seen_at", "last_seen_at")],
            },
        ),
    )
