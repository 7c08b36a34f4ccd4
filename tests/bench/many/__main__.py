"""Fill a database with a large installation: instances of 14 workflows, with steps, attempts, errors and events.

The database is that of DATABASE_URL, or the embedded one of REPRISE_HOME, which is started for this. The rows are such
as the engine writes: `python manage.py verify` finds nothing wrong. By default 1,000,000 instances and 10,000,000
steps, which take some minutes and about 10 GB.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.bench.many.filling import NotEmptyError, fill
from tests.bench.many.place import opened
from tests.bench.many.shop import SHORTEST, Size

# The counts are estimates that VACUUM has made.
ROWS = """
SELECT relname, reltuples::bigint, pg_size_pretty(pg_total_relation_size(oid)) FROM pg_class
WHERE relkind = 'r' AND starts_with(relname, 'engine_') AND reltuples > 0
ORDER BY pg_total_relation_size(oid) DESC
"""


def main() -> int:
    """Return 0, or 1 for a database that has instances."""
    chosen = _arguments()
    size = Size(chosen.instances, chosen.steps_each, chosen.errors, chosen.seed)
    now = chosen.now or time.time_ns() // 1000
    with opened():
        import psycopg

        from engine.models import connection

        with psycopg.connect(**connection.parameters()) as link:
            try:
                fill(link, size, now, _tell, adds=chosen.add)
            except NotEmptyError:
                print("The database has instances. Give --add to add to them.", file=sys.stderr)
                return 1
            for table, rows, space in link.execute(ROWS):
                print(f"{table:22}{rows:>12,} rows, about {space:>10}")
            (whole,) = link.execute(
                "SELECT pg_size_pretty(pg_database_size(current_database()))"
            ).fetchone() or ("",)
            print(f"{'The database':22}{whole:>35}")
    return 0


def _arguments() -> argparse.Namespace:
    default = Size()
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.many", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("--instances", type=int, default=default.instances, metavar="N", help="how many (1,000,000)")
    add("--steps-each", type=int, default=default.steps_each, metavar="N", help="steps of an instance (10)")
    add("--errors", type=int, metavar="N", help="instances in which an attempt has failed (a fifth)")
    add("--seed", type=int, default=default.seed, help="another number makes other rows (4711)")
    add(
        "--now",
        type=int,
        metavar="US",
        help="end at this time, in microseconds since 1970, instead of the present",
    )
    add("--add", action="store_true", help="add to a database that has instances")
    chosen = parser.parse_args()
    chosen.errors = chosen.instances // 5 if chosen.errors is None else chosen.errors
    if chosen.instances < 1 or chosen.steps_each < SHORTEST or not 0 <= chosen.errors <= chosen.instances:
        parser.error(f"at least 1 instance, {SHORTEST} steps each, and no more errors than instances")
    return chosen


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
