"""Workers keep the source of each version of a workflow's code for as long as an instance may refer to it."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from engine import WorkflowStep, workflow, workflows
from engine.declare import kept_source
from engine.models import CodeVersion
from engine.steer import code_versions
from engine.steer.clock import database_time
from engine.worker import periodic
from tests.modules import Module
from tests.shifts import running_shift, wait_until
from tests.violations import violations

pytestmark = [pytest.mark.usefixtures("engine_db", "own_registry")]

HEAD = "from engine import WorkflowStep, workflow\n"
ONE = (
    f"{HEAD}\n@workflow\nasync def orders(step: WorkflowStep) -> None:\n    await step.do('charge', print)\n"
)
TWO = ONE.replace("charge", "pay")


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Module:
    return Module(tmp_path / "shop.py", monkeypatch)


def kept() -> list[str | None]:
    return list(CodeVersion.objects.order_by("first_seen_at").values_list("text", flat=True))


def test_a_worker_keeps_the_source_of_what_it_runs(module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periodic, "FIRST_KEEP_SECONDS", 0)
    module.load(ONE)
    with running_shift(keeps_time=True):
        wait_until(CodeVersion.objects.exists, what="the source")
    row = CodeVersion.objects.get()
    assert (row.workflow, row.code) == ("orders", module.workflow().fingerprint)
    assert (row.function, row.line, row.text) == ("orders", 3, ONE.rstrip("\n"))
    assert row.file == "shop.py"
    assert violations() == []


def test_each_version_is_kept_once_and_the_next_start_asks_once(module: Module) -> None:
    for text in (ONE, TWO, ONE):
        module.load(text)
        code_versions.keep()
    assert kept() == [ONE.rstrip("\n"), TWO.rstrip("\n")]
    with CaptureQueriesContext(connection) as queries:
        assert code_versions.keep(now=database_time()) == 0
    assert len(queries) == 2  # one of them asks for the time


def test_workers_that_start_at_once_keep_it_once(module: Module) -> None:
    module.load(ONE)
    start, found = threading.Barrier(8), list[int]()

    def work() -> None:
        start.wait()
        found.append(code_versions.keep())
        connections.close_all()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert (sorted(found), len(kept())) == ([0] * 7 + [1], 1)


def test_only_what_the_handler_needs_of_its_module_is_kept_at_its_lines(module: Module) -> None:
    module.load(
        f"""{HEAD}import decimal
TOKEN = "s3cr3t"
LIMIT = 3

async def ship(step, n):
    await step.do(f"ship-{{n}}", print)

@workflow
async def refunds(step: WorkflowStep) -> None: ...

@workflow
async def orders(step: WorkflowStep) -> None:
    for n in range(LIMIT):
        await ship(step, n)
"""
    )
    code_versions.keep()
    text = CodeVersion.objects.get(workflow="orders").text or ""
    assert text.split("\n") == [
        HEAD.rstrip("\n"),
        *("", "", "LIMIT = 3", ""),
        "async def ship(step, n):",
        '    await step.do(f"ship-{n}", print)',
        *("", "", "", ""),
        "@workflow",
        "async def orders(step: WorkflowStep) -> None:",
        "    for n in range(LIMIT):",
        "        await ship(step, n)",
    ]


@pytest.mark.parametrize(
    "text",
    [
        ONE.replace("\n", "\r\n"),
        f"\ufeff{ONE}",
        "# -*- coding: latin-1 -*-\n" + ONE.replace("charge", "chargé"),
        ONE.replace("charge", "\u202egrahc\u2069 \U0001f4b3"),
        ONE.replace("    await", "\f    await"),
        ONE + "    # a comment at the end\n",
        ONE + "    text = '''a\u2028b\x85c'''",
    ],
)
def test_odd_but_valid_source_is_kept(module: Module, text: str) -> None:
    module.load(text.encode("latin-1" if "latin" in text else "utf-8"))
    assert code_versions.keep() == 1
    row = CodeVersion.objects.get()
    said = (row.text or "").split("\n")
    assert said[row.line - 1] == "@workflow"
    assert len(said) >= row.line + 2


def test_source_that_is_too_long_is_not_kept_and_that_is_known(module: Module) -> None:
    module.load(ONE.replace("'charge'", f"'charge' and '{'x' * 1_000_000}'"))
    assert code_versions.keep() == 1
    assert kept() == [None]


def test_a_file_that_is_far_too_long_is_not_read(module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_source, "LONGEST_FILE", 100)
    module.load(ONE)
    assert code_versions.keep() == 1
    assert kept() == [None]


@pytest.mark.parametrize("now", [None, TWO, "no ) Python", "x = '\x00'", ""])
def test_a_file_that_was_replaced_or_is_gone_is_never_kept_as_the_loaded_version(
    module: Module, now: str | None
) -> None:
    module.load(ONE)
    module.file.unlink()
    if now is not None:
        module.file.write_text(now)
    assert code_versions.keep() == 0
    assert kept() == []


def test_a_handler_without_a_file_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workflows, "_workflows", {})
    exec(ONE, {})
    assert code_versions.keep() == 0


def test_a_workflow_in_a_function_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workflows, "_workflows", {})

    @workflow
    async def inner(step: WorkflowStep) -> None:
        await step.sleep("here", 1)

    assert code_versions.keep() == 1
    assert "here" in (CodeVersion.objects.get().text or "")


def test_nothing_else_suffers_if_it_cannot_be_kept(
    module: Module, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As in a database that was not migrated yet."""
    monkeypatch.setattr(periodic, "FIRST_KEEP_SECONDS", 0)
    module.load(ONE)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE engine_code RENAME TO engine_code_away")
    try:
        with running_shift(keeps_time=True):
            started = module.workflow().start()
            wait_until(lambda: started.refresh().status == "complete", what="the end")
            wait_until(lambda: '"engine_code" does not exist' in caplog.text, what="the warning")
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE engine_code_away RENAME TO engine_code")


def later(**by: float) -> datetime:
    return database_time() + timedelta(**by)


def test_a_version_stays_while_an_instance_may_refer_to_it(module: Module) -> None:
    module.load(ONE)
    code_versions.keep()
    started = module.workflow().start()
    module.load(TWO)
    code_versions.keep()
    assert code_versions.purge(now=later(days=400)) == 0
    started.terminate()
    started.delete()
    assert code_versions.purge(now=later(days=6)) == 0
    assert code_versions.purge(now=later(days=8)) == 2


def test_a_version_that_only_later_instances_outlive_is_deleted(module: Module) -> None:
    module.load(ONE)
    code_versions.keep()
    module.workflow().start()
    CodeVersion.objects.update(first_seen_at=later(days=-8), last_seen_at=later(days=-8))
    assert code_versions.purge() == 1


def test_the_version_that_workers_have_is_never_deleted(module: Module) -> None:
    module.load(ONE)
    for day in range(0, 30, 5):
        code_versions.keep(now=later(days=day))
        assert code_versions.purge(now=later(days=day, hours=1)) == 0
    assert len(kept()) == 1


def test_of_very_many_versions_the_newest_stay(module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_versions, "MOST", 2)
    for n in range(4):
        module.load(ONE.replace("charge", f"charge-{n}"))
        code_versions.keep()
        module.workflow().start()
    assert code_versions.purge() == 2
    assert ["charge-2" in str(kept()), "charge-3" in str(kept()), "charge-1" in str(kept())] == [
        True,
        True,
        False,
    ]
