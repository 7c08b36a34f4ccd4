"""Bulk jobs that start instances: what is to be started is in the item, and its instance comes later.

Two changes of the catalog, which read and write no row. Undone, items whose instances were never started have the key 0,
which no instance has.
"""

from __future__ import annotations

from django.db import migrations, models

from engine.models.fields import JsonText


class Migration(migrations.Migration):
    dependencies = (("engine", "0017_charts"),)

    operations = (
        migrations.AlterField(
            model_name="bulkitem", name="instance_key", field=models.BigIntegerField(null=True)
        ),
        migrations.AddField(model_name="bulkitem", name="new", field=JsonText(null=True)),
        migrations.RunSQL(
            migrations.RunSQL.noop, "UPDATE engine_bulk_item SET instance_key = 0 WHERE instance_key IS NULL"
        ),
    )
