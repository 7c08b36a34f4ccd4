"""Restarts that keep the idempotency keys of the generation before."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("engine", "0001_start")]

    operations = [
        migrations.AddField("instance", "keys_from", models.IntegerField(null=True)),
    ]
