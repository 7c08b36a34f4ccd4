"""Scratch databases: copies made from a dump to see whether it is any good, and dropped again."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import suppress
from typing import Any

import psycopg
from django.db import connection as django_connection
from psycopg import sql
from pydantic import BaseModel

from engine import StepContext
from studio.demo import processes
from studio.demo.backup import shelf
from studio.demo.backup.connection import connect, environment, hopeless_is_final, one_row, own_database
from studio.demo.backup.dump import Dump
from studio.demo.backup.programs import find
from studio.demo.backup.rows import count_rows
from studio.demo.backup.source import Source
from studio.demo.finished import finished

PREFIX = "reprise_scratch_"

# Each scratch database says whose it is, so that what a terminated instance left can be found.
LEFT = """
    SELECT datname, shobj_description(oid, 'pg_database') FROM pg_database WHERE datname LIKE %s
"""


LOCALE = """
    SELECT pg_encoding_to_char(encoding), datcollate, datctype, datlocprovider::text, datlocale
    FROM pg_database WHERE datname = %s
"""
LOCALE_BEFORE_17 = LOCALE.replace("datlocale", "daticulocale")


class Copy(BaseModel):
    """A scratch database that was restored from a dump."""

    database: str


async def restore(source: Source, folder: str, dump: Dump, ctx: StepContext) -> Copy:
    """Restore the dump into a new scratch database, all or nothing.

    Each attempt has a database of its own, for the same reason as each dump has its file.
    """
    path = shelf.find(folder, ctx.instance_id, dump.file)
    programs = await find(source.major, environment(source.database))
    name = f"{_prefix(ctx.instance_id)}{ctx.attempt}"
    arguments = ["--exit-on-error", "--single-transaction", "--no-password", f"--dbname={name}"]
    # Who owns what and who may do what is of no interest in a copy that lives a minute; a subscription would begin
    # to fetch data from elsewhere.
    arguments += [
        "--no-owner",
        "--no-privileges",
        "--no-comments",
        "--no-security-labels",
        "--no-tablespaces",
    ]
    arguments += ["--no-publications", "--no-subscriptions", str(path)]
    try:
        with hopeless_is_final():
            await _create(name, source, ctx.instance_id)
            ctx.log.info("scratch database created", database=name)
            await processes.run(programs.restore, arguments, environment=environment(name))
    except BaseException:
        # What cannot be dropped now is dropped by the step that follows; the error is the story here.
        with suppress(psycopg.Error, OSError):
            await asyncio.wait_for(_drop(name), timeout=10)
        raise
    return Copy(database=name)


async def count(copy: Copy) -> dict[str, int]:
    """Count the rows of the copy, table by table."""
    connection = await connect(copy.database)
    async with connection:
        return await count_rows(connection)


async def drop(ctx: StepContext) -> list[str]:
    """Drop every scratch database of this instance, those of failed and killed attempts, too; return their names."""
    connection = await connect(own_database())
    async with connection:
        like = _prefix(ctx.instance_id).replace("_", r"\_") + "%"
        names = [row[0] for row in await (await connection.execute(LEFT, [like])).fetchall()]
        for name in names:
            await connection.execute(_drop_statement(name))
    return names


def drop_left_behind(workflow: str) -> list[str]:
    """Drop the scratch databases of instances that have ended without doing so: they were terminated."""
    ours = mark("")
    with django_connection.cursor() as cursor:
        cursor.execute(LEFT, [PREFIX.replace("_", r"\_") + "%"])
        owners = {
            name: said.removeprefix(ours) for name, said in cursor.fetchall() if (said or "").startswith(ours)
        }
        ended = finished(workflow, owners.values())
        names = sorted(name for name, owner in owners.items() if owner in ended)
        for name in names:
            cursor.execute(_drop_statement(name))
    return names


def mark(instance_id: str) -> str:
    """Return the comment on a scratch database that says whose it is."""
    return f"Scratch copy of Reprise in {own_database()}, instance {instance_id}"


async def _create(name: str, source: Source, instance_id: str) -> None:
    connection = await connect(own_database())
    async with connection:
        await connection.execute(_drop_statement(name))
        options = await _locale(connection, source)
        await connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE template0 {}").format(sql.Identifier(name), options)
        )
        await connection.execute(
            sql.SQL("COMMENT ON DATABASE {} IS {}").format(
                sql.Identifier(name), sql.Literal(mark(instance_id))
            )
        )


async def _locale(connection: psycopg.AsyncConnection[Any], source: Source) -> sql.Composed:
    """Say the encoding and locale of the original, without which its texts may not fit or be unique no more."""
    query = LOCALE if source.major >= 17 else LOCALE_BEFORE_17
    encoding, collate, ctype, provider, locale = await one_row(connection, query, source.database)
    named: dict[str, str] = {"ENCODING": encoding, "LC_COLLATE": collate, "LC_CTYPE": ctype}
    named["LOCALE_PROVIDER"] = {"b": "builtin", "i": "icu"}.get(provider, "libc")
    if provider in ("b", "i"):
        named["BUILTIN_LOCALE" if provider == "b" else "ICU_LOCALE"] = locale
    return sql.SQL(" ").join(
        sql.SQL("{} {}").format(sql.SQL(key), sql.Literal(value)) for key, value in named.items()
    )


async def _drop(name: str) -> None:
    connection = await connect(own_database())
    async with connection:
        await connection.execute(_drop_statement(name))


def _drop_statement(name: str) -> sql.Composed:
    # FORCE: a pg_restore of a dead worker may be on its way in it.
    return sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))


def _prefix(instance_id: str) -> str:
    """Begin the names of an instance's scratch databases; another Reprise on the same server gets others."""
    digest = hashlib.sha256(f"{own_database()}/{instance_id}".encode()).hexdigest()
    return f"{PREFIX}{digest[:16]}_"
