"""Changed code replaces web and workers, and cuts nothing off."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tests.live import PROJECT, LiveStack

CODE = """
import time
from pathlib import Path
from engine import WorkflowStep, workflow

def say() -> str:
    return "{word}"

def be_slow(folder: str) -> str:
    Path(folder, "began").touch()
    while not Path(folder, "over").exists():
        time.sleep(0.05)
    return "slow {word}"

@workflow
async def greet(step: WorkflowStep) -> str:
    return await step.do("say", say)

@workflow
async def dawdle(step: WorkflowStep, folder: str) -> list[str]:
    return [await step.do("be-slow", be_slow, folder), await step.do("say", say)]
"""
LONGER_THAN_A_STOP_MAY_TAKE = 11.0
START = """
WITH started AS (
    INSERT INTO engine_instance (workflow, id, status, params, wake_at)
    VALUES (%s, %s, 'queued', %s::json, clock_timestamp())
) SELECT pg_notify('engine_wake', '')
"""
END = """
SELECT output::text, (SELECT count(*) FROM engine_attempt a WHERE a.instance_id = i.key)
FROM engine_instance i WHERE id = %s AND status = 'complete'
"""


class Shop:
    """An app that is being worked on, and the programs that run it."""

    def __init__(self, directory: Path, make_stack: Callable[..., LiveStack]) -> None:
        self.code = directory / "shop" / "workflows.py"
        self.code.parent.mkdir()
        (self.code.parent / "__init__.py").touch()
        self.write("one")
        path = f"{directory}{os.pathsep}{PROJECT}"
        self.stack = make_stack(REPRISE_APPS="shop", REPRISE_RELOAD="1", PYTHONPATH=path)
        self.stack.start()

    def write(self, word: str) -> None:
        self.code.write_text(CODE.format(word=word))

    def start(self, name: str, params: object = None) -> str:
        """Start an instance; return its id. Without Django, whose code may be broken."""
        instance_id = f"i-{time.monotonic_ns()}"
        with psycopg.connect(self.stack.dsn(), autocommit=True) as connection:
            connection.execute(START, [name, instance_id, json.dumps(params)])
        return instance_id

    def end_of(self, id: str) -> tuple[object, int]:
        """Return the instance's output and the number of its attempts."""
        ends_at = time.monotonic() + 60
        with psycopg.connect(self.stack.dsn(), autocommit=True) as connection:
            while (row := connection.execute(END, [id]).fetchone()) is None:
                assert time.monotonic() < ends_at, self.stack.output()
                time.sleep(0.05)
        return json.loads(row[0]), row[1]

    def reloads(self) -> int:
        return self.stack.output().count("Reloaded: ")

    def wait_for_reload(self, number: int) -> None:
        ends_at = time.monotonic() + 60
        while self.reloads() < number:
            assert time.monotonic() < ends_at, self.stack.output()
            time.sleep(0.1)


@pytest.mark.long
@pytest.mark.process
@pytest.mark.second_tier
def test_changed_code_runs_and_a_body_under_way_ends_first(
    tmp_path: Path, make_stack: Callable[..., LiveStack]
) -> None:
    shop = Shop(tmp_path, make_stack)
    assert shop.end_of(shop.start("greet")) == ("one", 1)
    slow = shop.start("dawdle", str(tmp_path))
    while not (tmp_path / "began").exists():
        time.sleep(0.05)

    shop.write("two")
    shop.wait_for_reload(1)
    assert shop.end_of(shop.start("greet")) == ("two", 1)
    time.sleep(LONGER_THAN_A_STOP_MAY_TAKE)
    (tmp_path / "over").touch()
    assert shop.end_of(slow) == (["slow one", "two"], 2)

    # A mistake stops nothing, and is said once.
    shop.code.write_text("def oops(:")
    shop.stack.wait_for_output("Not reloaded: ", 60)
    assert shop.end_of(shop.start("greet")) == ("two", 1)
    said = [line for line in shop.stack.output().splitlines() if "Not reloaded: " in line]
    assert len(said) == 1
    assert "SyntaxError: invalid syntax" in said[0]
    assert f"({shop.code}, line 1)" in said[0]

    shop.write("three")
    shop.wait_for_reload(2)
    assert shop.end_of(shop.start("greet")) == ("three", 1)
    assert shop.stack.stop() == 0
    assert shop.stack.left() == {}
