"""What waiting instances wait for, in an index: counting them read each of their rows.

Not built concurrently: two supervisors that migrate at once would wait for each other. It has only those that wait, which
takes a second or two among a million instances.
"""

from __future__ import annotations

from django.db import migrations
from django.db.models import Index, Q


class Migration(migrations.Migration):
    dependencies = (("engine", "0012_bulk"),)

    operations = (
        migrations.AddIndex(
            "instance",
            # What waits for what, newest first: the counts, the lists and, of those that wait for a retry, what needs
            # attention.
            Index(
                fields=["workflow", "waiting_for", "-key"],
                condition=Q(status="waiting"),
                name="engine_instance_waiting",
            ),
        ),
        # It had a part of them.
        migrations.RemoveIndex("instance", "engine_instance_retrying"),
    )
