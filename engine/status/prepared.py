"""Queries that are compiled once. Django compiles a query each time: for the columns of a step, half a millisecond.

Reading one instance takes about eight queries, and compiling them took three quarters of its time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import Model, QuerySet

M = TypeVar("M", bound=Model)
T = TypeVar("T")

# Stand for values while a query is compiled. Within 32 bits, as Django refuses other values for an integer column.
_FIRST_MARK = 2_147_400_000
MOST_COMPILED = 64  # of one query: clients choose limits
_TEXT_MARK = "the value of a prepared query"


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A query with its values, and what makes its rows what the caller wants."""

    sql: str
    params: Sequence[Any]
    made_of: Callable[[list[tuple[Any, ...]]], list[T]]

    def run(self) -> list[T]:
        with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
            cursor.execute(self.sql, self.params)
            return self.made_of(cursor.fetchall())


def together(*calls: Call[Any]) -> list[list[Any]]:
    """Run queries in one exchange with the server, and return what each found.

    With `server_side_binding`, a statement must be sent alone, so they run one after another.
    """
    connection: Any = connections[DEFAULT_DB_ALIAS]
    if connection.features.uses_server_side_binding:
        return [call.run() for call in calls]
    found = []
    with connection.cursor() as cursor:
        cursor.execute(
            "; ".join(call.sql for call in calls), [param for call in calls for param in call.params]
        )
        for call in calls:
            found.append(call.made_of(cursor.fetchall()))
            cursor.nextset()
    return found


def _first_column(rows: list[tuple[Any, ...]]) -> list[Any]:
    return [row[0] for row in rows]


CLOCK: Call[datetime] = Call("SELECT clock_timestamp()", (), _first_column)


@dataclass(frozen=True, slots=True)
class _Compiled(Generic[M]):
    """A query as SQL, and how its rows become objects."""

    model: type[M]
    sql: str
    params: list[Any]
    columns: slice  # of the model's own fields
    fields: list[str]
    annotations: dict[str, int]
    converters: dict[int, Any]

    def call(self, values: tuple[int | str, ...]) -> Call[M]:
        return Call(self.sql, [_value(param, values) for param in self.params], self._objects)

    def _objects(self, rows: list[tuple[Any, ...]]) -> list[M]:
        connection = connections[DEFAULT_DB_ALIAS]
        return [self._object(list(row), connection) for row in rows]

    def _object(self, row: list[Any], connection: Any) -> M:
        """Do what Django's ModelIterable does."""
        for place, (converters, expression) in self.converters.items():
            for convert in converters:
                row[place] = convert(row[place], expression, connection)
        made = self.model.from_db(DEFAULT_DB_ALIAS, self.fields, row[self.columns])
        for name, place in self.annotations.items():
            setattr(made, name, row[place])
        return made


class Prepared(Generic[M]):
    """A query with values that change from call to call. `build` makes it from them and from its options.

    Values are integers and strings that the query compares with columns. Everything else, such as a limit or the
    columns to read, is an option: the query is compiled once for each combination.
    """

    def __init__(self, build: Callable[..., QuerySet[M]]) -> None:
        self._build = build
        self._compiled = lru_cache(maxsize=MOST_COMPILED)(self._compile)

    def rows(self, *values: int | str, **options: Any) -> list[M]:
        """Run the query and return its rows."""
        return self.call(*values, **options).run()

    def call(self, *values: int | str, **options: Any) -> Call[M]:
        """Return the query for `together`."""
        return self._compiled(tuple(map(type, values)), tuple(options.items())).call(values)

    def _compile(self, types: tuple[type, ...], options: tuple[tuple[str, Any], ...]) -> _Compiled[M]:
        marks = [
            _FIRST_MARK + place if kind is int else f"{_TEXT_MARK} {place}"
            for place, kind in enumerate(types)
        ]
        rows = self._build(*marks, **dict(options))
        compiler: Any = rows.query.get_compiler(DEFAULT_DB_ALIAS)
        sql, params = compiler.as_sql()
        places = [_place(param) for param in params]
        missing = set(range(len(types))).difference(places)
        assert not missing, f"the query does not compare value {sorted(missing)} with a column"
        own = compiler.klass_info["select_fields"]
        return _Compiled(
            model=rows.model,
            sql=sql,
            params=[
                param if place is None else (place, type(param))
                for param, place in zip(params, places, strict=True)
            ],
            columns=slice(own[0], own[-1] + 1),
            fields=[compiler.select[place][0].target.attname for place in own],
            annotations=dict(compiler.annotation_col_map or {}),
            converters=compiler.get_converters(column for column, _, _ in compiler.select),
        )


def _value(param: Any, values: tuple[int | str, ...]) -> Any:
    """Return a value of the call for a mark, in the type in which Django passes it on, or what the query has."""
    if isinstance(param, tuple) and len(param) == 2 and isinstance(param[1], type):
        place, kind = param
        return kind(values[place])
    return param


def _place(param: Any) -> int | None:
    """Return which value a parameter stands for."""
    if isinstance(param, str) and param.startswith(_TEXT_MARK):
        return int(param.removeprefix(_TEXT_MARK))
    if isinstance(param, int) and _FIRST_MARK <= param < _FIRST_MARK + 100:
        return int(param) - _FIRST_MARK
    return None
