"""systemd accepts the units of docs/deploy, and what they start works and stops as they say."""

from __future__ import annotations

import configparser
import os
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.worker.shift import GRACE_SECONDS
from studio.machine.mortal import dies_with_parent
from tests.deploy.commands import check_command
from tests.deploy.files import DEPLOY, adapted, program
from tests.live import PROJECT, free_port
from tests.process.clusters import Cluster, wait_until

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

WEB, WORKERS = "systemd/reprise-web.service", "systemd/reprise-workers.service"
BOTH = pytest.mark.parametrize("name", [WEB, WORKERS])
BIN = "/srv/shop/.venv/bin/"
MORE = 5  # seconds that all the rest of a stop may take


def unit(name: str) -> configparser.ConfigParser:
    found = configparser.ConfigParser(interpolation=None)
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read(DEPLOY / name)
    return found


def started_by(name: str) -> list[str]:
    """Return the words of its command, without the path of the environment."""
    return shlex.split(unit(name)["Service"]["ExecStart"].removeprefix(BIN))


@BOTH
def test_systemd_accepts_the_unit(name: str, tmp_path: Path) -> None:
    there = adapted(name, **{f"ExecStart={BIN}": f"ExecStart={Path(sys.executable).parent}/"})
    (tmp_path / Path(name).name).write_text(there)
    done = subprocess.run(
        [program("systemd-analyze", "systemd"), "--man=no", "verify", str(tmp_path / Path(name).name)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    ours = [line for line in done.stderr.splitlines() if Path(name).stem in line]
    assert (done.returncode, ours) == (0, []), done.stderr


@BOTH
def test_its_command_exists(name: str) -> None:
    check_command(started_by(name))


@BOTH
def test_it_comes_back_runs_as_nobody_special_and_has_time_to_stop(name: str) -> None:
    service = unit(name)["Service"]
    assert service["Restart"] == "always"
    assert unit(name)["Unit"]["StartLimitIntervalSec"] == "0"
    assert service["User"] not in ("", "root")
    assert service["KillSignal"] == "SIGTERM"
    assert int(service["TimeoutStopSec"]) >= GRACE_SECONDS + MORE


def test_systemd_leaves_the_workers_to_their_main_process() -> None:
    service = unit(WORKERS)["Service"]
    assert service["KillMode"] == "mixed"
    assert int(service["TimeoutStopSec"]) > GRACE_SECONDS + MORE
    # Otherwise one body that uses all memory would stop all workers.
    assert service["OOMPolicy"] == "continue"


@pytest.fixture
def variables(process_database: str, tmp_path: Path) -> dict[str, str]:
    """An environment file of its own."""
    return {
        "DATABASE_URL": process_database,
        "SECRET_KEY": "0123456789" * 6,
        "REPRISE_APPS": "tests.sample,tests.process",
        "REPRISE_ORIGIN": "https://studio.example",
        "REPRISE_HOME": str(tmp_path),
    }


class Service:
    """A unit's command, run as the unit says, apart from paths and ports."""

    def __init__(self, name: str, variables: dict[str, str], log: Path, **replaced: str) -> None:
        self.stop_seconds = int(unit(name)["Service"]["TimeoutStopSec"])
        own = dict(word.split("=", 1) for word in unit(name)["Service"]["Environment"].split())
        words = [replaced.get(word, word) for word in started_by(name)]
        self.log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [str(Path(sys.executable).parent / words[0]), *words[1:]],
                cwd=PROJECT,
                env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"} | own | variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                preexec_fn=dies_with_parent(signal.SIGTERM),
            )

    def stop(self) -> int:
        """Stop it as systemd does, within the time of the unit; return its exit code."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(120)
        assert time.monotonic() - began < self.stop_seconds, self.log.read_text()
        return code

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(60)


@pytest.fixture
def services() -> Iterator[list[Service]]:
    started: list[Service] = []
    yield started
    for one in started:
        one.end()


def test_the_web_process_answers_its_proxy(
    variables: dict[str, str], services: list[Service], tmp_path: Path
) -> None:
    port = free_port()
    web = Service(WEB, variables, tmp_path / "web.log", **{"8000": str(port)})
    services.append(web)
    headers = {"Host": "studio.example", "X-Forwarded-Proto": "https"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/sign-in/", headers=headers)

    def answers() -> bool:
        assert web.process.poll() is None, web.log.read_text()
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, ConnectionError):
            return False

    wait_until(answers)
    web.stop()


def test_the_workers_run_a_workflow_and_stop_in_time(
    process_database: str, variables: dict[str, str], services: list[Service], tmp_path: Path
) -> None:
    client = Cluster(process_database, tmp_path)  # never started: it only asks the database
    client.query("TRUNCATE engine_worker, engine_instance CASCADE")
    workers = Service(WORKERS, variables, tmp_path / "workers.log")
    services.append(workers)
    client.begin("errand", "one")
    client.log = workers.log
    client.wait_for_status("one", "complete")
    client.begin("errand", "long", seconds=3600)
    wait_until(lambda: client.workers_at("long"))
    assert workers.stop() == 0
    assert client.query("SELECT status, owner FROM engine_instance WHERE id = 'long'") == [("queued", None)]
