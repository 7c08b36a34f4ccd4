"""The log as JSON: one object a line, whatever is logged."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from studio.server.json_lines import JsonFormatter
from studio.server.log_lines import request_id
from studio.supervisor.console import JsonConsole
from tests.conftest import copy_database, home_directory
from tests.live import LiveStack


def written(message: str = "hello", *args: object, **facts: Any) -> dict[str, Any]:
    """Return a record as it is written; it must be one line."""
    record = logging.LogRecord(
        "shop", logging.WARNING, "shop.py", 1, message, args, facts.pop("exc_info", None)
    )
    vars(record).update(facts)
    line = JsonFormatter().format(record)
    assert "\n" not in line
    assert line.isascii()
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_record_says_when_who_and_what() -> None:
    found = written("%s is out\nof stock", "pen", created=1_772_357_400.1234)
    assert found == {
        "time": "2026-03-01T09:30:00.123+00:00",
        "level": "WARNING",
        "logger": "shop",
        "message": "pen is out\nof stock",
        "process": found["process"],
    }


def test_the_instance_and_the_step_are_named_where_the_record_has_them() -> None:
    found = written(
        workflow="refund",
        instance_id="A-1",
        step="pay-back",
        generation=2,
        at=datetime(2026, 3, 1, tzinfo=UTC),
    )
    assert (found["instance"], found["step"], found["generation"]) == ("refund/A-1", "pay-back", 2)
    assert found["at"] == "2026-03-01T00:00:00+00:00"


def test_the_request_is_named_within_one_and_nowhere_else() -> None:
    assert "request_id" not in written()
    token = request_id.set("abc123")
    try:
        assert written()["request_id"] == "abc123"
    finally:
        request_id.reset(token)


def test_an_exception_is_one_string() -> None:
    try:
        {}["no such\norder"]
    except KeyError:
        found = written(exc_info=sys.exc_info())
    assert found["exception"].startswith("Traceback (most recent call last):\n")
    assert found["exception"].endswith("KeyError: 'no such\\norder'")


class Unspeakable:
    def __str__(self) -> str:
        raise ValueError("no")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (float("nan"), "nan"),
        (Unspeakable(), "(a Unspeakable)"),
        (Path("/tmp"), "/tmp"),
        ("\ud800", "\ud800"),
        ({"a": {1}}, {"a": "{1}"}),
        ({(1, 2): 3}, "{(1, 2): 3}"),
    ],
)
def test_every_value_can_be_written(value: object, shown: object) -> None:
    assert written(what=value)["what"] == shown


def test_a_value_cannot_replace_what_the_record_says() -> None:
    assert written(level="CALM", time="never")["level"] == "WARNING"


def test_lines_of_programs_get_their_names() -> None:
    out = io.StringIO()
    console = JsonConsole(out, now=lambda: datetime(2026, 3, 1, tzinfo=UTC))
    console.pass_on("web", '{"message": "hello"}')
    console.pass_on("cluster", "{not JSON")
    console.say("ready")
    assert [json.loads(line) for line in out.getvalue().splitlines()] == [
        {"program": "web", "message": "hello"},
        {"program": "cluster", **_wrapped("{not JSON")},
        {"program": "reprise", **_wrapped("ready")},
    ]


def _wrapped(message: str) -> dict[str, str]:
    time = "2026-03-01T00:00:00.000+00:00"
    return {"time": time, "level": "INFO", "logger": "reprise.supervisor", "message": message}


@pytest.fixture
def stack(migrated_home: Path) -> Iterator[LiveStack]:
    with home_directory() as home:
        copy_database(migrated_home, home)
        made = LiveStack(home, REPRISE_LOG="json")
        try:
            yield made.start()
        finally:
            made.stop()


@pytest.mark.process
@pytest.mark.second_tier
def test_every_line_of_all_programs_is_json(stack: LiveStack) -> None:
    stack.stop()
    lines = [json.loads(line) for line in stack.log.read_text().splitlines()]
    assert {"reprise"} <= {line["program"] for line in lines}
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    assert any(line["message"].startswith("Reprise is ready") for line in lines)
