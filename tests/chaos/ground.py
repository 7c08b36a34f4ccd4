"""Where it all happens: two machines with everything that people run, one database, one ledger."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE

import psycopg

from studio.embedded import DATABASE, USER, socket_dir
from studio.embedded.address import SOCKET_NAME, data_dir
from studio.embedded.place import MAJOR_VERSION
from studio.machine.mortal import dies_with_parent
from tests.chaos.family import Family
from tests.chaos.plan import Plan
from tests.live import PROJECT, READY, LiveStack, free_port
from tests.process import ledger
from tests.process.nursery import Nursery
from tests.processes import MARK

SETTINGS = "tests.process.settings"


class Ground:
    """Machine `a` is `make run` with the embedded database; machine `b` reaches that one through a proxy."""

    def __init__(self, home: Path, plan: Plan) -> None:
        self.home, self.plan = home, plan
        self.run = secrets.token_hex(8)
        self.ledger = ledger.Ledger(home / "ledger" / "lines")
        self.ledger.path.parent.mkdir()
        self.ledger.clear()
        self.log = home / "clients.log"
        shared = self._shared()
        self.a = LiveStack(self._home("a"), **shared)
        self.proxy_port = free_port()
        url = f"postgresql://{USER}@127.0.0.1:{self.proxy_port}/{DATABASE}"
        self.b = LiveStack(self._home("b"), **shared, DATABASE_URL=url)
        self.machines = {"a": self.a, "b": self.b}
        self.clients: Nursery | None = None
        self.strays: dict[int, str] = {}
        self.proxy: subprocess.Popen[bytes] | None = None

    def _home(self, name: str) -> Path:
        home = self.home / name
        home.mkdir()
        home.chmod(0o755)
        return home

    def _shared(self) -> dict[str, str]:
        return {
            "DJANGO_SETTINGS_MODULE": SETTINGS,
            "REPRISE_APPS": "tests.chaos",
            "REPRISE_TEST_LEASE": str(self.plan.lease),
            "SECRET_KEY": secrets.token_urlsafe(64),
            ledger.VARIABLE: str(self.ledger.path),
        }

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Start the machines; leave nothing of them, and fail if anything of them is left."""
        try:
            self.a.start(timeout=120)
            with self.connect() as connection:
                connection.execute("CREATE TABLE chaos_sale (instance text, step text)")
            self.proxy = self.launch("tests.chaos.proxy", str(self.proxy_port), str(self.socket))
            self.b.launch()
            nursery = self.launch("tests.process.nursery", "tests.chaos.clients", stdin=PIPE, stdout=PIPE)
            self.clients = Nursery(nursery)
            self.b.wait_for_output(READY, 120)
            yield
        finally:
            self.close()

    def close(self) -> None:
        """End what still runs, whatever happened; note what does not end when it is told to."""
        self.end_clients()
        if self.proxy is not None and self.proxy.poll() is None:
            self.proxy.kill()
            self.proxy.wait()
        for machine in (self.b, self.a):
            process = machine.process
            if process is not None and process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait(60)
                self.strays |= machine.left()

    def end_clients(self) -> None:
        if self.clients is not None:
            self.clients.close()
            self.clients = None

    # Processes beside the machines

    def launch(self, module: str, *arguments: str, **pipes: int) -> subprocess.Popen[bytes]:
        """Run one of our modules with the machines' settings, on the database itself."""
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                cwd=PROJECT,
                env=self.a.variables | {"DATABASE_URL": self.url, "REPRISE_ROLE": "command", MARK: self.run},
                stdin=pipes.get("stdin", subprocess.DEVNULL),
                stdout=pipes.get("stdout", log),
                stderr=log,
                preexec_fn=dies_with_parent(signal.SIGKILL),
            )

    def hold_back(self, wanted: bool) -> None:
        """Have the clients start nothing new for now, or go on."""
        flag = self.ledger.path.with_name("held-back")
        if wanted:
            flag.touch()
        else:
            flag.unlink(missing_ok=True)

    def family(self, machine: str) -> Family:
        process = self.machines[machine].process
        assert process is not None
        return Family(process.pid)

    # The database

    @property
    def socket(self) -> Path:
        return socket_dir(self.a.home) / SOCKET_NAME

    @property
    def url(self) -> str:
        return f"postgresql://{USER}@/{DATABASE}?host={self.socket.parent}"

    @property
    def server_log(self) -> str:
        return (self.a.home / "postgresql.log").read_text(errors="replace")

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self.a.dsn(), autocommit=True, application_name="chaos")

    def postmaster(self) -> int:
        lines = (data_dir(self.a.home) / MAJOR_VERSION / "postmaster.pid").read_text().splitlines()
        return int(lines[0])

    def answers(self) -> bool:
        try:
            with self.connect() as connection:
                return connection.execute("SELECT true").fetchone() == (True,)
        except psycopg.OperationalError:
            return False

    def wait_for_answer(self, seconds: float = 60) -> float:
        """Return when the database answered."""
        ends_at = time.monotonic() + seconds
        while not self.answers():
            if time.monotonic() > ends_at:
                raise AssertionError(f"the database did not answer within {seconds} s")
            time.sleep(0.02)
        return time.monotonic()

    def outputs(self) -> str:
        """Return what the machines and the clients have said."""
        logs = (self.a.log, self.b.log, self.log)
        return "".join(one.read_text(errors="replace") for one in logs if one.exists())


def send(pid: int, sign: signal.Signals) -> bool:
    """Tell whether there was a process to send the signal to."""
    try:
        os.kill(pid, sign)
    except ProcessLookupError:
        return False
    return True
