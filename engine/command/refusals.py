"""The output of a refused subcommand: a sentence for people, or JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from django.db import Error, OperationalError

from engine.status.json_text import Document, as_json
from engine.values.errors import (
    InvalidParamsError,
    InvalidQueryError,
    InvalidValueError,
    LimitError,
    RepriseError,
    UnknownWorkflowError,
)
from engine.values.serialization import InvalidJSON


class RefusedElsewhereError(RepriseError):
    """A Studio elsewhere has refused a command, or it could not be asked.

    Do what the message says. Check REPRISE_URL and REPRISE_TOKEN if it is about the address or the token.
    """

    def __init__(
        self,
        type: str,
        message: str,
        errors: Sequence[Mapping[str, Any]] = (),
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self.type, self.errors, self.facts = type, list(errors), dict(facts or {})
        super().__init__(message)


def text(error: Exception, *, is_json: bool) -> str:
    return as_json({"error": document(error)}) if is_json else sentence(error)


def sentence(error: Exception) -> str:
    """Return the error as text, with each wrong field on its own line."""
    if isinstance(error, Error):
        return of_database(error)
    wrong = [f"  {one['path'] or 'as a whole'}: {one['message']}" for one in _wrong_fields(error)]
    return "\n".join((str(error).partition(": ")[0] + ":", *wrong)) if wrong else str(error)


def document(error: Exception) -> Document:
    message = of_database(error) if isinstance(error, Error) else str(error)
    name = error.type if isinstance(error, RefusedElsewhereError) else type(error).__name__
    found: Document = {"type": name, "message": message}
    if wrong := _wrong_fields(error):
        found["errors"] = wrong
    if isinstance(error, RefusedElsewhereError):
        found |= error.facts
    if isinstance(error, InvalidValueError):
        found |= {"path": error.path, "code": error.code}
    if isinstance(error, InvalidJSON):
        found |= {"line": error.line, "column": error.column}
    if isinstance(error, LimitError):
        found |= {"value": error.value, "limit": error.limit}
    if isinstance(error, UnknownWorkflowError):
        found["known"] = error.known
    return found


def _wrong_fields(error: Exception) -> Sequence[Mapping[str, Any]]:
    """Return what is wrong with params, a payload, an answer or a search."""
    if isinstance(error, RefusedElsewhereError):
        return error.errors if error.type in (InvalidParamsError.__name__, InvalidQueryError.__name__) else ()
    return error.errors if isinstance(error, InvalidParamsError | InvalidQueryError) else ()


def of_database(error: Error) -> str:
    """Return a sentence about a database error: its first line, or that the tables are missing."""
    said = (str(error).strip().splitlines() or [type(error).__name__])[0]
    if isinstance(error, OperationalError):
        return f"The database does not answer: {said}"
    return _lacking() or f"The database refuses: {said}"


def _lacking() -> str:
    from engine.status import schema  # needs the settings, which a command without a project lacks

    try:
        lacking = schema.missing()
    except psycopg.Error:
        return ""
    return schema.sentence(lacking) if lacking else ""
