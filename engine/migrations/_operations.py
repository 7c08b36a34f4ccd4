"""Changes of large tables under load: no statement holds a lock for longer than a moment that stops others.

For migrations that are not atomic. Each operation does what is still to be done, so one that was interrupted is run
again from its beginning.
"""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations

_STATE_OF_INDEX = """
    SELECT i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE c.relname = %s AND pg_table_is_visible(c.oid)
"""


class AddIndexAgain(AddIndexConcurrently):
    """Add an index, unless an attempt that was interrupted has done it."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        self._ensure_not_in_transaction(schema_editor)
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(_STATE_OF_INDEX, [self.index.name])
            found = cursor.fetchone()
        if found == (True,):
            return
        if found is not None:  # the build was interrupted
            schema_editor.execute(f"DROP INDEX CONCURRENTLY {schema_editor.quote_name(self.index.name)}")
        super().database_forwards(app_label, schema_editor, from_state, to_state)


class AddIndexUnlessThere(AddIndexAgain):
    """Add an index that databases of earlier releases may have already. It stays where this is taken back."""

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """Leave it: the release before may have made it."""


class AddCheck(migrations.AddConstraint):
    """Add a CHECK: for what is written from now on, and then, beside all work, for the rows that are there."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        model = to_state.apps.get_model(app_label, self.model_name)
        table = schema_editor.quote_name(model._meta.db_table)
        name = schema_editor.quote_name(self.constraint.name)
        schema_editor.execute(f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name}")
        schema_editor.execute(f"{self.constraint.create_sql(model, schema_editor)} NOT VALID", params=None)
        schema_editor.execute(f"ALTER TABLE {table} VALIDATE CONSTRAINT {name}")
