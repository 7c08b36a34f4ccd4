"""Old and new code side by side, as a deployment leaves them for a while: nothing is lost, nothing is done twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from shutil import copy, copytree, ignore_patterns

import pytest

from engine.version import VERSION
from tests.live import PROJECT
from tests.process.apps import CONSTANTS
from tests.process.clusters import Cluster, wait_until

pytestmark = [pytest.mark.process, pytest.mark.second_tier, pytest.mark.long]

LEGS = range(1, 9)
OLD = """
import time

from engine import WorkflowStep, workflow
from tests.process.tasks import note
from tests.process.workflows import Errand


def leg(params: Errand, number: int) -> None:
    time.sleep(params.seconds)
    note(params.notes, f"{params.name} {number}")


@workflow("rolling-relay")
async def relay(step: WorkflowStep, params: Errand) -> None:
    for number in range(1, 9):
        await step.do(f"leg-{number}", leg, params, number)


@workflow("rolling-careful", on_code_change="pause")
async def careful(step: WorkflowStep, params: Errand) -> None:
    await step.do("leg-1", leg, params, 1)
    await step.wait_for_event("go")
    await step.do("leg-2", leg, params, 2)
"""
NEW = (
    OLD.replace(
        'leg-{number}", leg, params, number)',
        'leg-{number}", leg, params, number)\n    await step.do("thank", leg, params, 9)',
    ).replace(
        '"leg-2", leg, params, 2)', '"leg-2", leg, params, 2)\n    await step.do("thank", leg, params, 9)'
    )
    + """

@workflow("rolling-novel")
async def novel(step: WorkflowStep, params: Errand) -> None:
    await step.do("leg-1", leg, params, 1)
"""
)


# The engine's latest migration, and the one that a next version would add.
LATEST = max(path.stem for path in (PROJECT / "engine" / "migrations").glob("[0-9]*.py"))
NEXT = f"{int(LATEST[:4]) + 1:04}_next"
NEXT_MIGRATION = f"""
from django.db.migrations import Migration, RunSQL


class Migration(Migration):
    dependencies = [("engine", "{LATEST}")]
    operations = [
        RunSQL(
            "ALTER TABLE engine_instance ADD COLUMN of_next_version integer NOT NULL DEFAULT 7",
            "ALTER TABLE engine_instance DROP COLUMN of_next_version",
        )
    ]
"""


class Release:
    """One version of a project's code, in a folder of its own, with the Reprise of the checkout or another one."""

    def __init__(self, folder: Path, code: str, reprise: Path = PROJECT) -> None:
        package = folder / "rolling"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "workflows.py").write_text(code)
        self.variables = {
            "REPRISE_APPS": "tests.sample,tests.process,rolling",
            "PYTHONPATH": f"{folder}:{reprise}:{PROJECT}",
        }
        self.reprise = reprise

    def manage(self, cluster: Cluster, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=self.reprise,
            env=cluster.variables | self.variables | {"REPRISE_ROLE": "command"},
            capture_output=True,
            text=True,
            timeout=120,
        )


@pytest.fixture
def old(tmp_path: Path) -> Release:
    return Release(tmp_path / "old", OLD)


@pytest.fixture
def new(tmp_path: Path) -> Release:
    return Release(tmp_path / "new", NEW)


@pytest.fixture
def next_version(tmp_path: Path) -> Release:
    """The project with the next version of Reprise, which has one more migration."""
    reprise = tmp_path / "reprise"
    for name in ("engine", "studio", "templates", "static"):
        copytree(PROJECT / name, reprise / name, symlinks=True, ignore=ignore_patterns("__pycache__"))
    copy(PROJECT / "manage.py", reprise)
    (reprise / "engine" / "migrations" / f"{NEXT}.py").write_text(NEXT_MIGRATION)
    return Release(tmp_path / "next", OLD, reprise)


def statuses(cluster: Cluster, workflow: str) -> Counter[str]:
    rows = cluster.query("SELECT status FROM engine_instance WHERE workflow = %s", [workflow])
    return Counter(status for (status,) in rows)


def noted(cluster: Cluster, name: str) -> Counter[str]:
    """Count the lines that the bodies of these instances left."""
    return Counter(line for line in cluster.noted() if line.startswith(name))


def begin_careful(cluster: Cluster, release: Release, count: int) -> None:
    """Start instances as people do: what is inserted by hand does not know under which code it began."""
    for number in range(1, count + 1):
        name = f"careful-{number}"
        params = json.dumps({"notes": str(cluster.notes), "name": name, "seconds": 0})
        done = release.manage(cluster, "workflow", "start", "rolling-careful", params, "--id", name)
        assert done.returncode == 0, done.stderr


def verified(cluster: Cluster, release: Release) -> None:
    done = release.manage(cluster, "verify")
    assert done.returncode == 0, done.stdout + done.stderr


def test_clusters_of_old_and_new_code_share_the_work_and_the_old_one_leaves(
    make_cluster: Callable[..., Cluster], old: Release, new: Release
) -> None:
    first = make_cluster(**old.variables)
    begin_careful(first, old, 5)
    first.begin_many("rolling-relay", "relay", 30, seconds=0.2)
    wait_until(lambda: len(noted(first, "relay")) >= 20)
    wait_until(lambda: statuses(first, "rolling-careful") == {"waiting": 5})

    found = json.loads(
        new.manage(first, "workflow", "replay", "--all-open", "--limit", "99", "--json").stdout
    )
    assert {(one["workflow"], one["error"]) for one in found["findings"]} == {
        ("rolling-careful", "CodeChangedError")
    }
    assert (found["stops"], found["differs"], found["unknown"]) == (5, 0, 0)

    second = Cluster(first.dsn, first.notes.parent, **new.variables).start()
    try:
        first.begin_many("rolling-novel", "novel", 3)
        first.begin_many("rolling-relay", "late", 10, seconds=0.2)
        wait_until(lambda: statuses(first, "rolling-novel") == {"complete": 3})
        assert statuses(first, "rolling-relay")["complete"] < 40, "the old cluster stops amid the work"
        first.stop()
        assert first.process is not None
        assert (first.process.returncode, first.left()) == (0, {})
        wait_until(lambda: statuses(second, "rolling-relay") == {"complete": 40})
        _nothing_lost_or_repeated(first)
        _careful_ones_wait_for_a_person(second, new)
        verified(second, new)
    finally:
        second.end()


def _nothing_lost_or_repeated(cluster: Cluster) -> None:
    for name, count in (("relay", 30), ("late", 10), ("novel", 3)):
        lines = noted(cluster, f"{name}-")
        assert set(lines.values()) == {1}, lines.most_common(3)
        legs = LEGS if name != "novel" else range(1, 2)
        assert {f"{name}-{n} {leg}" for n in range(1, count + 1) for leg in legs} <= set(lines)
    attempts = cluster.query("SELECT status, count(*) FROM engine_attempt GROUP BY status")
    # The old cluster may leave between the record of an attempt and its body; that is no loss and no repetition.
    assert {status for status, _ in attempts} <= {"complete", "cancelled"}
    # Who finished under the new code has also thanked, once.
    thanked = noted(cluster, "late-")
    assert sum(line.endswith(" 9") for line in thanked) >= 1


def _careful_ones_wait_for_a_person(cluster: Cluster, release: Release) -> None:
    assert statuses(cluster, "rolling-careful") == {"waiting": 5}
    for number in range(1, 6):
        where = f"rolling-careful/careful-{number}"
        assert release.manage(cluster, "workflow", "events", "send", where, "go").returncode == 0
    wait_until(lambda: statuses(cluster, "rolling-careful") == {"paused": 5})
    for number in range(1, 6):
        done = release.manage(cluster, "workflow", "accept-code", f"rolling-careful/careful-{number}")
        assert done.returncode == 0, done.stderr
    wait_until(lambda: statuses(cluster, "rolling-careful") == {"complete": 5})


TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename LIKE 'engine\\_%'"


def test_a_cluster_works_on_while_the_next_version_of_the_engine_adds_its_columns(
    make_cluster: Callable[..., Cluster], old: Release
) -> None:
    """Statements name their columns: neither a new one, nor its default, nor plans that are cached matter."""
    cluster = make_cluster(**old.variables)
    begin_careful(cluster, old, 3)
    cluster.begin_many("rolling-relay", "relay", 20, seconds=0.2)
    wait_until(lambda: len(noted(cluster, "relay")) >= 20)
    tables = [name for (name,) in cluster.query(TABLES)]
    assert len(tables) >= 12
    try:
        for table in tables:
            cluster.query(f"ALTER TABLE {table} ADD COLUMN of_next_version text")
            cluster.query(f"ALTER TABLE {table} ADD COLUMN size integer NOT NULL DEFAULT 7")
        cluster.begin_many("rolling-relay", "late", 10, seconds=0.1)
        for number in range(1, 4):
            where = f"rolling-careful/careful-{number}"
            assert old.manage(cluster, "workflow", "events", "send", where, "go").returncode == 0
        wait_until(lambda: statuses(cluster, "rolling-relay") == {"complete": 30})
        wait_until(lambda: statuses(cluster, "rolling-careful") == {"complete": 3})
        assert set(noted(cluster, "").values()) == {1}, "nothing was done twice"
        verified(cluster, old)
        assert old.manage(cluster, "workflow", "health").returncode == 0
        assert "Traceback" not in cluster.log.read_text()
    finally:
        for table in tables:
            cluster.query(f"ALTER TABLE {table} DROP COLUMN of_next_version, DROP COLUMN size")


REFUSAL = (
    f"The database was migrated by a newer version of Reprise: {VERSION} does not know the migration engine.{NEXT}. "
    f"Install that version again, or use it to undo its migrations: `python manage.py migrate engine {LATEST}`."
)


def test_a_running_cluster_goes_on_in_a_newer_database_and_another_of_its_version_starts_when_that_was_undone(
    make_cluster: Callable[..., Cluster], old: Release, next_version: Release
) -> None:
    """Workers are replaced after a crash, and each hour; here, after some seconds."""
    soon = {CONSTANTS: json.dumps({"engine.worker.retirement.LONGEST_SECONDS": 5})}
    cluster = make_cluster(size=2, REPRISE_WORKERS="1", **old.variables, **soon)
    other = Cluster(cluster.dsn, cluster.notes.parent, **old.variables)
    assert next_version.manage(cluster, "migrate", "-v", "0").returncode == 0
    try:
        _workers_are_replaced(cluster)
        other.launch()
        assert other.process is not None
        assert other.process.wait(60) == 1
        [said] = other.log.read_text().splitlines()
        assert said.endswith(f"CRITICAL reprise.cluster [-] {REFUSAL}")
        assert other.left() == {}
    finally:
        other.end()
        done = next_version.manage(cluster, *REFUSAL.split("`")[1].split()[2:], "-v", "0")
        assert done.returncode == 0, done.stderr
    other.start()
    other.stop()
    verified(cluster, old)


def _workers_are_replaced(cluster: Cluster) -> None:
    for reason in ("crash", "hour"):
        former = cluster.shifts()
        if reason == "crash":
            os.kill(min(former), signal.SIGKILL)
        wait_until(lambda former=former: not former & cluster.shifts())
        cluster.begin("errand", reason)
        cluster.wait_for_status(reason, "complete")
        assert not former & cluster.workers_at(reason)
