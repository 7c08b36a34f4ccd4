from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState
from django.db.models import Q
from django.db.models.functions import Collate, Lower

IS_VALID = """
SELECT indisvalid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE relname = %s AND relnamespace = current_schema()::regnamespace
"""


class AddIndexAgain(AddIndexConcurrently):
    """Build an index while the table is in use. It can be run again after an attempt that was cut off.

    Outside a transaction nothing takes back what such an attempt has left: indexes that are finished, and one that is
    not valid, which would be written and never read.
    """

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(IS_VALID, [self.index.name])
            found = cursor.fetchone()
        if found == (True,):
            return
        if found is not None:
            schema_editor.execute(f"DROP INDEX CONCURRENTLY {schema_editor.quote_name(self.index.name)}")
        super().database_forwards(app_label, schema_editor, from_state, to_state)


class Migration(migrations.Migration):
    atomic = False  # so that the table can be written meanwhile

    dependencies = [("engine", "0005_safe_times")]

    operations = [
        AddIndexAgain(
            model_name="instance",
            index=models.Index(Collate(Lower("id"), "C"), name="engine_instance_id_start"),
        ),
        AddIndexAgain(
            model_name="instance",
            index=models.Index(
                fields=["workflow", "-finished_at"],
                condition=Q(status="errored"),
                name="engine_instance_failed",
            ),
        ),
        AddIndexAgain(
            model_name="instance",
            index=models.Index(
                fields=["workflow", "-key"],
                condition=Q(status="waiting", waiting_for="retry"),
                name="engine_instance_retrying",
            ),
        ),
        AddIndexAgain(
            model_name="instance",
            index=models.Index(
                fields=["workflow", "-key"],
                condition=Q(status="paused", error__isnull=False),
                name="engine_instance_paused",
            ),
        ),
    ]
