from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.db import connections

from engine.declare.secrets import VERSION, keys_of_settings
from engine.values.serialization.envelope import KEY

MISSING = 1
ENVELOPE = rf'"\{KEY}"\s*:\s*"{VERSION}\.([0-9a-f]+)\.'
COUNT = """
WITH stored (value) AS (
    SELECT params::text FROM engine_instance
    UNION ALL SELECT output::text FROM engine_instance
    UNION ALL SELECT params::text FROM engine_generation
    UNION ALL SELECT output::text FROM engine_generation
    UNION ALL SELECT output::text FROM engine_step
    UNION ALL SELECT payload::text FROM engine_event
    UNION ALL SELECT params::text FROM engine_schedule
)
SELECT found.key[1], count(*) FROM stored, LATERAL regexp_matches(value, %(envelope)s, 'g') AS found (key)
WHERE value LIKE %(mark)s GROUP BY 1
"""


class Command(BaseCommand):
    help = (
        "Count the stored secrets by the key that each needs. A key that no secret needs may be removed from "
        'REPRISE["SECRET_KEYS"] and SECRET_KEY_FALLBACKS. Reads every instance, step and event once. '
        f"Exits with {MISSING} if a key is needed that the settings do not have."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--database", default="default", help="alias of the database (default)")
        parser.add_argument("--json", action="store_true", help="print JSON instead of a table")

    def handle(self, *args: Any, **options: Any) -> None:
        needed, known = count_by_key(options["database"]), keys_of_settings().ids
        rows = [_row(key, needed.get(key, 0), known) for key in [*known, *sorted(needed.keys() - {*known})]]
        if options["json"]:
            self.stdout.write(json.dumps(rows, indent=2))
        else:
            for row in rows:
                self.stdout.write(f"{row['key']}  {row['stored']:>9,}  {row['use']}")
        if any(row["use"] == "missing" for row in rows):
            raise SystemExit(MISSING)


def count_by_key(database: str = "default") -> dict[str, int]:
    """Count the stored secrets by the id of the key that they need."""
    with connections[database].cursor() as cursor:
        cursor.execute(COUNT, {"envelope": ENVELOPE, "mark": f'%"{KEY}"%'})
        return dict(cursor.fetchall())


def _row(key: str, stored: int, known: list[str]) -> dict[str, Any]:
    use = "missing" if key not in known else "decrypts" if key != known[0] else "encrypts and decrypts"
    return {"key": key, "stored": stored, "use": use}
