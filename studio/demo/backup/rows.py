"""Count the rows of every table, and tell two counts apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import sql

# Tables with rows of their own. Those of an extension are its business: a dump holds `CREATE EXTENSION`, not them.
TABLES = """
    SELECT n.nspname, c.relname
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND c.relpersistence <> 't'
      AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
      AND NOT EXISTS (
          SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
      )
    ORDER BY n.nspname, c.relname
"""


async def count_rows(connection: psycopg.AsyncConnection[Any]) -> dict[str, int]:
    """Return the number of rows by table, as the connection's transaction sees them."""
    # A policy would hide rows from us: better an error.
    await connection.execute("SET row_security = off")
    tables = await (await connection.execute(TABLES)).fetchall()
    counts: dict[str, int] = {}
    for schema, table in tables:
        # ONLY: the rows of a child are counted with the child.
        query = sql.SQL("SELECT count(*) FROM ONLY {}").format(sql.Identifier(schema, table))
        row = await (await connection.execute(query)).fetchone()
        counts[f"{schema}.{table}"] = row[0] if row else 0
    return counts


def differences(dumped: Mapping[str, int], restored: Mapping[str, int]) -> list[str]:
    """Say, table by table, where the copy is not like the original; empty when it is."""
    told = []
    for table in sorted(dumped.keys() | restored.keys()):
        before, after = dumped.get(table), restored.get(table)
        if after is None:
            told.append(f"{table} is missing from the copy")
        elif before is None:
            told.append(f"{table} is in the copy only")
        elif before != after:
            told.append(f"{table} has {before:,} rows, and {after:,} in the copy")
    return told
