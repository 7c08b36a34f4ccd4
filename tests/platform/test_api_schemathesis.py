"""Schemathesis asks for whatever the document of the API allows, and for what it does not, with several tokens."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.conftest import copy_database, home_directory
from tests.live import PROJECT, LiveStack
from tests.platform.programs import API, Program, program
from tests.shifts import wait_until

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

DOCUMENT = PROJECT / "studio" / "api" / "openapi.json"
# A write may be valid by its schema and still not be possible: a text with NUL, a restart from a step that there is
# not, or params that the workflow refuses. A read may not. The last check leaves out a header that the command adds.
CONFIG = """
checks.negative_data_rejection.expected-statuses = [400, 401, 403, 404, 405, 409, 412, 413, 414, 415, 422]
checks.missing_required_header.enabled = false
{parameters}
[[operations]]
include-method = ["POST", "DELETE"]
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 401, 403, 404, 409, 412, 422, 429]
"""
# A search has a language of its own, which the document only describes.
CONFIG += """
[[operations]]
include-path = "/instances"
checks.positive_data_acceptance.expected-statuses = ["2xx", 401, 403, 422, 429]
"""
# A batch reports its wrong items.
CONFIG += """
[[operations]]
include-path = "/workflows/{{name}}/instances/batch"
checks.negative_data_rejection.expected-statuses = [200, 400, 401, 403, 404, 409, 413, 415, 422]
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 401, 403, 404, 409, 412, 422, 429]
"""
PARAMETERS = """
[parameters]
"name" = "anything"
"id" = "one"
"seq" = 1
"""
MADE = "SELECT count(*) FROM engine_step WHERE kind = 'request' AND status = 'waiting'"


@pytest.fixture(scope="module")
def stack(migrated_home: Path) -> Iterator[LiveStack]:
    """A stack without a limit on the rate of requests, with an instance that waits."""
    apps = "tests.sample,tests.platform.anything"
    with home_directory() as home:
        copy_database(migrated_home, home)
        made = LiveStack(home, REPRISE_APPS=apps, REPRISE_API_RATE="1000000").start()
        try:
            body = {"id": "one", "params": {"a": [1, "ü"]}, "tags": ["eu"], "reason": "to look at"}
            assert program(made).ask("POST", "/workflows/anything/instances", body).status == 201
            with psycopg.connect(made.dsn(), autocommit=True) as database:
                wait_until(lambda: database.execute(MADE).fetchone() == (1,), what="the request")
            yield made
        finally:
            made.stop()


# Streams have tests of their own: Schemathesis takes their events for what the schema of the text describes.
STREAMS = "subscribe"


def ask(
    sender: Program, folder: Path, *options: str, parameters: str = PARAMETERS, but: str = STREAMS
) -> dict[str, Any]:
    """Run Schemathesis over all addresses but those that end so; return its report."""
    config, report = folder / "asking.toml", folder / "report.json"
    config.write_text(CONFIG.format(parameters=parameters))
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "run", str(DOCUMENT)]
    command += ["--url", sender.stack.url + API, "--header", f"Authorization: Bearer {sender.token}"]
    command += [
        "--seed",
        "1",
        "--report-json-path",
        str(report),
        "--no-shrink",
        "--max-response-time",
        "10",
        "--exclude-path-regex",
        f"({but})$",
        *options,
    ]
    environment = sender.stack.variables | {"SCHEMATHESIS_HOOKS": "tests.platform.asking_hooks"}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def test_all_that_an_operator_may_ask_is_answered_as_documented(stack: LiveStack, tmp_path: Path) -> None:
    ask(
        program(stack, role="operator", verbs=("view", "operate", "approve")),
        tmp_path,
        *("--max-time", "40", "--exclude-method", "DELETE"),
        but=f"{STREAMS}|terminate",
    )


def test_so_is_what_names_nothing_that_there_is(stack: LiveStack, tmp_path: Path) -> None:
    ask(program(stack), tmp_path, "--max-time", "20", parameters="")


@pytest.mark.parametrize("holder", ["viewer", "team"])
def test_so_is_what_others_may_not(stack: LiveStack, tmp_path: Path, holder: str) -> None:
    sender = program(stack, role="viewer") if holder == "viewer" else program(stack, workflows=("tick*",))
    ask(sender, tmp_path, "--max-time", "15", "--phases", "examples,coverage")


def test_nothing_of_that_was_a_failure(stack: LiveStack) -> None:
    assert "Traceback" not in stack.output()
    stack.django("from django.core.management import call_command; call_command('verify')")
