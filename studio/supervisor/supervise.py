"""Start, watch and stop everything: the main path of `manage.py studio`."""

import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import FrameType
from typing import TextIO

from studio.embedded import EmbeddedError, EmbeddedServer
from studio.embedded.address import data_dir
from studio.environment import Environment, Role
from studio.environment.folder import program
from studio.machine.account import ACCOUNTS, Account, choose_account
from studio.supervisor import address, database, home, programs
from studio.supervisor.database import FIRST_ACCOUNT, make_first_account
from studio.supervisor.programs import FIRST_PAUSE, LONGEST_PAUSE, Child
from studio.supervisor.rehearsal import Rehearsal
from studio.supervisor.reload import Reload

NAME_WIDTH = 8

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
GLANCE = 0.2


class Console:
    """The terminal: the supervisor's own lines, and its programs' lines with their names."""

    def __init__(self, out: TextIO) -> None:
        self.out = out

    def say(self, text: str) -> None:
        for line in text.splitlines():
            self._write(f"{'reprise':<{NAME_WIDTH}}│ {line}")

    def pass_on(self, name: str, line: str) -> None:
        self._write(f"{name:<{NAME_WIDTH}}│ {line}")

    def say_once(self, account: str, password: str) -> None:
        """Show the generated password. It is stored nowhere else."""
        self.say(
            f"First account: {account}   password: {password}   "
            f"(shown only now; to change it: {program()} changepassword {account})"
        )

    def _write(self, line: str) -> None:
        # The reader of our output may be gone; keep the programs running.
        with suppress(OSError):
            print(line, file=self.out, flush=True)


class StopRequestedError(BaseException):
    """A signal asked us to stop before everything was up. Like KeyboardInterrupt, it is not an Exception."""


class Supervisor:
    """Owns the embedded database, the web process and the cluster; none of them outlives it."""

    def __init__(self, environment: Environment, console: Console) -> None:
        self.environment = environment
        self.console = console
        self.server = None if environment.database_url else EmbeddedServer(environment.home)
        self.server_pause = FIRST_PAUSE
        # No program that we start needs it.
        self.password = os.environ.pop("REPRISE_ADMIN_PASSWORD", None)
        self.web = programs.web(environment)
        self.cluster = programs.cluster(environment)
        self.leaving: list[Child] = []  # earlier clusters, which finish their bodies
        self.reload: Reload | None = None
        self.listener: socket.socket | None = None
        self.stops = 0
        self.is_starting = True
        self.is_announced = False

    def run(self) -> None:
        """Run until a signal asks to stop and everything has stopped."""
        host, port = self.environment.host, self.environment.port
        with self._signals(), home.hold(self.environment.home, address.url(host, port)):
            try:
                address.require_free(host, port)
                self._start()
                self.is_starting = False
                self._watch()
            except StopRequestedError:
                pass
            finally:
                self.is_starting = False
                self._stop()

    def _start(self) -> None:
        account = choose_account(self.environment.home, data_dir(self.environment.home))
        with self._leave_root(account):
            if self.server:
                self.console.say("Starting the embedded PostgreSQL")
                self.server.start()
            if migrated := database.prepare(self.server):
                self.console.say(f"Migrated the database: {', '.join(migrated)}")
            password = make_first_account(self.password)
            self.password = None
        database.let_go()
        if password:
            self.console.say_once(FIRST_ACCOUNT, password)
        now = time.monotonic()
        self.web.start(now)
        self.cluster.start(now)
        if self.environment.reloads:
            self.reload = Reload(self.environment, self.web.account)

    @contextmanager
    def _leave_root(self, account: Account | None) -> Iterator[None]:
        """Let web and workers run as `account` if it can. Test that while the block starts the database."""
        if account is None:
            home.close_to_others(self.environment.home)
            yield
            if os.geteuid() == 0:
                self.console.say(f"Web and workers run as root: there is no account {', '.join(ACCOUNTS)}")
            return
        home.give(self.environment.home, account)
        rehearsal = Rehearsal(account, programs.variables(Role.COMMAND))
        try:
            yield
            failure = rehearsal.failure(database.user())
        finally:
            rehearsal.end()
        if failure:
            home.take_back(self.environment.home, account)
            self.console.say(f"Web and workers run as root: {account} cannot run them ({failure})")
        else:
            self._hand_over(account)

    def _hand_over(self, account: Account) -> None:
        environment = self.environment
        if address.is_reserved(environment.port):
            self.listener = address.listen(environment.host, environment.port)
            self.web = programs.web(environment, self.listener.fileno())
        for child in self._children():
            child.account = account

    def _watch(self) -> None:
        while not self.stops:
            self._wait()
            self._print_output()
            self._announce()
            self._revive(time.monotonic())
            self._reload(time.monotonic())

    def _wait(self) -> None:
        """Wait briefly for output, then check which programs ended."""
        with selectors.DefaultSelector() as selector:
            for child in (*self._children(), *self.leaving):
                if child.process is not None and child.process.stdout is not None:
                    selector.register(child.process.stdout, selectors.EVENT_READ)
            selector.select(GLANCE)

    def _print_output(self) -> None:
        for child in (*self._children(), *self.leaving):
            for line in child.read_lines():
                self.console.pass_on(child.name, line)

    def _announce(self) -> None:
        host, port = self.environment.host, self.environment.port
        if not self.is_announced and self.web.is_running and address.answers(host, port):
            self.is_announced = True
            self.console.say(f"Reprise is ready: {self._url()}   (Ctrl-C stops it)")

    def _url(self) -> str:
        if self.environment.is_secure:
            return f"{self.environment.origins[0]}/"
        return address.url(self.environment.host, self.environment.port)

    def _revive(self, now: float) -> None:
        if self.server and self.server.has_ended:
            self._revive_server()
        for child in self._children():
            if child.process is not None and not child.is_running:
                self.console.say(child.ended(now))
            elif child.process is None and now >= child.start_again_at:
                child.start(now)

    def _reload(self, now: float) -> None:
        """Replace web and workers once changed code can be loaded."""
        for child in [child for child in self.leaving if not child.is_running]:
            child.kill()
            self.leaving.remove(child)
        what, failure = self.reload.look(now) if self.reload else ("", "")
        if failure:
            self.console.say(f"Not reloaded: {what} changed. {failure} What was loaded before runs on.")
        elif what:
            self.console.say(f"Reloaded: {what} changed")
            self._replace_programs(now)

    def _replace_programs(self, now: float) -> None:
        former = self.cluster
        self.cluster = replace(former, process=None, pause=FIRST_PAUSE, unfinished_line=b"")
        if former.is_running:
            former.leave()
            self.leaving.append(former)
        self.cluster.start(now)
        self._stop_child(self.web)
        self.web.pause = FIRST_PAUSE
        self.web.start(time.monotonic())

    def _revive_server(self) -> None:
        assert self.server is not None
        self.console.say("The embedded PostgreSQL ended; starting it again")
        try:
            self.server.start()
            self.server_pause = FIRST_PAUSE
        except EmbeddedError as error:
            self.console.say(f"{error}\nTrying again in {self.server_pause:g} s")
            time.sleep(self.server_pause)
            self.server_pause = min(self.server_pause * 2, LONGEST_PAUSE)

    def _stop(self) -> None:
        """Stop web, then workers, then the database."""
        if not (self.server and self.server.process) and not any(child.process for child in self._children()):
            return
        self.console.say("Stopping; a second Ctrl-C hurries")
        if self.reload:
            self.reload.end()
        for child in self.leaving:
            child.terminate()
        for child in (*self._children(), *self.leaving):
            self._stop_child(child)
        if self.server:
            self.server.stop()
        self.console.say("Stopped")

    def _stop_child(self, child: Child) -> None:
        child.terminate()
        deadline = time.monotonic() + child.grace
        while child.is_running and time.monotonic() < deadline and self.stops < 2:
            self._wait()
            self._print_output()
        self._print_output()
        child.kill()

    def _children(self) -> tuple[Child, Child]:
        return self.web, self.cluster

    @contextmanager
    def _signals(self) -> Iterator[None]:
        former = {number: signal.signal(number, self._on_signal) for number in STOP_SIGNALS}
        try:
            yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.stops += 1
        if self.is_starting:
            self.is_starting = False
            raise StopRequestedError


def run(environment: Environment) -> None:
    Supervisor(environment, Console(sys.stdout)).run()
