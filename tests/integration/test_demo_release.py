"""`rolling-release` with real servers: processes of their own, asked over HTTP."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from engine import InvalidParamsError, workflows
from engine.lifecycle import terminate
from engine.models import Instance, Step
from engine.registry import Workflow
from studio.demo.release import contact, fleet, folder
from tests.shifts import run_to_end, running_shift, wait_for, wait_until

Rollout = Workflow[Any, Any]

pytestmark = pytest.mark.process


@pytest.fixture
def home(settings: LazySettings, tmp_path: Path) -> Iterator[Path]:
    """A home of its own; afterwards no server runs in it."""
    settings.REPRISE_HOME = tmp_path
    yield tmp_path
    running = [str(lock.parent) for lock in tmp_path.rglob("lock") if contact.is_running(lock.parent)]
    for directory in running:
        fleet.stop(Path(directory))
    assert running == []


@pytest.fixture
def rollout(transactional_db: None, home: Path) -> Rollout:
    import_module("studio.demo.workflows")
    return workflows["rolling-release"]


@pytest.fixture
def server(home: Path) -> Iterator[Path]:
    """The directory of a server that has something to serve and is not started yet."""
    directory = home / "server-1"
    (directory / "releases" / "one").mkdir(parents=True)
    (directory / "releases" / "one" / "index.html").write_text("<h1>one</h1>")
    folder.switch(directory, directory / "releases" / "one")
    yield directory
    fleet.stop(directory)


def output(instance: Instance, step: str) -> Any:
    return Step.objects.get(instance=instance, name=step).output


def page(url: str) -> str:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=5)
    connection.request("GET", "/")
    return connection.getresponse().read().decode()


def pid(directory: Path) -> int:
    return int(json.loads((directory / "server.json").read_text())["pid"])


def cools_down(instance: Instance, times: int = 1) -> bool:
    return Step.objects.filter(instance=instance, name="cool-down").count() == times


# The workflow


@pytest.mark.second_tier
def test_release_reaches_every_server_and_nothing_runs_on(rollout: Rollout, home: Path) -> None:
    instance = run_to_end(rollout.start({"cool_down": 0.05}), seconds=60)

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
    instance = run_to_end(rollout.start({"cool_down": 0, "servers": 3, "fail_on": 2}), seconds=60)

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
        wait_until(lambda: cools_down(instance), seconds=60)
        assert "<h1>Sample</h1>" in page(output(instance, "start:server-1"))
        assert "<h1>Before</h1>" in page(output(instance, "start:server-2"))
        terminate(instance, reason="test")

        directory = home / "demo" / "fleets" / instance.id
        assert contact.is_running(directory / "server-1")
        following = wait_for(rollout.start({"servers": 1}), seconds=60)

    assert following.status == "complete"
    assert output(following, "tidy") == [instance.id]
    assert not directory.exists()


@pytest.mark.second_tier
def test_server_that_died_while_the_release_cooled_down_is_started_again(
    rollout: Rollout, home: Path
) -> None:
    instance = rollout.start({"cool_down": 1.5, "servers": 2})
    with running_shift():
        wait_until(lambda: cools_down(instance), seconds=60)
        os.kill(pid(home / "demo" / "fleets" / instance.id / "server-2"), signal.SIGKILL)
        wait_for(instance, seconds=60)

    assert instance.status == "complete", instance.error
    assert [server["state"] for server in instance.output["servers"]] == ["released", "released"]


def test_folder_of_ones_own_is_released(rollout: Rollout, home: Path) -> None:
    mine = home / "demo" / "releases" / "mine"
    (mine / "a b").mkdir(parents=True)
    (mine / "index.html").write_text("<h1>Mine</h1>")
    (mine / "a b" / "ü?.txt").write_text("names that need quoting")

    instance = run_to_end(rollout.start({"release": "mine", "servers": 1}), seconds=60)

    assert instance.status == "complete", instance.error
    assert output(instance, "check:server-1")["files"] == 2


@pytest.mark.second_tier
def test_release_without_a_start_page_is_not_well(rollout: Rollout, home: Path) -> None:
    bare = home / "demo" / "releases" / "bare"
    bare.mkdir(parents=True)
    (bare / "about.txt").write_text("no index.html")

    instance = run_to_end(rollout.start({"release": "bare", "servers": 1}), seconds=60)

    assert instance.status == "errored"
    assert 'server-1 answered GET /health with 503: {"status": "no index.html"' in instance.error["message"]


def test_folder_that_is_not_there_ends_the_run_at_once(rollout: Rollout, home: Path) -> None:
    instance = run_to_end(rollout.start({"release": "nowhere"}), seconds=30)

    assert instance.status == "errored"
    assert "There is no folder" in instance.error["message"]


def test_folder_with_a_link_out_of_it_is_refused(rollout: Rollout, home: Path) -> None:
    linked = home / "demo" / "releases" / "linked"
    linked.mkdir(parents=True)
    (linked / "index.html").symlink_to("/etc/passwd")

    instance = run_to_end(rollout.start({"release": "linked"}), seconds=30)

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
    first = fleet.start(server)

    assert fleet.start(server) == first


def test_killed_server_is_replaced(server: Path) -> None:
    first = fleet.start(server)
    os.kill(pid(server), signal.SIGKILL)
    wait_until(lambda: not contact.is_running(server))

    second = fleet.start(server)

    assert second.token != first.token
    assert page(second.url) == "<h1>one</h1>"


@pytest.mark.second_tier
def test_server_that_hangs_is_killed(server: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contact, "ASK_TIMEOUT", 0.3)
    monkeypatch.setattr(fleet, "STOP_TIMEOUT", 0.5)
    fleet.start(server)
    hung = pid(server)
    os.kill(hung, signal.SIGSTOP)

    with pytest.raises(contact.ServerTrouble, match="did not answer GET /health"):
        fleet.start(server)

    assert not contact.is_running(server)
    assert page(fleet.start(server).url) == "<h1>one</h1>"
    assert pid(server) != hung


def test_server_that_nobody_asks_ends_by_itself(server: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "IDLE_SECONDS", 0.5)
    fleet.start(server)

    wait_until(lambda: not contact.is_running(server))


def test_server_whose_directory_is_gone_ends(server: Path, home: Path) -> None:
    fleet.start(server)
    gone = server.rename(home / "gone")

    wait_until(lambda: not contact.is_running(gone))


def test_server_ends_with_the_supervisor_that_it_was_started_under(server: Path, home: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as supervisor:
        (home / "studio.lock").write_text(f"process {supervisor.pid}, http://127.0.0.1:8000\n")
        fleet.start(server)
        assert contact.is_running(server)
        supervisor.kill()

    wait_until(lambda: not contact.is_running(server))
    # A lock file that nobody holds any more keeps no server from starting.
    assert page(fleet.start(server).url) == "<h1>one</h1>"


def test_server_serves_what_it_loaded_until_it_is_told_to_reload(server: Path) -> None:
    fleet.start(server)
    (server / "releases" / "two").mkdir()
    (server / "releases" / "two" / "index.html").write_text("<h1>two</h1>")

    folder.switch(server, server / "releases" / "two")
    assert contact.ask(server, "/") == (200, b"<h1>one</h1>")
    contact.ask_json(server, "/reload", method="POST")
    assert contact.ask(server, "/") == (200, b"<h1>two</h1>")


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("POST", "/stop", {}, 403),
        ("POST", "/reload", {"Authorization": "Bearer wrong"}, 403),
        ("GET", "/", {"Host": "rebound.example"}, 421),
        ("GET", "/../../server.json", {}, 404),
        ("GET", "/%2e%2e/%2e%2e/server.json", {}, 404),
        ("GET", "/notes/", {}, 404),
    ],
)
def test_server_refuses(server: Path, method: str, path: str, headers: dict[str, str], status: int) -> None:
    (server / "releases" / "one" / "notes").mkdir()
    connection = http.client.HTTPConnection("127.0.0.1", fleet.start(server).port, timeout=5)

    connection.request(method, path, headers=headers)

    answer = connection.getresponse()
    answer.read()
    assert answer.status == status
    assert contact.is_running(server)
