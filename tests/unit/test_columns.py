"""The columns that records declare: those of the tables, in every statement that reads, writes or copies rows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated

import pytest
from django.contrib.postgres.fields import ArrayField
from django.db import models

from engine.models import Attempt, Event, Log, Step
from engine.models.fields import JsonField
from engine.steer import sql
from engine.values import columns
from engine.values.columns import CHANGES, INTEGER, LARGE_JSON, TEXT, TEXTS, TIME, Table
from engine.values.records import ATTEMPT, EVENT, LOG, STEP, StepRecord
from engine.worker.database import flush_sql, history_sql

OWNED = {"instance_id", "generation"}  # whose rows they are: the same for all rows of a cycle
KINDS: dict[columns.SqlType, type[models.Field]] = {  # type: ignore[type-arg]
    columns.INTEGER: models.IntegerField,
    columns.BIGINT: models.BigAutoField,
    columns.TEXT: models.Field,  # a CharField, or a TextField
    columns.TEXTS: ArrayField,
    columns.BOOL: models.BooleanField,
    columns.TIME: models.DateTimeField,
    columns.JSON: JsonField,
    columns.LARGE_JSON: JsonField,
}
HISTORY = [(STEP, Step, set()), (ATTEMPT, Attempt, set()), (LOG, Log, {"key"})]


def of(model: type[models.Model]) -> dict[str, models.Field]:  # type: ignore[type-arg]
    return {field.column: field for field in model._meta.concrete_fields if field.column}


@pytest.mark.parametrize(("table", "model", "others"), HISTORY)
def test_a_record_has_every_column_of_its_table(
    table: Table, model: type[models.Model], others: set[str]
) -> None:
    assert set(table.names) | OWNED | others == of(model).keys()


@pytest.mark.parametrize(("table", "model"), [(STEP, Step), (ATTEMPT, Attempt), (LOG, Log), (EVENT, Event)])
def test_a_column_is_declared_with_the_type_that_it_has(table: Table, model: type[models.Model]) -> None:
    fields = of(model)
    for column in table.columns:
        field = fields[column.name]
        assert isinstance(field, KINDS[column.type]), column
        if column.type is not TEXTS:  # none is NULL there, and an empty tuple here
            assert field.null == column.is_optional, column


@dataclass(slots=True)
class Longer:
    """A record with one more column."""

    seq: Annotated[int, INTEGER]
    paid_us: Annotated[int | None, TIME, CHANGES] = None
    types: Annotated[tuple[str, ...], TEXTS] = ()
    output: Annotated[str | None, LARGE_JSON] = None
    is_here: bool = True


def test_what_is_declared_is_in_every_list() -> None:
    table = Table(Longer)
    assert table.names == ["seq", "paid_at", "types", "output"]
    assert (
        table.read("t") == "t.seq, (extract(epoch from t.paid_at) * 1000000)::bigint, t.types, t.output::text"
    )
    assert table.sent() == "seq int, paid_us bigint, types text[], output text, output_place int"
    assert table.inserted() == table.all() == "seq, paid_at, types, output"
    assert table.updated() == "paid_at = excluded.paid_at"
    assert "timestamptz 'epoch' + l.paid_us * interval" in table.stored("l")
    assert table.copied(seq="seq + 1") == "seq + 1, paid_at, types, output"


def test_a_record_survives_the_way_into_json_and_out_of_a_row() -> None:
    table = Table(Longer)
    write, read = table.writer(), table.reader()
    sent = json.loads(write('"key":7', Longer(1, 5, ("a", 'b"'), '{"c": "\\n"}')))
    assert sent == {"key": 7, "seq": 1, "paid_us": 5, "types": ["a", 'b"'], "output": '{"c": "\\n"}'}
    assert json.loads(write('"key":7', Longer(1, output="long"), 3)) == {
        "key": 7,
        "seq": 1,
        "output_place": 3,
    }
    again = json.loads(write('"key":7', Longer(1, 5, ("a",), "1"), is_new=False))
    assert again == {"key": 7, "seq": 1, "paid_us": 5}  # what changes, and what an INSERT requires
    assert read((7, 1, 5, None, "1")) == (7, Longer(1, 5, (), "1"))


def test_what_is_no_column_comes_after_the_columns() -> None:
    @dataclass
    class Mixed:
        is_here: bool
        name: Annotated[str, TEXT]

    with pytest.raises(AssertionError, match="columns come first"):
        Table(Mixed)


def test_the_statements_have_every_column() -> None:
    for column in STEP.columns:
        assert column.name in history_sql.HISTORY_STEPS, column
        assert column.name in sql.KEEP_STEPS, column
    for name in (one.name for one in STEP.columns if one.written is CHANGES):
        assert f"{name} = excluded.{name}" in flush_sql.FLUSH
    assert [one.name for one in STEP.columns if one.name not in STEP.inserted()] == ["kept_from"]
    assert json.loads(STEP.writer()('"key":1', StepRecord(1, 0, "do", "a", 1)))["status"] == "running"
