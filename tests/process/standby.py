"""A second PostgreSQL that follows an embedded one, and may be promoted when that is gone."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import psycopg

from studio.embedded import DATABASE, USER, EmbeddedServer, socket_dir
from studio.embedded.place import find_place
from studio.machine.account import plain_environment

PATIENCE = 60.0


class Standby(EmbeddedServer):
    """Streams from a primary. Every commit of that waits for it, from when it has caught up."""

    def follow(self, primary: EmbeddedServer) -> None:
        """Copy the primary's files, start on them, and have the primary's commits wait."""
        self.place = find_place(self.home)
        subprocess.run(
            [
                str(self.place.programs / "pg_basebackup"),
                f"--host={socket_dir(primary.home).resolve()}",
                f"--username={USER}",
                f"--pgdata={self.place.cluster}",
                "--checkpoint=fast",
                "--wal-method=stream",
                "--write-recovery-conf",
            ],
            cwd=self.place.data,
            env=plain_environment(),
            check=True,
            capture_output=True,
            **self.place.as_account(),
        )
        self._make_socket_dir(self.place)
        self.process = self._launch(self.place)
        with psycopg.connect(primary.dsn(), autocommit=True) as connection:
            _wait(connection, "SELECT state = 'streaming' FROM pg_stat_replication")
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            connection.execute("SELECT pg_reload_conf()")
            _wait(connection, "SELECT sync_state = 'sync' FROM pg_stat_replication")

    def promote(self) -> float:
        """Make it the primary; return when it took its first write."""
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute("SELECT pg_promote(wait => true)")
            connection.execute("CREATE TABLE promoted ()")
            connection.execute("DROP TABLE promoted")
        return time.monotonic()


def url(*homes: Path) -> str:
    """Return the address of whichever of the servers takes writes."""
    hosts = ",".join(str(socket_dir(home)) for home in homes)
    return f"postgresql://{USER}@/{DATABASE}?host={hosts}&target_session_attrs=read-write"


def _wait(connection: psycopg.Connection[tuple[object, ...]], question: str) -> None:
    ends_at = time.monotonic() + PATIENCE
    while connection.execute(question).fetchall() != [(True,)]:
        assert time.monotonic() < ends_at, question
        time.sleep(0.05)
