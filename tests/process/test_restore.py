"""Backup and restore with the embedded server's own programs, by the commands of docs/operating.md."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from studio.embedded import DATABASE, USER, EmbeddedServer, socket_dir
from tests.live import PROJECT
from tests.process.clusters import Cluster, wait_until
from tests.process.conftest import server_on_a_copy

pytestmark = [pytest.mark.process, pytest.mark.second_tier]


@pytest.fixture
def server(migrated_home: Path) -> Iterator[EmbeddedServer]:
    """A server of its own: its databases are renamed."""
    with server_on_a_copy(migrated_home) as made:
        yield made


@pytest.fixture
def cluster(server: EmbeddedServer, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(f"postgresql://{USER}@/{DATABASE}?host={socket_dir(server.home)}", tmp_path)
    try:
        yield made.start()
    finally:
        made.end()


class Guide:
    """The commands of the page, for this server."""

    def __init__(self, server: EmbeddedServer, cluster: Cluster, folder: Path) -> None:
        backup = (PROJECT / "docs" / "operating.md").read_text().partition("## Backup\n")[2]
        self._blocks = re.findall(r"```(?:sh)?\n(.*?)```", backup.partition("\n## ")[0], re.DOTALL)
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        self._places = {
            ".venv/lib/python3*": str(Path(sys.prefix) / "lib" / version),
            '"$PWD/.reprise/pg"': str(socket_dir(server.home)),
            "python manage.py": f"{sys.executable} {PROJECT / 'manage.py'}",
        }
        self._folder = folder
        self._variables = cluster.variables | {"REPRISE_ROLE": "command"}

    def follow(self, *beginnings: str) -> str:
        """Run the blocks that begin so, one after the other, in one shell."""
        found = [next(block for block in self._blocks if block.startswith(one)) for one in beginnings]
        script = "".join(found)
        for text, place in self._places.items():
            script = script.replace(text, place)
        done = subprocess.run(
            ["sh", "-e", "-c", script],
            cwd=self._folder,
            env=self._variables,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def workflow(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", "workflow", *arguments],
            cwd=PROJECT,
            env=self._variables,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def statuses(cluster: Cluster) -> Counter[str]:
    return Counter(status for (status,) in cluster.query("SELECT status FROM engine_instance"))


def test_a_restored_backup_waits_for_people_and_then_goes_on(
    server: EmbeddedServer, cluster: Cluster, tmp_path: Path
) -> None:
    guide = Guide(server, cluster, tmp_path)
    cluster.begin_many("relay-errand", "relay", 4, seconds=1.0)
    cluster.begin_many("napping-errand", "nap", 3, seconds=600)
    wait_until(lambda: len([line for line in cluster.noted() if line.startswith("relay")]) >= 6)
    guide.follow(".venv/lib")  # pg_dump, while everything runs
    wait_until(lambda: statuses(cluster)["complete"] == 4)
    at_the_backup = len(cluster.noted())

    said = guide.follow("BIN=", "$BIN/psql")
    assert "paused" in said
    # The cluster finds the restored database under the old name, and begins nothing.
    wait_until(lambda: statuses(cluster) == {"paused": 7})
    note = f"checked {len(cluster.noted())}"
    wait_until(lambda: cluster.note(note) > 0)
    cluster.wait_for(note)
    assert len(cluster.noted()) == at_the_backup + 1
    assert cluster.query("SELECT count(*) FROM engine_attempt WHERE status = 'running'") == [(0,)]

    guide.workflow(
        "resume", "--all-paused", "--paused-for", "restored", "--workflow", "relay-errand", "--yes"
    )
    wait_until(lambda: statuses(cluster) == {"complete": 4, "paused": 3})
    done = subprocess.run(
        [sys.executable, "manage.py", "verify"],
        cwd=PROJECT,
        env=cluster.variables,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
