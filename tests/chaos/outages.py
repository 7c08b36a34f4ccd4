"""What is done to the database and to the way there."""

from __future__ import annotations

import signal
import time
from contextlib import suppress

import psycopg

from tests.chaos.faults import Fault
from tests.chaos.ground import Ground, send

LEFT_FREE = 5
CUT_EVERY = 0.2
CLIENTS = "backend_type = 'client backend' AND pid <> pg_backend_pid()"
CUT = f"""
    SELECT pg_terminate_backend(pid) FROM (
        SELECT pid FROM pg_stat_activity WHERE {CLIENTS} AND application_name <> 'chaos' ORDER BY random() LIMIT 1
    ) AS victim
"""


def restart(ground: Ground, kind: str) -> Fault:
    """Take the server down, as a crash does (immediate) or an administrator (fast); its supervisor revives it."""
    sign = signal.SIGQUIT if kind.endswith("immediate") else signal.SIGINT
    former = ground.postmaster()
    fault = Fault(kind, time.monotonic())
    send(former, sign)
    ends_at = time.monotonic() + 60
    while _still(ground, former):
        assert time.monotonic() < ends_at, "the database did not go down"
        time.sleep(0.01)
    fault.until = ground.wait_for_answer()
    fault.is_real = ground.postmaster() != former
    return fault


def crash_backend(ground: Ground) -> Fault | None:
    """Kill one session's process, upon which the server ends all sessions and recovers."""
    query = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'reprise journal%' LIMIT 1"
    with ground.connect() as connection:
        found = connection.execute(query).fetchall()
        if not found:
            return None
        fault = Fault("backend crash", time.monotonic())
        fault.is_real = send(found[0][0], signal.SIGKILL)
        with suppress(psycopg.OperationalError):
            while True:  # until this session is ended as well
                connection.execute("SELECT pg_sleep(0.01)")
    fault.until = ground.wait_for_answer()
    return fault


class Cuts:
    """Ends one session after the other, five a second."""

    def __init__(self, ground: Ground) -> None:
        self.connection = ground.connect()
        self.fault = Fault("backends cut", time.monotonic(), notes={"cut": 0})

    def push(self) -> None:
        if self.connection.closed:
            return
        with suppress(psycopg.OperationalError):
            self.fault.notes["cut"] += self.connection.execute(CUT).fetchone() == (True,)

    def end(self) -> Fault:
        self.connection.close()
        self.fault.until = time.monotonic()
        self.fault.is_real = self.fault.notes["cut"] > 0
        return self.fault


class Crowd:
    """Takes all connections but five."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.held: list[psycopg.Connection] = []
        self.is_over = False
        self.fault = Fault("connections exhausted", time.monotonic(), notes={"refusals": 0, "held": 0})

    def push(self) -> None:
        """Take what has become free."""
        if self.is_over:
            return
        try:
            while True:
                self.held.append(self.ground.connect())
        except psycopg.OperationalError as error:
            self.fault.notes["refusals"] += "too many clients" in str(error)
        self.fault.notes["held"] = max(self.fault.notes["held"], len(self.held))
        self._close(LEFT_FREE)

    def end(self) -> Fault:
        self.is_over = True
        self._close(len(self.held))
        self.fault.until = time.monotonic()
        self.fault.is_real = self.fault.notes["refusals"] > 0
        return self.fault

    def _close(self, count: int) -> None:
        for connection in self.held[len(self.held) - count :]:
            connection.close()
        del self.held[len(self.held) - count :]


class Hold:
    """A transaction that is left open, as a forgotten console leaves one."""

    def __init__(self, ground: Ground) -> None:
        self.fault = Fault("idle in transaction", time.monotonic())
        self.connection = ground.connect()
        self.connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        self.connection.execute("SELECT pg_current_xact_id(), count(*) FROM engine_instance")

    def end(self) -> Fault:
        self.fault.until = time.monotonic()
        # A restart of the server may have ended it before its time.
        self.fault.notes["lived"] = self.connection.info.transaction_status.name
        self.connection.close()
        return self.fault


class BlackHole:
    """Nothing that machine `b` sends to the database arrives, and no answer comes."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.fault = Fault("black hole", time.monotonic(), machine="b")
        self._signal(signal.SIGUSR1)

    def end(self) -> Fault:
        self._signal(signal.SIGUSR2)
        self.fault.until = time.monotonic()
        line = self.ground.ledger.wait_for(what="black hole")
        self.fault.notes["held"] = line.attempt
        self.fault.is_real = line.attempt > 0
        return self.fault

    def _signal(self, sign: signal.Signals) -> None:
        assert self.ground.proxy is not None
        self.ground.proxy.send_signal(sign)


def _still(ground: Ground, former: int) -> bool:
    """Tell whether the server is still the one that was told to go."""
    try:
        return ground.postmaster() == former
    except (FileNotFoundError, IndexError, ValueError):
        return False
