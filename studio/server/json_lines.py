"""The log as JSON: one object a line, for programs that collect logs."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

from studio.server.log_lines import NO_REQUEST, request_id

# What the logging module and Django put into every record; the rest was passed as `extra`.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "request_id", "taskName"}
# Objects of Django's that say nothing more than the message.
_OBJECTS = frozenset({"request", "server_time"})


class JsonFormatter(logging.Formatter):
    """Format a record as one line of JSON in ASCII.

    The keys are `time` (UTC), `level`, `logger`, `message` and `process`; where there is one, `request_id`, `instance`
    (its workflow and id), `exception` and `stack`; and whatever was passed as `extra`, such as `workflow` and `step`.
    """

    def format(self, record: logging.LogRecord) -> str:
        document = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
            **_request(record),
            **_instance(record),
            **self._failure(record),
        }
        taken = _STANDARD | _OBJECTS | document.keys()
        return as_line(document | {name: value for name, value in vars(record).items() if name not in taken})

    def _failure(self, record: logging.LogRecord) -> dict[str, str]:
        said = {}
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            said["exception"] = record.exc_text
        if record.stack_info:
            said["stack"] = self.formatStack(record.stack_info)
        return said


def as_line(document: dict[str, Any]) -> str:
    """Return one line of JSON, whatever the values are."""
    try:
        return json.dumps(document, default=_plain, allow_nan=False)
    except (TypeError, ValueError):  # a key that is not text, NaN, or a value that contains itself
        return json.dumps({name: _text(value) for name, value in document.items()})


def _request(record: logging.LogRecord) -> dict[str, str]:
    found = getattr(record, "request_id", None) or request_id.get()
    return {} if found == NO_REQUEST else {"request_id": str(found)}


def _instance(record: logging.LogRecord) -> dict[str, str]:
    workflow, name = getattr(record, "workflow", None), getattr(record, "instance_id", None)
    return {"instance": f"{workflow}/{name}"} if workflow and name else {}


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else _text(value)


def _text(value: object) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a user's __str__
        return f"(a {type(value).__qualname__})"
