from django.db import migrations, models
from django.db.models import Q

from engine.migrations._operations import AddIndexAgain
from engine.migrations._pause_reason import (
    COLUMNS,
    MOVE_OF_GENERATIONS,
    MOVE_OF_PAUSED,
    MOVE_OF_TERMINATED,
    WRITES_OF_EARLIER_RELEASES,
)
from engine.models.fields import JsonField


class Migration(migrations.Migration):
    """Workers of the release before go on meanwhile and after it; what was interrupted can be run again."""

    atomic = False
    dependencies = [("engine", "0009_notices_of_others")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AddField("instance", "pause_reason", JsonField(null=True)),
                migrations.AddField("generation", "pause_reason", JsonField(null=True)),
            ],
            database_operations=[migrations.RunSQL(*COLUMNS)],
        ),
        # First what moves new ones: none that is paused meanwhile is missed.
        migrations.RunSQL(*WRITES_OF_EARLIER_RELEASES),
        migrations.RunSQL(*MOVE_OF_PAUSED),
        migrations.RunSQL(*MOVE_OF_TERMINATED),
        migrations.RunSQL(*MOVE_OF_GENERATIONS),
        AddIndexAgain(
            model_name="instance",
            index=models.Index(
                fields=["workflow", "-key"],
                condition=Q(status="paused", pause_reason__isnull=False),
                name="engine_instance_pause_reason",
            ),
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.RemoveIndex("instance", "engine_instance_paused")],
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS engine_instance_paused",
                    """
                    CREATE INDEX CONCURRENTLY IF NOT EXISTS engine_instance_paused
                    ON engine_instance (workflow, key DESC) WHERE status = 'paused' AND error IS NOT NULL
                    """,
                )
            ],
        ),
    ]
