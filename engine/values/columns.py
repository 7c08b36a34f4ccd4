"""Columns of recorded rows. Each is declared once, at its field of the record that a cycle keeps in memory.

    @dataclass(slots=True)
    class StepRecord:
        status: Annotated[str, TEXT, CHANGES]
        wake_us: Annotated[int | None, TIME, CHANGES] = None

The column lists of the statements that write, read and copy such rows are generated from these declarations, and so
are the functions that turn a record into JSON and a row into a record. In memory, times are whole microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import Enum
from json.encoder import encode_basestring
from types import NoneType
from typing import Any, NamedTuple, TypeVar, get_args, get_type_hints

R = TypeVar("R")


def microseconds(column: str) -> str:
    """Return the SQL for a time as microseconds since the epoch."""
    return f"(extract(epoch from {column}) * 1000000)::bigint"


def moment(expression: str) -> str:
    """Return the SQL for a time given as microseconds since the epoch."""
    return f"timestamptz 'epoch' + {expression} * interval '1 microsecond'"


def is_held(row: str) -> str:
    """Return the SQL for whether the workflow of an instance is paused, and the instance was not released."""
    return f"EXISTS (SELECT FROM engine_workflow_pause p WHERE {_concerns('p', row)})"


def _concerns(pause: str, row: str) -> str:
    return f"{pause}.workflow = {row}.workflow AND {pause}.key IS DISTINCT FROM {row}.released_in"


class SqlType(NamedTuple):
    """How the values of a column are sent and read. In SQL, `{}` is the column; in Python, the value."""

    sent: str  # SQL: its type in a recordset
    json: str  # Python: the JSON text of a value other than None
    omitted: str = "{} is None"  # Python: whether the value is not sent and becomes NULL
    stored: str = "{}"  # SQL: turns what was sent into what is stored
    read: str = "{}"  # SQL: turns what is stored into what is read
    taken: str = "{}"  # Python: turns what was read into the record's value


INTEGER = SqlType("int", json="{}")
BIGINT = SqlType("bigint", json="{}")
TEXT = SqlType("text", json="quote({})")
TEXTS = SqlType("text[]", json="dumps({})", omitted="not {}", taken="tuple({} or ())")
BOOL = SqlType("bool", json="TRUE if {} else FALSE")
TIME = SqlType("bigint", json="{}", stored=moment("{}"), read=microseconds("{}"))
JSON = SqlType("text", json="quote({})", stored="{}::json", read="{}::text")
# JSON that may be long. Long JSON is sent in an array of its own, the parameter `large`: quoted inside the JSON of its
# row, it would be escaped and parsed twice. `place` is its index there, from 1; 0 means inside the row.
LARGE_JSON = SqlType(
    "text",
    json="quote({})",
    omitted="place or {} is None",
    stored="coalesce({}, (%(large)b::text[])[{}_place])::json",
    read="{}::text",
)


class Written(Enum):
    """When the flush writes a column: by default once, with the row."""

    ONCE = "once"
    EACH_TIME = "each time"
    NEVER = "never"


CHANGES = Written.EACH_TIME
COPIED_ONLY = Written.NEVER  # written by a restart, for the copies it makes


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, and the attribute of the record that holds its values."""

    name: str
    attribute: str
    type: SqlType
    written: Written
    is_optional: bool

    @property
    def can_be_omitted(self) -> bool:
        """Return whether it has values that are sent as NULL."""
        return self.is_optional or self.type is TEXTS


class Table:
    """The columns that a record declares, in their order."""

    def __init__(self, record: type[Any]) -> None:
        self.record = record
        self.columns = tuple(_columns(record))

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def _flushed(self) -> list[Column]:
        return [column for column in self.columns if column.written is not Written.NEVER]

    def read(self, row: str, **instead: str) -> str:
        """Return the SELECT list for the table alias `row`. `instead` replaces expressions by column."""
        return _list(
            instead.get(column.name) or column.type.read.replace("{}", f"{row}.{column.name}")
            for column in self.columns
        )

    def copied(self, **instead: str) -> str:
        """Return the SELECT list for copies of rows. `instead` replaces expressions by column."""
        return _list(instead.get(name, name) for name in self.names)

    def all(self) -> str:
        """Return the columns, as an INSERT of copies lists them."""
        return _list(self.names)

    def inserted(self) -> str:
        """Return the columns that a flush writes, as its INSERT lists them."""
        return _list(column.name for column in self._flushed)

    def sent(self) -> str:
        """Return the columns of the recordset that a flush sends."""
        declared = [f"{column.attribute} {column.type.sent}" for column in self._flushed]
        declared += [f"{column.attribute}_place int" for column in self._flushed if column.type is LARGE_JSON]
        return _list(declared)

    def stored(self, row: str) -> str:
        """Return what a flush inserts from its recordset, whose alias is `row`."""
        return _list(
            column.type.stored.replace("{}", f"{row}.{column.attribute}") for column in self._flushed
        )

    def updated(self) -> str:
        """Return what a flush sets in an existing row."""
        changing = (column.name for column in self._flushed if column.written is Written.EACH_TIME)
        return _list(f"{name} = excluded.{name}" for name in changing)

    def writer(self) -> Callable[..., str]:
        """Return a function that makes a JSON object from `head`, which names the owner, and a record.

        Its third argument is the place of a long text. With `is_new=False`, the row exists, and optional columns that
        are written once are omitted, as are those without a value: the server reads every character. The function's
        Python source is generated, as `dataclass` does: for the rows that every checkpoint writes, `json.dumps` would
        take three times as long.
        """
        always = [f'"{one.attribute}":{{{_json(one)}}}' for one in self._flushed if not one.can_be_omitted]
        maybe = [one for one in self._flushed if one.can_be_omitted]
        text = [f"f'{{{{{{head}},{','.join(always)}'"]
        text += [f"('' if {_omitted(one)} else f',\"{one.attribute}\":{{{_json(one)}}}')" for one in maybe]
        text += [
            f"(f',\"{one.attribute}_place\":{{place}}' if place else '')"
            for one in maybe
            if one.type is LARGE_JSON
        ]
        return _function(
            "write", "head, record, place=0, *, is_new=True", f"return {' + '.join(text)} + '}}'"
        )

    def reader(self) -> Callable[..., tuple[int, Any]]:
        """Return a function that splits a row into the key of an instance and a record."""
        names = ", ".join(column.attribute for column in self.columns)
        taken = ", ".join(column.type.taken.replace("{}", column.attribute) for column in self.columns)
        return _function(
            "read", "row", f"whose, {names} = row; return whose, Record({taken})", Record=self.record
        )


def _columns(record: type[Any]) -> list[Column]:
    hints = get_type_hints(record, include_extras=True)
    found, names = list[Column](), [field.name for field in fields(record)]
    for name in names:
        hint, *said = get_args(hints[name]) if hasattr(hints[name], "__metadata__") else (hints[name],)
        types = [one for one in said if isinstance(one, SqlType)]
        written = [one for one in said if isinstance(one, Written)] or [Written.ONCE]
        if types:
            found.append(Column(_name(name), name, types[0], written[0], NoneType in get_args(hint)))
    assert [column.attribute for column in found] == names[: len(found)], "columns come first in a record"
    return found


def _name(attribute: str) -> str:
    """Return the column of an attribute. An attribute `…_us`, in microseconds, has the column `…_at`."""
    name = attribute.removesuffix("_us")
    return name if name in (attribute, "at") else f"{name}_at"


def _json(column: Column) -> str:
    return column.type.json.replace("{}", f"record.{column.attribute}")


def _omitted(column: Column) -> str:
    condition = column.type.omitted.replace("{}", f"record.{column.attribute}")
    return f"{condition} or not is_new" if column.written is Written.ONCE else condition


def _list(parts: Any) -> str:
    """Return a list for a statement, wrapped into readable lines."""
    lines, line = list[str](), ""
    for part in parts:
        if line and len(line) + len(part) > 100:
            lines.append(line)
            line = ""
        line = f"{line} {part},".strip()
    return "\n            ".join([*lines, line]).removesuffix(",")


def _function(name: str, arguments: str, body: str, **names: Any) -> Callable[..., Any]:
    known = {
        "quote": encode_basestring,
        "dumps": json.dumps,
        "TRUE": "true",
        "FALSE": "false",
    }
    space: dict[str, Any] = known | names
    exec(f"def {name}({arguments}): {body}", space)  # noqa: S102 - made of declarations, not of data
    made: Callable[..., Any] = space[name]
    return made
