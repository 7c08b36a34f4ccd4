"""Restarts that keep the idempotency keys of the generation before, or change the params."""

from __future__ import annotations

from pathlib import Path

from django.db import migrations, models

from engine.models.fields import JsonField

SQL = Path(__file__).parent


class Migration(migrations.Migration):
    dependencies = [("engine", "0002_search")]

    operations = [
        migrations.AddField("instance", "keys_from", models.IntegerField(null=True)),
        migrations.AddField("generation", "params", JsonField(null=True)),
        migrations.RunSQL(
            (SQL / "restart" / "params.sql").read_text(),
            "DROP FUNCTION engine_index_new_params() CASCADE;" + (SQL / "start" / "final.sql").read_text(),
        ),
    ]
