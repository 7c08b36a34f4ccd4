"""Notes on groups of failures: found in the audit trail by the group."""

from __future__ import annotations

from django.db import migrations
from django.db.models import Index, Q, TextField
from django.db.models.expressions import RawSQL


class Migration(migrations.Migration):
    dependencies = (("engine", "0009_holds"),)

    operations = (
        migrations.AddIndex(
            "audit",
            Index(
                RawSQL("(data ->> 'error')", (), output_field=TextField()),
                "key",
                condition=Q(verb__in=["error-note", "error-resolve", "error-ignore", "error-reopen"]),
                name="engine_audit_error",
            ),
        ),
    )
