"""What `make` says when a machine lacks something."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent.parent
TOOLS = ("sh", "cmp", "rm", "grep", "tail", "cp", "mktemp")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what the scripts need, in a directory with a blank in its name."""
    copy = tmp_path / "my project"
    copy.mkdir()
    shutil.copytree(PROJECT / "scripts", copy / "scripts")
    shutil.copytree(PROJECT / "requirements", copy / "requirements")
    return copy


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A directory for PATH with a few tools and no Python."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None
        (directory / tool).symlink_to(found)
    return directory


def _fake(programs: Path, name: str, body: str) -> None:
    path = programs / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def _environment(checkout: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "scripts/environment", "run"],
        cwd=checkout,
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_an_old_python_is_named(checkout: Path, programs: Path) -> None:
    _fake(programs, "python3", '[ "$1" = --version ] && echo Python 3.9.18 && exit 0; exit 1')
    done = _environment(checkout, PATH=str(programs))
    assert done.returncode == 1
    assert "Reprise needs Python 3.11 or newer; python3 here is Python 3.9.18." in done.stderr
    assert not (checkout / ".venv").exists()


def test_a_newer_python_beside_an_old_one_is_taken(checkout: Path, programs: Path) -> None:
    _fake(programs, "python3", "exit 1")
    _fake(programs, "python3.12", 'case "$2" in *ensurepip*) exit 1;; esac')
    done = _environment(checkout, PATH=str(programs))
    assert "python3.12 has no venv module." in done.stderr


def test_a_python_without_venv_is_named_with_the_package_to_install(checkout: Path, programs: Path) -> None:
    _fake(programs, "python3", 'case "$2" in *ensurepip*) exit 1;; esac')
    done = _environment(checkout, PATH=str(programs))
    assert done.returncode == 1
    assert "apt install python3-venv" in done.stderr
    assert not (checkout / ".venv").exists()


@pytest.mark.second_tier
def test_a_missing_wheel_is_named_and_the_next_try_starts_again(checkout: Path) -> None:
    variables = {"PATH": f"{Path(sys.base_prefix) / 'bin'}:{os.environ['PATH']}", "PIP_NO_INDEX": "1"}
    for _ in range(2):
        done = _environment(checkout, **variables)
        assert done.returncode == 1
        assert "annotated-types" in done.stderr
        assert "A package of requirements/run.txt could not be installed" in done.stderr
    assert not (checkout / ".venv" / "run.txt").exists()


def test_an_environment_that_holds_the_lock_is_left_alone(checkout: Path, programs: Path) -> None:
    installed = checkout / ".venv"
    (installed / "bin").mkdir(parents=True)
    _fake(installed / "bin", "python", "exit 0")
    shutil.copy(checkout / "requirements" / "dev.txt", installed / "dev.txt")
    done = _environment(checkout, PATH=str(programs))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("user", ["0", "1000"])
def test_servers_that_cannot_be_installed_are_named_and_nothing_fails(
    checkout: Path, programs: Path, tmp_path: Path, user: str
) -> None:
    (tmp_path / "policy").touch()
    _fake(programs, "id", f"echo {user}")
    _fake(programs, "apt-get", "exit 100")
    for name in ("nginx", "caddy", "ip"):
        _fake(programs, name, "exit 0")
    script = (checkout / "scripts" / "servers").read_text()
    # Not where the machine has its own, and not its policy.
    script = script.replace(":/usr/sbin:/sbin", "").replace("/usr/sbin/policy-rc.d", str(tmp_path / "policy"))
    (checkout / "scripts" / "servers").write_text(script)
    done = subprocess.run(
        ["sh", "scripts/servers"],
        cwd=checkout,
        env={"PATH": str(programs)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0
    assert "pgbouncer nftables" in done.stderr.splitlines()[-1]
    assert "will be skipped" in done.stderr
    assert "caddy" not in done.stderr
    assert "nginx" not in done.stderr


def test_every_package_is_pinned_with_its_hashes_and_from_no_named_host() -> None:
    for name in ("run.txt", "dev.txt"):
        lines = (PROJECT / "requirements" / name).read_text().splitlines()
        packages = [line for line in lines if line and line[0].isalpha()]
        assert len(packages) > 30
        assert all("==" in line and line.endswith("\\") for line in packages)
        assert not [line for line in lines if "://" in line or "index" in line]
