"""Look at what is to be backed up, before anything is done."""

from __future__ import annotations

from pydantic import BaseModel

from engine import NonRetryableError, StepContext
from studio.demo.backup.connection import connect, environment, hopeless_is_final, one_row, own_database
from studio.demo.backup.programs import find

FACTS = """
    SELECT current_setting('server_version'), current_setting('server_version_num')::int / 10000,
           (SELECT pg_database_size(oid) FROM pg_database WHERE datname = %s AND datallowconn)
"""


class Source(BaseModel):
    """A database that can be backed up from here."""

    database: str
    server_version: str
    major: int
    bytes: int


async def inspect(database: str | None, ctx: StepContext) -> Source:
    """Check that the database exists and that programs of the server's version are at hand."""
    name = database or own_database()
    connection = await connect(own_database())
    async with connection:
        with hopeless_is_final():
            version, major, size = await one_row(connection, FACTS, name)
    if size is None:
        raise NonRetryableError(
            f'The server has no database "{name}" that takes connections. Name another one in the parameter '
            '"database", or leave it out for Reprise\'s own.'
        )
    programs = await find(major, environment(name))
    ctx.log.info("programs found", folder=str(programs.folder), version=major)
    return Source(database=name, server_version=version, major=major, bytes=size)
