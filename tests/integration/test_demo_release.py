"""`rolling-release` with real servers: processes of their own, asked over HTTP."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import LazySettings

from engine import InvalidParamsError, workflows
from engine.declare.registry import Workflow
from engine.models import Instance, Step
from engine.steer.lifecycle import terminate
from studio.demo.release import steps
from tests.demo_servers import is_running, pid
from tests.shifts import run_to_end, running_shift, wait_for, wait_until

Rollout = Workflow[Any, Any]

SERVER = Path(steps.__file__).with_name("server.py")

pytestmark = pytest.mark.process


@pytest.fixture
def home(settings: LazySettings, tmp_path: Path) -> Iterator[Path]:
    """A home of its own; afterwards no server runs in it."""
    settings.REPRISE = settings.REPRISE | {"HOME": tmp_path}
    yield tmp_path
    assert [lock.parent for lock in tmp_path.rglob("lock") if is_running(lock.parent)] == []


@pytest.fixture
def rollout(transactional_db: None, home: Path) -> Rollout:
    import_module("studio.demo.workflows")
    return workflows["rolling-release"]


@pytest.fixture
def server(home: Path) -> Iterator[Path]:
    """The directory of a server that has something to serve and is not started yet."""
    directory = home / "server-1"
    for name in ("one", "two"):
        (directory / name).mkdir(parents=True)
        (directory / name / "index.html").write_text(f"<h1>{name}</h1>")
    (directory / "current").symlink_to("one")
    yield directory
    shutil.rmtree(directory, ignore_errors=True)
    wait_until(lambda: not is_running(directory))


def start(directory: Path, worker: int | None = None) -> str:
    """Start a server as a step does; return its address."""
    command = [sys.executable, "-I", str(SERVER), str(directory), str(worker or os.getpid())]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    return f"http://127.0.0.1:{int(done.stdout)}"


def output(instance: Instance, step: str) -> Any:
    return Step.objects.get(instance=instance, name=step).output


def page(url: str) -> str:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=5)
    connection.request("GET", "/")
    return connection.getresponse().read().decode()


def cools_down(instance: Instance, times: int = 1) -> bool:
    return Step.objects.filter(instance=instance, name="cool-down").count() == times


# The workflow


@pytest.mark.second_tier
def test_release_reaches_every_server_and_nothing_runs_on(rollout: Rollout, home: Path) -> None:
    instance = run_to_end(rollout.start({"cool_down": 0.05}))

    assert instance.status == "complete", instance.error
    version = output(instance, "prepare-release")["version"]
    assert instance.output == {
        "release": "sample",
        "version": version,
        "servers": [
            {"name": f"server-{number}", "state": "released", "serves": version} for number in (1, 2, 3)
        ],
    }
    assert [output(instance, f"check:server-{number}")["files"] for number in (1, 2, 3)] == [3, 3, 3]
    assert list((home / "demo" / "fleets").iterdir()) == []


def test_release_stops_at_the_first_bad_server_and_says_who_serves_what(rollout: Rollout, home: Path) -> None:
    instance = run_to_end(rollout.start({"cool_down": 0, "servers": 3, "fail_on": 2}))

    assert instance.status == "errored"
    before, new = (output(instance, f"prepare-{which}")["version"] for which in ("former", "release"))
    serves = output(instance, "survey")
    assert (serves["server-1"], serves["server-3"]) == (new, before)
    assert serves["server-2"] not in (new, before)
    assert instance.error["message"] == (
        f"Stopped at server-2: server-2 serves version {serves['server-2']}, not {new}. "
        f"Released: server-1. Not released: server-3 (serves {before})."
    )
    assert not Step.objects.filter(instance=instance, name="release:server-3").exists()
    assert list((home / "demo" / "fleets").iterdir()) == []


@pytest.mark.second_tier
def test_servers_change_over_one_by_one_and_the_next_run_stops_those_of_a_terminated_one(
    rollout: Rollout, home: Path
) -> None:
    instance = rollout.start({"cool_down": 600, "servers": 2})
    with running_shift():
        wait_until(lambda: cools_down(instance))
        assert "<h1>Sample</h1>" in page(output(instance, "start:server-1"))
        assert "<h1>Before</h1>" in page(output(instance, "start:server-2"))
        terminate(instance, reason="test")

        directory = home / "demo" / "fleets" / instance.id
        assert is_running(directory / "server-1")
        following = wait_for(rollout.start({"servers": 1}))

    assert following.status == "complete"
    assert output(following, "tidy") == [instance.id]
    assert not directory.exists()


@pytest.mark.second_tier
def test_server_that_died_while_the_release_cooled_down_is_started_again(
    rollout: Rollout, home: Path
) -> None:
    instance = rollout.start({"cool_down": 1.5, "servers": 2})
    with running_shift():
        wait_until(lambda: cools_down(instance))
        os.kill(pid(home / "demo" / "fleets" / instance.id / "server-2"), signal.SIGKILL)
        wait_for(instance)

    assert instance.status == "complete", instance.error
    assert [server["state"] for server in instance.output["servers"]] == ["released", "released"]


def test_folder_of_ones_own_is_released(rollout: Rollout, home: Path) -> None:
    mine = home / "demo" / "releases" / "mine"
    (mine / "a b").mkdir(parents=True)
    (mine / "index.html").write_text("<h1>Mine</h1>")
    (mine / "a b" / "ü?.txt").write_text("names that need quoting")

    instance = run_to_end(rollout.start({"release": "mine", "servers": 1}))

    assert instance.status == "complete", instance.error
    assert output(instance, "check:server-1")["files"] == 2


@pytest.mark.second_tier
def test_release_without_a_start_page_ends_the_run_at_once(rollout: Rollout, home: Path) -> None:
    bare = home / "demo" / "releases" / "bare"
    bare.mkdir(parents=True)
    (bare / "about.txt").write_text("no index.html")

    instance = run_to_end(rollout.start({"release": "bare", "servers": 1}))

    assert instance.status == "errored"
    assert "demo/releases/bare with an index.html" in instance.error["message"]


def test_folder_that_is_not_there_ends_the_run_at_once(rollout: Rollout, home: Path) -> None:
    instance = run_to_end(rollout.start({"release": "nowhere"}))

    assert instance.status == "errored"
    assert "There is no folder" in instance.error["message"]


def test_folder_with_a_link_out_of_it_is_refused(rollout: Rollout, home: Path) -> None:
    linked = home / "demo" / "releases" / "linked"
    linked.mkdir(parents=True)
    (linked / "index.html").symlink_to("/etc/passwd")

    instance = run_to_end(rollout.start({"release": "linked"}))

    assert "is a link: a release holds files only" in instance.error["message"]


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({"release": "../../etc"}, "release"),
        ({"servers": 11}, "servers"),
        ({"cool_down": -1}, "cool_down"),
        ({"servers": 2, "fail_on": 3}, ""),
    ],
)
def test_params_that_lead_astray_are_refused(rollout: Rollout, params: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidParamsError) as refused:
        rollout.start(params)

    assert [error["path"] for error in refused.value.errors] == [path]


# The servers


def test_running_server_is_found_again(server: Path) -> None:
    assert start(server) == start(server)


def test_killed_server_is_replaced(server: Path) -> None:
    first = start(server)
    os.kill(pid(server), signal.SIGKILL)
    wait_until(lambda: not is_running(server))

    second = start(server)

    assert second != first
    assert page(second) == "<h1>one</h1>"


@pytest.mark.second_tier
def test_server_that_hangs_is_not_waited_for(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "PATIENCE", 0.3)
    ctx: Any = SimpleNamespace(instance_id="release-1", cancelled=threading.Event())
    before = steps.prepare("before")
    steps.start("server-1", before, ctx)
    hangs = pid(home / "demo" / "fleets" / "release-1" / "server-1")
    os.kill(hangs, signal.SIGSTOP)

    with pytest.raises(steps.ServerTrouble, match="server-1 does not answer: timed out"):
        steps.check("server-1", before, ctx)
    assert steps.survey(["server-1"], before, before, ctx) == {"server-1": "no answer"}

    assert steps.stop(ctx) == ["server-1"]
    os.kill(hangs, signal.SIGCONT)


def test_server_follows_the_link(server: Path) -> None:
    url = start(server)
    (server / "new").symlink_to("two")
    (server / "new").replace(server / "current")

    assert page(url) == "<h1>two</h1>"


def test_server_whose_directory_is_deleted_ends(server: Path, home: Path) -> None:
    start(server)
    moved = server.rename(home / "moved")

    wait_until(lambda: not is_running(moved))


def test_server_ends_with_the_worker_that_started_it(server: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as worker:
        start(server, worker.pid)
        assert is_running(server)
        worker.kill()

    wait_until(lambda: not is_running(server))


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/../../server.log", 404),
        ("GET", "/%2e%2e/%2e%2e/server.log", 404),
        ("POST", "/", 501),
    ],
)
def test_server_serves_nothing_but_the_release(server: Path, method: str, path: str, status: int) -> None:
    connection = http.client.HTTPConnection(start(server).removeprefix("http://"), timeout=5)
    connection.request(method, path)
    answer = connection.getresponse()
    answer.read()
    assert answer.status == status
