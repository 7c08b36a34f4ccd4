"""Who knows what was promised, and looks whether it is kept."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import psycopg

from engine.invariants import INVARIANTS
from engine.worker.database import claim_sql, flush_sql, sql
from tests.hand.clock import SimulatedClock
from tests.hand.worker import LEASE_SECONDS, Body, HandShift

# What only time may tell is told at the end: everything finishes. Nobody logs here what failed.
BY_TIME = ("nothing-is-overdue", "leases-are-swept", "failures-are-logged")
WITHOUT_TIME = [one for one in INVARIANTS if one.name not in BY_TIME]
ALL_INVARIANTS = "\nUNION ALL\n".join(
    f"SELECT '{one.name}', key, detail FROM ({one.query}) AS v{number} (key, detail)"
    for number, one in enumerate(WITHOUT_TIME)
)
PARAMETERS: dict[str, Any] = {"skew": 0, "grace": 1, "limited": [], "limits": []}

SNAPSHOT = """
    SELECT i.key, i.status, row_to_json(i)::text,
        (SELECT coalesce(json_agg(s ORDER BY s.generation, s.seq)::text, '[]') FROM engine_step s
            WHERE s.instance_id = i.key),
        (SELECT coalesce(json_agg(a ORDER BY a.generation, a.step_seq, a.number)::text, '[]') FROM engine_attempt a
            WHERE a.instance_id = i.key),
        (SELECT coalesce(json_agg(e ORDER BY e.key)::text, '[]') FROM engine_event e WHERE e.instance_id = i.key),
        (SELECT count(*) FROM engine_log l WHERE l.instance_id = i.key)
    FROM engine_instance i WHERE i.key = ANY (%s)
"""
# A restart from a step may drop any of the deliveries that came later.
MISSING_DELIVERIES = """
    SELECT instance_id, generation, array_agg(delivery ORDER BY delivery) FROM engine_step
    GROUP BY 1, 2 HAVING count(delivery) < max(delivery) AND count(kept_from) = 0
"""
REPEATED_LINES = """
    SELECT instance_id, generation, step_seq, attempt, message FROM engine_log WHERE position IS NULL
    GROUP BY 1, 2, 3, 4, 5 HAVING count(*) > 1
"""
PAUSING = ("waiting_for_pause", "paused")
FINAL = ("complete", "errored", "terminated")


class Broken(AssertionError):
    """A promise was broken."""


@dataclass
class Promises:
    """What callers were told about an instance."""

    is_paused: bool = False
    may_fail: bool = False  # the database was made to refuse its records
    events: dict[int, tuple[str, Any]] = field(default_factory=dict)
    dedup_keys: dict[str, tuple[int, str, Any]] = field(default_factory=dict)
    pauses: list[tuple[int, int]] = field(default_factory=list)  # paused from, until
    at_the_end: tuple[Any, ...] | None = None


class Oracle:
    """Looks at every statement of every worker, and at the tables after every rule."""

    def __init__(self, connection: psycopg.Connection[Any], clock: SimulatedClock) -> None:
        self._connection = connection
        self._clock = clock
        self.instances: dict[int, Promises] = {}
        self.holders: dict[int, tuple[HandShift, int]] = {}
        self._lease_until: dict[int, int] = {}
        self.ledger: dict[tuple[int, int, int, int], str] = {}
        self._lost: set[int] = set()  # instances that were taken from an owner
        self._arguments: dict[tuple[int, int, int], Any] = {}
        self._before: dict[int, tuple[Any, ...]] = {}
        self.fenced = 0

    def rows(self, query: str, parameters: Any = None) -> list[Any]:
        return self._connection.execute(query, parameters, prepare=True).fetchall()

    def snapshots(self, keys: list[int]) -> dict[int, tuple[Any, ...]]:
        return {row[0]: row for row in self.rows(SNAPSHOT, (keys,))}

    # What workers do

    def before(self, worker: HandShift, statement: str, parameters: Any) -> None:
        if statement is flush_sql.FLUSH:
            self._before = self.snapshots([one["key"] for one in json.loads(parameters["cycles"])])

    def after(self, worker: HandShift, statement: str, parameters: Any, rows: list[Any]) -> None:
        if statement in (claim_sql.CLAIM, claim_sql.CLAIM_QUARANTINED):
            for key, _, _, _, fence, *_ in rows:
                self._claimed(worker, key, fence)
        elif statement is sql.REAP:
            for (key,) in rows:
                self._reaped(key)
        elif statement is sql.LET_GO:
            for (key,) in rows:
                self._let_go(worker, key)
        elif statement is sql.RENEW:
            for key, (holder, _) in self.holders.items():
                if holder is worker:
                    self._lease_until[key] = self._lease()
        elif statement is flush_sql.FLUSH:
            self._flushed(worker, parameters, rows)

    def _lease(self) -> int:
        return self._clock.us + int(LEASE_SECONDS * 1_000_000)

    def _claimed(self, worker: HandShift, key: int, fence: int) -> None:
        if key in self.holders:
            raise Broken(f"{key} was claimed from under its owner")
        if self.instances[key].is_paused:
            raise Broken(f"{key} was claimed while it was paused")
        self.holders[key] = worker, fence
        self._lease_until[key] = self._lease()

    def _reaped(self, key: int) -> None:
        if key not in self.holders:
            raise Broken(f"{key} was taken from nobody")
        holder, _ = self.holders.pop(key)
        self._lost.add(key)
        if not holder.connection.closed and self._lease_until[key] >= self._clock.us:
            raise Broken(f"{key} was taken from an owner that lives")

    def _let_go(self, worker: HandShift, key: int) -> None:
        holder, fence = self.holders.pop(key)
        self._lost.add(key)
        if holder is not worker:
            raise Broken(f"{key} was let go of by one who does not hold it")
        cycle = worker.holds.get(key)
        if cycle is not None and cycle.claimed.fence == fence:
            raise Broken(f"{key} was let go of while it is driven")

    def _flushed(self, worker: HandShift, parameters: Any, rows: list[Any]) -> None:
        answers = {key: (is_ours, has_left) for key, is_ours, _, _, _, has_left, *_ in rows}
        after = self.snapshots(list(self._before))
        for one in json.loads(parameters["cycles"]):
            key, is_holder = one["key"], self.holders.get(one["key"]) == (worker, one["fence"])
            is_ours, has_left = answers.get(key, (None, False))
            if not is_holder:
                self.fenced += 1
                if after.get(key) != self._before.get(key):
                    raise Broken(f"{key} was written by one who does not hold it")
            elif is_ours is False:
                raise Broken(f"{key}: its holder was refused")
            elif self._before[key][1] == "waiting_for_pause" and after[key][1] not in FINAL:
                _nothing_began(self._before[key], after[key])
            if is_holder and has_left:
                del self.holders[key]

    def refused(self, parameters: Any) -> None:
        for one in json.loads(parameters["cycles"]):
            if one["key"] in self.instances:
                self.instances[one["key"]].may_fail = True

    def body_starts(self, worker: HandShift, body: Body) -> None:
        key, generation, seq, _ = body.key
        recorded = self.rows(
            "SELECT FROM engine_attempt WHERE instance_id = %s AND generation = %s AND step_seq = %s AND number = %s",
            body.key,
        )
        if not recorded:
            raise Broken(f"the body of {body.key} starts before its attempt is recorded")
        if body.key in self.ledger:
            raise Broken(f"the body of {body.key} starts twice")
        self.ledger[body.key] = ""
        given = self._arguments.setdefault((key, generation, seq), body.operation.args)
        if given != body.operation.args:
            raise Broken(f"step {seq} of {key} was given {given}, and now {body.operation.args}")

    def body_ends(self, body: Body, value: str) -> None:
        self.ledger[body.key] = value

    # What people do

    def restarted(self, key: int) -> None:
        """Expect nothing more of the last generation, and a new end."""
        self.holders.pop(key, None)
        self.instances[key].is_paused = False
        self.instances[key].at_the_end = None

    def deleted(self, key: int) -> None:
        del self.instances[key]

    # What the tables say

    def check(self) -> None:
        """Look at everything that holds at every moment."""
        violations = self.rows(ALL_INVARIANTS, PARAMETERS)
        if violations:
            raise Broken(f"the tables violate {violations}")
        if missing := self.rows(MISSING_DELIVERIES):
            raise Broken(f"the handler got an outcome before these, which is not recorded: {missing}")
        statuses = dict(self.rows("SELECT key, status FROM engine_instance"))
        if statuses.keys() != self.instances.keys():
            raise Broken(f"instances {sorted(statuses)} are not those that were started")
        for key, status in statuses.items():
            self._check_status(key, status)

    def _check_status(self, key: int, status: str) -> None:
        promises = self.instances[key]
        if status == "errored" and not promises.may_fail:
            self._check_deadline(key)
        if status == "paused" and promises.may_fail:
            return  # given up
        if status not in FINAL and promises.is_paused != (status in PAUSING):
            raise Broken(f"{key} is {status}, and {'' if promises.is_paused else 'not '}paused by its people")
        if status in FINAL and promises.at_the_end is None:
            promises.at_the_end = self.snapshots([key])[key]

    def _check_deadline(self, key: int) -> None:
        """Nothing else makes an instance fail."""
        query = "SELECT error::text, finished_at >= deadline_at FROM engine_instance WHERE key = %s"
        [(error, is_late)] = self.rows(query, (key,))
        if json.loads(error)["type"] != "WorkflowTimeoutError" or not is_late:
            raise Broken(f"{key} has failed: {error}")

    def check_the_end(self) -> None:
        """Look at what must be true of everything that has finished."""
        self.check()
        if repeated := self.rows(REPEATED_LINES):
            raise Broken(f"lines are there more than once: {repeated}")
        for key, now in self.snapshots(list(self.instances)).items():
            promises = self.instances[key]
            if promises.at_the_end != now:
                raise Broken(f"{key} has changed after its end: {promises.at_the_end} became {now}")
            steps, attempts, events = (json.loads(text) for text in now[3:6])
            self._check_bodies(steps, attempts)
            self._check_events(promises, events)

    def _check_bodies(self, steps: list[Any], attempts: list[Any]) -> None:
        for step in steps:
            if step["kind"] == "do" and step["status"] == "complete":
                ran = step["kept_from"] or step["generation"]
                done = self.ledger.get((step["instance_id"], ran, step["seq"], step["attempts"]))
                if step["output"] != done:
                    raise Broken(f"step {step} is recorded with another output than its body's, {done!r}")
        for attempt in attempts:
            if attempt["status"] == "lost" and attempt["instance_id"] not in self._lost:
                raise Broken(f"attempt {attempt} is lost, and its worker kept the instance")
            if attempt["status"] in ("complete", "errored"):
                of = attempt["instance_id"], attempt["generation"]
                where = (*of, attempt["step_seq"], attempt["number"])
                if where not in self.ledger:
                    raise Broken(f"attempt {where} has ended, and its body never started")

    def _check_events(self, promises: Promises, events: list[Any]) -> None:
        found = {event["key"]: (event["type"], event["payload"]) for event in events}
        if found != promises.events:
            raise Broken(f"events {promises.events} were accepted, {found} are there")


def _nothing_began(before: tuple[Any, ...], after: tuple[Any, ...]) -> None:
    # What was complete at once has reached the handler: it must not be lost.
    old, new = (
        {(step["generation"], step["seq"]) for step in json.loads(one[3]) if step["delivery"] is None}
        for one in (before, after)
    )
    if new - old:
        raise Broken(f"{before[0]}: steps {new - old} began after a pause was asked for")
    old, new = (
        {
            (one["generation"], one["step_seq"], one["number"])
            for one in json.loads(row[4])
            if one["status"] == "running"
        }
        for row in (before, after)
    )
    if new - old:
        raise Broken(f"{before[0]}: attempts {new - old} began after a pause was asked for")
