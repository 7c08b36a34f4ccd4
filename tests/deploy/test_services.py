"""What docs/deploy/compose.yaml starts works, says so to its health checks, and stops in time.

The commands run on this machine, with the variables of the image and of the file: an image takes a container engine.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from studio.machine.mortal import dies_with_parent
from tests.deploy.files import DEPLOY, adapt
from tests.deploy.test_containers import image_command, instructions, seconds
from tests.live import PROJECT, free_port
from tests.process.clusters import Cluster, wait_until

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

PORT, ANY_ADDRESS = "8000", "0.0.0.0"
README = (DEPLOY / "README.md").read_text()
SERVICES = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]


class Service:
    """A service of the file as a process of this machine, with another port and home."""

    def __init__(self, name: str, variables: Mapping[str, str], home: Path) -> None:
        self.port = str(free_port())
        self.log = home / f"{name}.log"
        self._told: Mapping[str, Any] = SERVICES[name]
        self._variables = image_variables(home) | variables | self._told["environment"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self._here(self._told.get("command") or image_command()),
                stdout=log,
                stderr=log,
                preexec_fn=dies_with_parent(signal.SIGTERM),
                **self._place(),
            )

    def is_healthy(self) -> bool:
        """Run its health check, within the time that the file gives it."""
        check = self._told["healthcheck"]
        assert check["test"][0] == "CMD"
        command, patience = self._here(check["test"][1:]), seconds(check["timeout"])
        done = subprocess.run(command, capture_output=True, timeout=patience, check=False, **self._place())
        return done.returncode == 0

    def stop(self) -> None:
        """Stop it as an engine does: SIGTERM to tini passes it on. It must end by itself in time."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        assert time.monotonic() - began < seconds(self._told["stop_grace_period"]), self.log.read_text()

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(60)

    def _place(self) -> dict[str, Any]:
        return {"cwd": PROJECT, "env": self._variables, "stdin": subprocess.DEVNULL}

    def _here(self, words: list[str]) -> list[str]:
        """Return the command with this machine's programs, and the port of this process."""
        said = [word.replace(ANY_ADDRESS, "127.0.0.1").replace(PORT, self.port) for word in words]
        return [str(Path(sys.executable).parent / said[0]), *said[1:]]


def image_variables(home: Path) -> dict[str, str]:
    """Return what ENV sets, with this machine's places."""
    (given,) = (rest for name, rest in instructions() if name == "ENV")
    here = {"/venv/bin": str(Path(sys.executable).parent), "$PATH": os.environ["PATH"]}
    return dict(pair.split("=", 1) for pair in adapt(given, here | {"/var/lib/reprise": str(home)}).split())


@pytest.fixture
def variables(process_database: str) -> dict[str, str]:
    """shop.env, as docs/deploy/README.md has it, with this test's database and key."""
    (block,) = re.findall(r"^```\n(DJANGO_SETTINGS_MODULE=.*?)```", README, re.DOTALL | re.MULTILINE)
    found = dict(line.split("=", 1) for line in block.splitlines())
    return found | {
        "DATABASE_URL": process_database,
        "SECRET_KEY": "0123456789" * 6,
        "REPRISE_APPS": "tests.sample,tests.process",
    }


@pytest.fixture
def start(variables: dict[str, str], tmp_path: Path) -> Iterator[Callable[[str], Service]]:
    started: list[Service] = []

    def start(name: str) -> Service:
        started.append(Service(name, variables, tmp_path))
        return started[-1]

    yield start
    for one in started:
        one.end()


def test_the_web_service_is_healthy_and_stops(start: Callable[[str], Service]) -> None:
    web = start("web")
    wait_until(web.is_healthy)
    web.stop()


def test_the_workers_are_healthy_while_they_run(
    start: Callable[[str], Service], process_database: str, tmp_path: Path
) -> None:
    client = Cluster(process_database, tmp_path)  # never started: it only asks the database
    client.query("TRUNCATE engine_worker, engine_instance CASCADE")
    workers = start("workers")
    wait_until(workers.is_healthy)
    client.begin("errand", "one")
    client.wait_for_status("one", "complete")
    workers.stop()
    assert workers.process.returncode == 0
    assert not workers.is_healthy()
