"""What Home and the lists ask of instances that wait or have failed, in indexes: reading each row took most of their time.

Not built concurrently: two supervisors that migrate at once would wait for each other. The indexes have only those that
wait or have failed; building both takes three seconds among a million instances.
"""

from __future__ import annotations

from django.db import migrations
from django.db.models import Index, Q


class Migration(migrations.Migration):
    dependencies = (("engine", "0012_bulk"),)

    operations = (
        migrations.AddIndex(
            "instance",
            # What waits for what, newest first: counts and lists, and retries, which need attention.
            Index(
                fields=["workflow", "waiting_for", "-key"],
                condition=Q(status="waiting"),
                include=["fingerprint", "started_by", "wake_at"],
                name="engine_instance_waiting",
            ),
        ),
        # It had those that wait for a retry.
        migrations.RemoveIndex("instance", "engine_instance_retrying"),
        # It did not have the groups of failures, nor whose they are.
        migrations.RemoveIndex("instance", "engine_instance_failed"),
        migrations.AddIndex(
            "instance",
            Index(
                fields=["workflow", "-finished_at"],
                condition=Q(status="errored"),
                include=["fingerprint", "started_by", "rollback", "key"],
                name="engine_instance_failed",
            ),
        ),
    )
