"""A reader who follows a page: writes its files, types its commands, and compares what they print."""

from __future__ import annotations

import re
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from studio.machine.mortal import dies_with_parent
from tests.processes import MARK, wait_until_none
from tests.tutorial.page import Action, Change, Command, File, Output, Step, Stop, prints

PATIENCE = 120.0
STAYS = ("reprise run", "reprise workers", "daphne")
ASSIGNMENTS = re.compile(r"^(?:[A-Z_]+=\S+ )*")
# These only look: readers repeat them until they show what is to come.
LOOKS = re.compile(r"^reprise workflow (list|show|health)|^curl ")
# Printed where root starts, and only there.
FOR_ROOT = re.compile(r"^reprise │ Web and workers run as .*\n", re.MULTILINE)


class Reader:
    """A folder, a terminal in which commands are typed one after the other, and terminals for what stays."""

    def __init__(self, folder: Path, environment: Mapping[str, str], actions: object) -> None:
        self.folder = folder
        self.run_id = secrets.token_hex(8)
        self.base = {**environment, MARK: self.run_id}
        self.environment = self.base
        self.actions = actions
        self.staying: dict[str, subprocess.Popen[bytes]] = {}

    def follow(self, steps: list[Step]) -> None:
        for step in steps:
            match step:
                case File(name, text):
                    (self.folder / name).write_text(text)
                case Change():
                    self._change(step)
                case Command() if step.is_run:
                    self._type(step)
                case Action(name):
                    getattr(self.actions, name)(self)
                case Stop(program):
                    self.stop(program)
                case Output(text):
                    self._until(lambda text=text: text in self.said("reprise run"), "reprise run")

    def run(self, line: str) -> tuple[int, str]:
        """Run a line as a shell does, which keeps what it exports. Return the exit code and what it prints."""
        kept = self.folder.parent / "environment"
        done = subprocess.run(
            ["sh", "-c", f'{line}\ncode=$?; env -0 > "{kept}"; exit $code'],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
        )
        pairs = kept.read_text().split("\0")
        self.environment = dict(pair.split("=", 1) for pair in pairs if pair)
        return done.returncode, done.stdout

    def start(self, words: list[str], name: str, environment: Mapping[str, str]) -> None:
        """Start what stays, in a terminal of its own."""
        with self._log(name).open("wb") as log:
            self.staying[name] = subprocess.Popen(
                words,
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=dies_with_parent(signal.SIGTERM),
            )

    def stop(self, name: str, sign: signal.Signals = signal.SIGINT) -> None:
        """Press Ctrl-C there."""
        process = self.staying.pop(name)
        process.send_signal(sign)
        assert process.wait(PATIENCE) == 0, self.said(name)

    def said(self, name: str) -> str:
        log = self._log(name)
        return FOR_ROOT.sub("", log.read_text(errors="replace")) if log.exists() else ""

    def end(self) -> None:
        """End what is left after a failure. No process may be left at all."""
        for process in self.staying.values():
            process.terminate()
        for process in self.staying.values():
            process.wait(PATIENCE)
        assert wait_until_none(self.run_id, timeout=30) == {}

    def until_it_prints(self, line: str, expected: str) -> None:
        """Repeat a command that only looks until it prints this."""
        deadline = time.monotonic() + PATIENCE
        while not prints(expected, (printed := self.run(line)[1])):
            assert time.monotonic() < deadline, f"{line}\n{printed}\n{self._all_said()}"
            time.sleep(0.2)

    def _type(self, command: Command) -> None:
        program = ASSIGNMENTS.sub("", command.line)
        if name := next((one for one in STAYS if program.startswith(one)), None):
            # The second terminal has not exported what the first has, until both have the settings of production.
            environment = self.base if name == "reprise run" else self.environment
            self.start(["sh", "-c", f"exec env {command.line}"], name, environment)
            self._until(lambda: prints(command.prints, self.said(name)), name)
        elif LOOKS.match(command.line):
            self.until_it_prints(command.line, command.prints)
        else:
            code, printed = self.run(command.line)
            assert code == command.code, f"{command.line}\n{printed}"
            assert prints(command.prints, printed), f"{command.line}\n{printed}\nnot\n{command.prints}"

    def _change(self, change: Change) -> None:
        file = self.folder / change.name
        text = file.read_text()
        assert text.count(change.old) == 1, f"{change.old}\nis not once in\n{text}"
        file.write_text(text.replace(change.old, change.new))

    def _until(self, is_so: Callable[[], bool], name: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not is_so():
            assert self.staying[name].poll() is None, self.said(name)
            assert time.monotonic() < deadline, self.said(name)
            time.sleep(0.05)

    def _all_said(self) -> str:
        return "\n".join(self.said(name) for name in self.staying)

    def _log(self, name: str) -> Path:
        return self.folder.parent / f"{name.replace(' ', '-')}.log"
