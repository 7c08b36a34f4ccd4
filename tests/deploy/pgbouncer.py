"""PgBouncer with the file of docs/deploy, in front of a test's database."""

from __future__ import annotations

import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from studio.embedded import DATABASE, USER, EmbeddedServer, socket_dir
from studio.machine.mortal import dies_with_parent
from tests.deploy.files import adapted, program
from tests.live import free_port

PASSWORD = "of-a-test"


@contextmanager
def running(server: EmbeddedServer, **replaced: str) -> Iterator[str]:
    """Run one, with these texts of its file replaced; yield the address of the database through it."""
    with tempfile.TemporaryDirectory(prefix="pgbouncer-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        port = free_port()
        _write(directory, server, port, replaced)
        process = _launch(directory, server)
        try:
            url = f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{port}/{DATABASE}"
            _wait_until_it_answers(process, url, directory)
            yield url
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def _write(directory: Path, server: EmbeddedServer, port: int, replaced: dict[str, str]) -> None:
    place = {
        # Any database, as which user the client says: the server asks the kernel who PgBouncer is.
        "shop = host=127.0.0.1 port=5432 dbname=shop": f"* = host={socket_dir(server.home).resolve()}",
        "listen_port = 6432": f"listen_port = {port}\nunix_socket_dir =",
        "/etc/pgbouncer/userlist.txt": str(directory / "users.txt"),
    }
    (directory / "users.txt").write_text(f'"{USER}" "{PASSWORD}"\n')
    (directory / "pgbouncer.ini").write_text(adapted("pgbouncer.ini", **place, **replaced))


def _launch(directory: Path, server: EmbeddedServer) -> subprocess.Popen[bytes]:
    assert server.place is not None
    # The account of the server may connect to it, and PgBouncer refuses to be root.
    with (directory / "output.log").open("ab") as log:
        options: dict[str, Any] = dict(server.place.as_account())
        return subprocess.Popen(
            [program("pgbouncer", "pgbouncer"), str(directory / "pgbouncer.ini")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=dies_with_parent(signal.SIGTERM),
            **options,
        )


def _wait_until_it_answers(process: subprocess.Popen[bytes], url: str, directory: Path) -> None:
    ends_at = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(url, connect_timeout=5).close()
            return
        except psycopg.OperationalError as error:
            said = f"{error}\n{(directory / 'output.log').read_text()}"
        if process.poll() is not None or time.monotonic() > ends_at:
            raise AssertionError(said)
        time.sleep(0.05)
