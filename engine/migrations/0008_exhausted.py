"""Steps that pause their instance when their attempts are used up, until a person decides what follows."""

from __future__ import annotations

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent


class Migration(migrations.Migration):
    dependencies = [("engine", "0007_workers")]

    operations = [
        migrations.RunSQL(
            (SQL / "exhausted" / "final.sql").read_text(),
            (SQL / "start" / "final.sql").read_text() + (SQL / "restart" / "params.sql").read_text(),
        ),
    ]
