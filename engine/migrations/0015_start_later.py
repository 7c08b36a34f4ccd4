"""When an instance is due for the first time, if it was started for later. NULL in all that there are: they were due at once.

Programs and workers of the version before go on while this one is put in their place: they never name the column.
"""

from __future__ import annotations

from django.db import migrations, models

from engine.models.fields import times


class Migration(migrations.Migration):
    dependencies = (("engine", "0014_cheaper_counts"),)

    operations = (
        migrations.AddField("instance", "starts_at", models.DateTimeField(null=True)),
        migrations.AddConstraint("instance", times("engine_instance_start", "starts_at")),
    )
