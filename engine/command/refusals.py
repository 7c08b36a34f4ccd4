"""The output of a refused subcommand: a sentence for people, or JSON for programs."""

from __future__ import annotations

import psycopg
from django.db import Error, OperationalError

from engine.command.output import Document
from engine.command.subcommand import as_json
from engine.status import schema
from engine.values.errors import InvalidParamsError, InvalidValueError, LimitError, UnknownWorkflowError
from engine.values.serialization import InvalidJSON


def text(error: Exception, *, is_json: bool) -> str:
    return as_json({"error": document(error)}) if is_json else sentence(error)


def sentence(error: Exception) -> str:
    """Return the error as text, with each wrong field on its own line."""
    if isinstance(error, Error):
        return of_database(error)
    if not isinstance(error, InvalidParamsError):
        return str(error)
    wrong = (f"  {one['path'] or 'as a whole'}: {one['message']}" for one in error.errors)
    return "\n".join((str(error).partition(": ")[0] + ":", *wrong))


def document(error: Exception) -> Document:
    message = of_database(error) if isinstance(error, Error) else str(error)
    found: Document = {"type": type(error).__name__, "message": message}
    if isinstance(error, InvalidParamsError):
        found["errors"] = error.errors
    if isinstance(error, InvalidValueError):
        found |= {"path": error.path, "code": error.code}
    if isinstance(error, InvalidJSON):
        found |= {"line": error.line, "column": error.column}
    if isinstance(error, LimitError):
        found |= {"value": error.value, "limit": error.limit}
    if isinstance(error, UnknownWorkflowError):
        found["known"] = error.known
    return found


def of_database(error: Error) -> str:
    """Return a sentence about a database error: its first line, or that the tables are missing."""
    said = (str(error).strip().splitlines() or [type(error).__name__])[0]
    if isinstance(error, OperationalError):
        return f"The database does not answer: {said}"
    return _lacking() or f"The database refuses: {said}"


def _lacking() -> str:
    try:
        lacking = schema.missing()
    except psycopg.Error:
        return ""
    return schema.sentence(lacking) if lacking else ""
