"""Start, watch and stop everything: the main path of `manage.py studio`."""

import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from studio.embedded import EmbeddedError, EmbeddedServer
from studio.embedded.address import data_dir
from studio.environment import Environment, Role
from studio.environment.folder import program
from studio.machine.account import ACCOUNTS, Account, choose_account
from studio.supervisor import address, database, home, programs
from studio.supervisor.console import Console, JsonConsole
from studio.supervisor.database import FIRST_ACCOUNT, make_first_account
from studio.supervisor.programs import FIRST_PAUSE, LONGEST_PAUSE, Child
from studio.supervisor.rehearsal import Rehearsal
from studio.supervisor.reload import Change, Reload
from studio.supervisor.successors import Successors
from studio.supervisor.trial import sentence

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
GLANCE = 0.2


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
        self.successors: Successors | None = None
        self.listener: socket.socket | None = None
        self.stops = 0
        self.is_starting = True
        self.is_announced = False

    def run(self) -> None:
        """Run until a signal asks to stop and everything has stopped."""
        host, port = self.environment.host, self.environment.port
        with self._signals(), home.hold(self.environment.home, address.url(host, port)):
            try:
                self._claim_address()
                self._start()
                self.is_starting = False
                self._watch()
            except StopRequestedError:
                pass
            finally:
                self.is_starting = False
                self._stop()

    def _claim_address(self) -> None:
        """Raise AddressError if the address is taken.

        Where code is reloaded, listen for the web process: the next one can then start while it still runs.
        """
        environment = self.environment
        if not environment.reloads:
            address.require_free(environment.host, environment.port)
            return
        self._listen()

    def _listen(self) -> None:
        environment = self.environment
        self.listener = address.listen(environment.host, environment.port)
        self.web = programs.web(environment, self.listener.fileno())

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
        if self.environment.reloads:
            self.reload = Reload(self.environment, self.web.account)
        now = time.monotonic()
        self.web.start(now)
        self.cluster.start(now)

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
        rehearsal = Rehearsal(account, programs.variables(Role.COMMAND, self.environment))
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
        if self.listener is None and address.is_reserved(self.environment.port):
            self._listen()
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
            loading = self.reload.child if self.reload else None
            for child in (*self._children(), *self.leaving, loading):
                if child and child.process is not None and child.process.stdout is not None:
                    selector.register(child.process.stdout, selectors.EVENT_READ)
            selector.select(GLANCE)

    def _print_output(self) -> None:
        for child in (*self._children(), *self.leaving):
            for line in child.read_lines():
                self.console.pass_on(child.name, line)

    def _announce(self) -> None:
        host, port = self.environment.host, self.environment.port
        if not self.is_announced and self.web.is_ready and address.answers(host, port):
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
        """Start new programs when changed code can be loaded. They take over when they have loaded it."""
        for child in [child for child in self.leaving if not child.is_running]:
            child.kill()
            self.leaving.remove(child)
        change = self.reload.look(now) if self.reload else None
        if change is not None:
            self._give_up_successors()
            if change.result.failure:
                self._say_not_reloaded(change)
            else:
                self.successors = Successors(change, self.web.anew(), self.cluster.anew())
                self.successors.start(now)
        elif self.successors is not None:
            self._hand_on(self.successors, now)

    def _say_not_reloaded(self, change: Change) -> None:
        self.console.say(
            f"Not reloaded: {change.what} changed. {change.result.failure} What was loaded before runs on."
        )

    def _say_reloaded(self, change: Change) -> None:
        self.console.say(f"Reloaded: {change.what} changed")
        if lacking := change.result.migrations:
            self.console.say(
                f"Not migrated: the database lacks {', '.join(lacking)}. Run `{program()} migrate`."
            )

    def _hand_on(self, successors: Successors, now: float) -> None:
        """Replace the programs if their successors are ready."""
        if failure := successors.failure(now):
            assert self.reload is not None
            self._give_up_successors()
            self.reload.look_again(successors.change, sentence(failure), now)
        elif successors.are_ready:
            self.successors = None
            self._say_reloaded(successors.change)
            for name, line in successors.lines:
                self.console.pass_on(name, line)
            self._let_leave(self.cluster)
            self.cluster = successors.cluster
            self._stop_child(self.web)
            self.web = successors.web

    def _give_up_successors(self) -> None:
        if self.successors is not None:
            self.successors.web.kill()
            self._let_leave(self.successors.cluster)
            self.successors = None

    def _let_leave(self, cluster: Child) -> None:
        if cluster.is_running:
            cluster.leave()
            self.leaving.append(cluster)
        else:
            cluster.kill()

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
        self._give_up_successors()
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
    console = JsonConsole if environment.logs_json else Console
    Supervisor(environment, console(sys.stdout)).run()
