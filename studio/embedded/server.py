"""Start and stop the embedded PostgreSQL."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from studio.embedded.access import write_rules
from studio.embedded.address import DATABASE, USER, socket_dir
from studio.embedded.place import EmbeddedError, Place, find_place
from studio.machine.account import plain_environment, private
from studio.machine.mortal import dies_with_parent

# Durability settings are on the command line, where no file in the data directory can override them.
SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "max_connections": "200",
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # Error details and logged statements contain params, outputs and payloads.
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
}
START_TIMEOUT = 60
MAX_LOG_BYTES = 20 * 1024 * 1024


class EmbeddedServer:
    """An embedded PostgreSQL with its files under `home`, on a Unix socket only."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.log = home / "postgresql.log"
        self.place: Place | None = None
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server and wait until it answers; raise EmbeddedError if it does not.

        Call it from the main thread: the server is tied to the life of the thread that starts it.
        """
        self.place = find_place(self.home)
        self._wait_for_a_former_server(self.place)
        if not self.place.cluster.exists():
            _make_cluster(self.place)
        self._make_socket_dir(self.place)
        self.process = self._launch(self.place)
        self._wait_until_ready(self.place, self.process)
        self._make_database()

    def stop(self, timeout: float = 10) -> None:
        """Stop the server: disconnect clients, write all data. After `timeout` seconds, stop it as in a crash."""
        if self.process is None:
            return
        for sign, patience in ((signal.SIGINT, timeout), (signal.SIGQUIT, 5.0)):
            self.process.send_signal(sign)
            try:
                self.process.wait(patience)
                return
            except subprocess.TimeoutExpired:
                continue
        self.process.kill()
        self.process.wait()

    @property
    def has_ended(self) -> bool:
        """Return whether the started server has ended by itself."""
        return self.process is not None and self.process.poll() is not None

    def dsn(self, database: str = DATABASE) -> str:
        return make_conninfo(host=str(socket_dir(self.home)), user=USER, dbname=database, connect_timeout=5)

    def _make_socket_dir(self, place: Place) -> None:
        directory = socket_dir(self.home)
        if directory.resolve() == place.data:
            return
        owner = place.account.uid if place.account else os.geteuid()
        directory.mkdir(mode=0o700, exist_ok=True)
        # Everyone can guess the name and write to the parent: never use a directory of somebody else.
        if directory.is_symlink() or directory.stat().st_uid not in (owner, os.geteuid()):
            raise EmbeddedError(f"{directory} is in the way of the database's socket: remove it.")
        directory.chmod(0o700)
        if place.account:
            os.chown(directory, place.account.uid, place.account.gid)

    def _settings(self, place: Place) -> dict[str, str]:
        directory = {"unix_socket_directories": _quoted(socket_dir(self.home).resolve())}
        return SETTINGS | write_rules(place.data, place.account) | directory

    def _launch(self, place: Place) -> subprocess.Popen[bytes]:
        command = [str(place.programs / "postgres"), "-D", str(place.cluster)]
        for name, value in self._settings(place).items():
            command += ["-c", f"{name}={value}"]
        if self.log.exists() and self.log.stat().st_size > MAX_LOG_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))
        with open(self.log, "ab", opener=private) as log:
            if place.account:
                os.fchown(log.fileno(), place.account.uid, place.account.gid)
            return subprocess.Popen(
                command,
                cwd=place.data,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=plain_environment(),
                start_new_session=True,
                preexec_fn=dies_with_parent(signal.SIGINT),
                **place.as_account(),
            )

    def _wait_until_ready(self, place: Place, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise EmbeddedError(
                    f"The embedded PostgreSQL did not start. Its log ends:\n{self._log_end()}"
                )
            if _status(place) == (process.pid, "ready"):
                return
            time.sleep(0.02)
        self.stop()
        raise EmbeddedError(
            f"The embedded PostgreSQL was not ready within {START_TIMEOUT} s. Its log ends:\n{self._log_end()}"
        )

    def _wait_for_a_former_server(self, place: Place) -> None:
        """Wait for a server whose supervisor was killed to shut down; remove the lock file of one that crashed."""
        deadline = time.monotonic() + START_TIMEOUT
        while (former := _status(place)) is not None:
            if not _is_postgres(former[0]):
                (place.cluster / "postmaster.pid").unlink(missing_ok=True)
                return
            if time.monotonic() > deadline:
                raise EmbeddedError(
                    f"Another PostgreSQL (process {former[0]}) is using {place.data}. Stop it, then start again."
                )
            time.sleep(0.05)

    def _make_database(self) -> None:
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            if (
                connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
                is None
            ):
                connection.execute(f"CREATE DATABASE {DATABASE}")

    def _log_end(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(lines[-8:])


def _make_cluster(place: Place) -> None:
    """Create the server's files, under another name first: an interrupted start must not look complete."""
    unfinished = place.cluster.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    done = subprocess.run(
        [
            str(place.programs / "initdb"),
            f"--pgdata={unfinished}",
            f"--username={USER}",
            "--auth-local=peer",
            "--auth-host=reject",
            "--encoding=UTF8",
            "--locale=C",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--no-instructions",
        ],
        cwd=place.data,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=plain_environment(),
        **place.as_account(),
    )
    if done.returncode != 0:
        raise EmbeddedError(
            f"The embedded PostgreSQL could not make its data directory:\n{done.stderr.strip()}"
        )
    unfinished.rename(place.cluster)


def _status(place: Place) -> tuple[int, str] | None:
    """Return process id and state from the server's lock file, or None if there is none."""
    try:
        lines = (place.cluster / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return None
    if not lines:
        return None
    return int(lines[0]), lines[7].strip() if len(lines) > 7 else "starting"


def _is_postgres(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    try:
        return "postgres" in Path(f"/proc/{pid}/comm").read_text()
    except FileNotFoundError:
        # No /proc on this system: the process exists, so trust the file.
        return not Path("/proc").is_dir()


def _quoted(directory: Path) -> str:
    # The setting is a list; quotes protect commas and spaces in a path.
    return '"' + str(directory).replace('"', '""') + '"'
