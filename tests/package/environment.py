"""An environment that has Reprise as people install it, and the command `reprise` in folders of theirs."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from studio.machine.mortal import dies_with_parent
from tests.live import PROJECT, READY, free_port
from tests.package.wheel import run_pip
from tests.processes import MARK, wait_until_none

PATIENCE = 120.0
PASSWORD = re.compile(r"First account: admin   password: (\S+)")
HASHES = re.compile(r" \\\n +--hash=.*")


class Installed:
    """An environment outside of the checkout."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = folder / "bin"
        self.python = self.programs / "python"

    @property
    def packages(self) -> Path:
        [found] = self.folder.glob("lib/python3*/site-packages")
        return found

    def make(self) -> Installed:
        """Make it, empty."""
        # pip is the one that installed the environment of the tests; another copy of it would only take seconds.
        command = [sys.executable, "-m", "venv", "--without-pip", str(self.folder)]
        subprocess.run(command, check=True)
        return self

    def install(self, *wanted: str, lock: str) -> None:
        """Install packages with what their own metadata asks for, in the versions of a lock file."""
        constraints = self.folder / lock
        constraints.write_text(HASHES.sub("", (PROJECT / "requirements" / lock).read_text()))
        pip = [sys.executable, "-m", "pip", "--python", str(self.python)]
        run_pip([*pip, "install", "--only-binary", ":all:", "--constraint", str(constraints), *wanted])

    def copy_to(self, folder: Path, *, without: str = "") -> Installed:
        """Return a copy, without the files of some package. It shares all other files, and may get more packages."""
        ignored = shutil.ignore_patterns(f"{without}*") if without else None
        shutil.copytree(self.folder, folder, symlinks=True, ignore=ignored, copy_function=os.link)
        copy = Installed(folder)
        for script in copy.programs.iterdir():
            if not script.is_symlink() and script.read_bytes().startswith(b"#!"):
                text = script.read_text().replace(str(self.folder), str(folder))
                script.unlink()  # not written over: the original has the same file
                script.write_text(text)
                script.chmod(0o755)
        return copy


class Folder:
    """A user's folder, with an installed Reprise, and what runs there."""

    def __init__(self, path: Path, installed: Installed) -> None:
        self.path = path / "mine"
        self.run_id = secrets.token_hex(8)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/"
        self.log = path / "log.txt"
        home = path / "home"
        for made in (self.path, home):
            made.mkdir()
            made.chmod(0o755)
        # All there is: no PYTHONPATH, and nothing of the checkout.
        self.variables = {
            "PATH": f"{installed.programs}{os.pathsep}{os.defpath}",
            "HOME": str(home),
            "PORT": str(self.port),
            MARK: self.run_id,
        }
        self.process: subprocess.Popen[bytes] | None = None

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a program to its end."""
        return subprocess.run(
            command,
            cwd=self.path,
            env=self.variables | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def refuse(self, *command: str, code: int = 1, **variables: str) -> str:
        """Run a program that cannot do what it is for; return what it writes, all of it to stderr."""
        done = self.run(*command, **variables)
        assert (done.returncode, done.stdout) == (code, ""), done.stdout + done.stderr
        return done.stderr

    def start(self, *arguments: str, **variables: str) -> str:
        """Start `reprise run` and wait until it is ready; return the address that it prints."""
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                ["reprise", "run", *arguments],
                cwd=self.path,
                env=self.variables | variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=dies_with_parent(signal.SIGTERM),
            )
        self.wait_for(READY)
        found = re.search(rf"{READY}: (\S+)", self.said())
        assert found is not None
        return found[1]

    def said(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while text not in self.said():
            assert self.process is not None
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < deadline, f"no {text!r}:\n{self.said()}"
            time.sleep(0.05)

    @property
    def password(self) -> str:
        """Return the password that the first start has printed."""
        found = PASSWORD.search(self.said())
        assert found is not None, self.said()
        return found[1]

    def interrupt(self) -> float:
        """Press Ctrl-C; return how long the end takes. No process may be left."""
        assert self.process is not None
        began = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(PATIENCE) == 0, self.said()
        took = time.monotonic() - began
        assert self.left() == {}, self.said()
        return took

    def left(self) -> dict[int, str]:
        """Return the processes that do not end."""
        return wait_until_none(self.run_id, timeout=30, home=self.path / ".reprise")

    def end(self) -> None:
        """Leave nothing behind, whatever the test has done."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)
        assert self.left() == {}

    def names(self) -> set[str]:
        """Return what is in the folder, without Python's caches."""
        return {path.name for path in self.path.iterdir()} - {"__pycache__"}
