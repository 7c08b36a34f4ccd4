"""Everything that `make run` starts, with nothing to do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psycopg

from tests.bench import driver, machine, marks
from tests.bench.figures import Beside, Figure
from tests.bench.ground import Ground
from tests.bench.sizes import Sizes

# How the server's log begins the line of a statement that a client sent.
STATEMENTS = (b"LOG:  statement: ", b"LOG:  execute ")


def quiet(ground: Ground, sizes: Sizes) -> Iterator[Figure]:
    driver.clear()
    ground.kill_cluster()
    ground.stop_database()
    ground.stack.log.write_bytes(b"")  # of an earlier start nothing must be read
    ground.stack.start()
    try:
        yield from _use(ground, sizes)
        yield _first_start()
    finally:
        ground.stack.stop()
        ground.server.start()


def _use(ground: Ground, sizes: Sizes) -> Iterator[Figure]:
    log = ground.server.log
    _wait_for_cluster(ground)
    _log_statements(ground, "all")
    time.sleep(sizes.settle_seconds)
    before, cpu = log.stat().st_size, machine.Cpu(_programs(ground))
    time.sleep(sizes.quiet_seconds)
    shares, statements = cpu.shares(), _statements(log, before)
    _log_statements(ground, "none")
    everything = shares.pop("everything")
    shares["supervisor"] = max(0.0, everything - sum(shares.values()))
    yield Figure("idle", ", ".join(shares), 100 * everything, "% of a core")
    for name, share in shares.items():
        yield Figure("idle", f"{name} alone", 100 * share, "% of a core")
    yield Figure("idle", "statements", statements / sizes.quiet_seconds, "a second")


def _programs(ground: Ground) -> dict[str, int]:
    """Return the processes at the head of each part of the stack."""
    assert ground.stack.process is not None
    supervisor = ground.stack.process.pid
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    commands = {int(child): Path(f"/proc/{child}/cmdline").read_text() for child in children}
    found = {"everything": supervisor}
    for name, word in (("database", "postgres"), ("web", "daphne"), ("workers", "workers")):
        (found[name],) = [child for child, command in commands.items() if word in command]
    return found


def _wait_for_cluster(ground: Ground) -> None:
    with psycopg.connect(ground.stack.dsn(), autocommit=True) as connection:
        ends_at = time.monotonic() + driver.PATIENCE
        while not connection.execute("SELECT 1 FROM engine_worker WHERE role = 'cluster'").fetchall():
            if time.monotonic() > ends_at:
                raise TimeoutError("no cluster")
            time.sleep(0.05)


def _log_statements(ground: Ground, which: str) -> None:
    with psycopg.connect(ground.stack.dsn(), autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET log_statement = '{which}'")
        connection.execute("SELECT pg_reload_conf()")


def _statements(log: Path, offset: int) -> int:
    with log.open("rb") as file:
        file.seek(offset)
        return sum(any(begin in line for begin in STATEMENTS) for line in file)


def _first_start() -> Figure:
    """What a person notices who starts the first instance after the quiet."""
    (one,) = driver.names(1)
    with marks.Marks() as log:
        marks.mark(marks.CALLED, one)
        params = {"inst": one, "n": 1, "size": 0, "ms": 0, "marks": "all"}
        driver.workflow("chain").start(params, id=one)
        log.wait(marks.BODY, 1, seconds=driver.PATIENCE)
        late = (log.first(marks.BODY)[one] - log.first(marks.CALLED)[one]) / 1e6
    return Figure("idle", "first start() after it to its body", late, "ms", Beside.ONE_COMMIT)
