"""Where it is measured: an embedded PostgreSQL on disk, and the cluster that `make run` starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from studio.embedded import EmbeddedServer
from studio.machine.mortal import dies_with_parent
from tests.bench import driver, machine, marks
from tests.live import PROJECT, LiveStack
from tests.processes import MARK, wait_until_none

GRACE_SECONDS = 20.0


class Ground:
    """One database, one cluster, and the driver's own Django on it."""

    def __init__(self, home: Path) -> None:
        self.server = EmbeddedServer(home)
        # With the settings that people get, whatever this shell has set.
        variables = {marks.VARIABLE: str(home / "marks"), "REPRISE_APPS": "tests.bench", "REPRISE_DEMO": "1"}
        self.stack = LiveStack(home, **variables)
        self.cluster: subprocess.Popen[bytes] | None = None
        self._has_django = False
        self._lost_cpu = 0.0

    def open(self) -> None:
        self.server.start()
        for name in ("DATABASE_URL", "HOST", "REPRISE_ORIGIN", "REPRISE_WORKERS", "REPRISE_SLOTS"):
            os.environ.pop(name, None)
        os.environ |= {name: value for name, value in self.stack.variables.items() if name != MARK}
        os.environ["DJANGO_SETTINGS_MODULE"] = "studio.settings"
        import django
        from django.core.management import call_command

        django.setup()
        self._has_django = True
        call_command("migrate", verbosity=0)

    def close(self) -> None:
        """Leave no process, whatever was going on."""
        for process in (self.stack.process, self.cluster):
            if process and process.poll() is None:
                process.send_signal(signal.SIGTERM)
        _kill(wait_until_none(self.stack.run, timeout=GRACE_SECONDS))
        for process in (self.stack.process, self.cluster):
            if process:
                process.wait()
        self.stop_database()

    def stop_database(self) -> None:
        if self._has_django:
            from django.db import connections

            connections.close_all()
        self.server.stop()

    # The cluster

    def start_cluster(self) -> None:
        """Start `manage.py workers` without waiting for it."""
        with self.stack.log.open("ab") as log:
            self.cluster = subprocess.Popen(
                [sys.executable, str(PROJECT / "manage.py"), "workers"],
                cwd=PROJECT,
                env=self.stack.variables | {"REPRISE_ROLE": "cluster"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the driver
                preexec_fn=dies_with_parent(signal.SIGTERM),
            )

    def kill_cluster(self) -> None:
        """Kill all its processes at once, as a power cut does."""
        if self.cluster:
            workers = self.workers()
            self._lost_cpu += machine.cpu_seconds(workers - {self.cluster.pid})
            _kill(workers)
            self.cluster.wait()
            _kill(wait_until_none(self.stack.run, timeout=5))
            self.cluster = None

    def workers(self) -> set[int]:
        """Return the processes of the cluster."""
        return machine.family(self.cluster.pid) if self.cluster else set()

    def lost_cpu(self) -> float:
        """Return the CPU time of killed processes, which no parent got to know."""
        return self._lost_cpu

    def wake_cluster(self) -> None:
        """Have a cluster whose workers are awake."""
        if self.cluster is None:
            self.start_cluster()
        driver.run("chain", driver.names(16), n=3, size=0, ms=0, marks="ends")

    def replace_cluster(self) -> None:
        """Have a cluster that remembers nothing, awake."""
        self.kill_cluster()
        self.wake_cluster()

    def log_end(self) -> str:
        return "\n".join(self.stack.output().splitlines()[-20:])


@contextmanager
def opened() -> Iterator[Ground]:
    """Have the ground with its database migrated; everything is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="reprise-bench-", dir=machine.disk()) as directory:
        Path(directory).chmod(0o755)  # the database's account has to enter it
        ground = Ground(Path(directory))
        try:
            ground.open()
            yield ground
        finally:
            # Whoever is impatient now would leave processes behind.
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            ground.close()


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
