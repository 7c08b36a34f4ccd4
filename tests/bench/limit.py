"""What the machine's PostgreSQL can commit at all, by its own measure: pgbench."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import psycopg

from studio.embedded import DATABASE, USER, EmbeddedServer, socket_dir
from tests.bench.figures import Limit

TABLE = "CREATE TABLE bench_limit (id bigserial PRIMARY KEY, value jsonb, at timestamptz DEFAULT now())"
INSERT = "INSERT INTO bench_limit (value) VALUES ('{\"i\": 1}');\n"
TIMEOUT = 120


def measure(server: EmbeddedServer, length: str) -> Limit:
    """Insert one row a transaction, with one client and with eight; `length` is pgbench's option."""
    script = server.home / "insert.sql"
    script.write_text(INSERT)
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute(TABLE)
        try:
            return Limit(_commits(server, script, 1, length), _commits(server, script, 8, length))
        finally:
            connection.execute("DROP TABLE bench_limit")


def _commits(server: EmbeddedServer, script: Path, clients: int, length: str) -> float:
    assert server.place is not None
    command = [str(server.place.programs / "pgbench"), "-n", "-f", str(script)]
    command += ["-h", str(socket_dir(server.home)), "-U", USER, *length.split()]
    command += ["-c", str(clients), "-j", str(min(clients, 2)), DATABASE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    found = re.search(r"^tps = ([\d.]+)", done.stdout, re.MULTILINE)
    if found is None:
        raise RuntimeError(f"pgbench said nothing of its rate:\n{done.stdout}{done.stderr}")
    return float(found[1])
