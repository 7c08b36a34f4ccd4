"""Claims and reads: the statements of a shift that write no checkpoint, on a connection of their own."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

import psycopg

from engine.replay.host import Claimed
from engine.replay.records.history import History, Page
from engine.replay.records.other_instances import AwaitedState
from engine.replay.waiting.matching import Question
from engine.replay.waiting.relations import Awaiting
from engine.replay.waiting.wake_ups import WakeUp
from engine.steer import relations
from engine.worker.database import cluster_sql, history_sql, memory, rows, sql
from engine.worker.database.clock import DatabaseClock, ticks_ns
from engine.worker.database.heartbeat import lease_seconds
from engine.worker.database.leases import Leases
from engine.worker.database.limits import Limits
from engine.worker.database.memory import Memory
from engine.worker.database.shift_connection import ShiftConnection
from engine.worker.database.transient import until_answered
from engine.worker.database.worker_lock import taken_here

PAGE_EVENTS = 100
PAGE_BYTES = 512 * 1024  # as stored, for all instances requested at once
ALL = Question(0, None)
GO_BACK_AT_ONCE = 1000  # instances
AHEAD_SECONDS = 0.2  # an instance is claimed this long before it is due, and replayed meanwhile

Query = dict[str, object] | tuple[object, ...] | None
Claims = list[tuple[Claimed, History]]
R = TypeVar("R")

log = logging.getLogger("engine.reader")


class Reader:
    """Runs one statement at a time; the lock keeps claim, history and events in the order of the calls.

    When the connection breaks, it is opened again and the statement repeated: rows claimed by a lost answer are held
    without a cycle, so `on_reopened` is called. Transient errors are retried: the running bodies of this shift must not
    be abandoned because a statement was cancelled.
    """

    def __init__(self, connection: ShiftConnection, worker_id: int, clock: DatabaseClock) -> None:
        self._connection = connection
        self._worker_id = worker_id
        self._clock = clock
        self.on_reopened: Callable[[], None] = lambda: None
        self._lease = lease_seconds()
        self._leases = Leases(self._lease)
        self.memory = Memory()
        self.ahead_seconds = AHEAD_SECONDS
        self.late_seconds = 0.0  # how long due instances are left to other shifts
        self.late_new_seconds = 0.0  # the same for queued ones
        self._lock = asyncio.Lock()

    async def _fetch(self, statement: str, parameters: Query = None) -> list[rows.Row]:
        async def ask() -> list[rows.Row]:
            if isinstance(parameters, dict):
                return await self._connection.fetch(statement, parameters)
            return await (await self._connection.execute(statement, parameters)).fetchall()

        return await self._surely(ask)

    async def _surely(self, ask: Callable[[], Awaitable[R]]) -> R:
        return await until_answered(self._connection, ask, self.on_reopened)

    async def set_clock(self) -> None:
        await self._ask_time()

    async def _ask_time(self) -> int:
        sent = ticks_ns()
        [(now_us,)] = await self._fetch(sql.NOW)
        self._clock.set(now_us, sent_ns=sent, received_ns=ticks_ns())
        return int(now_us)

    async def take_front(self, workflows: list[str]) -> bool:
        """Become the front shift of these workflows, if there is none. Ends with the connection."""
        which = int.from_bytes(hashlib.sha256("\n".join(workflows).encode()).digest()[:4], signed=True)
        async with self._lock:
            [(taken,)] = await self._fetch(sql.TAKE_FRONT, (which,))
        return bool(taken)

    async def reap(self) -> list[int]:
        """Take back what dead workers held, and workers that do not renew their leases. Return the keys."""
        async with self._lock:
            over = await self._leases_over()
            values = {"lease": self._lease, "alive": taken_here(), "over": json.dumps(over)}
            return [key for (key,) in await self._fetch(sql.REAP, values)]

    async def _leases_over(self) -> list[dict[str, object]]:
        """Return the leases of live workers that may have expired."""
        now = asyncio.get_running_loop().time()
        silent = self._leases.see_beats(await self._fetch(sql.BEATS), now)
        if silent:
            self._leases.see_free(await self._fetch(sql.FREE, {"owners": silent}), now)
        return self._leases.over(now)

    async def follow_clock(self, workflows: list[str]) -> list[int]:
        """Ask for the database's time. If it was set back, queued instances stay due. Return their keys."""
        async with self._lock:
            now_us = await self._ask_time()
            if not self._leases.see_clock(now_us, asyncio.get_running_loop().time()):
                return []
            return [key for (key,) in await self._fetch(sql.DUE_AGAIN, {"workflows": workflows})]

    async def go_back(self, codes: Mapping[str, str]) -> list[int]:
        """Resume what was paused for changed code, if the code is back. Return the keys."""
        values: dict[str, object] = {
            "workflows": [*codes],
            "codes": [*codes.values()],
            "limit": GO_BACK_AT_ONCE,
        }
        async with self._lock:
            return [key for (key,) in await self._fetch(sql.GO_BACK, values)]

    async def claim(self, limits: Limits, limit: int, *, quarantined: bool) -> Claims:
        """Claim up to `limit` due instances, with their histories."""
        values: dict[str, object] = {
            "limit": self.memory.room(limit),
            "worker_id": self._worker_id,
            "lease": self._lease,
            "ahead": self._ahead,
            "late_new": self.late_new_seconds or -self.ahead_seconds,
        }
        async with self._lock:
            # Before the claim: instances without signals then are not asked for later events.
            as_of_us = self._clock.due_us()
            found = await self._surely(
                lambda: limits.claim(self._connection, quarantined=quarantined, **values)
            )
            claims = sorted((Claimed(*row) for row in found), key=lambda one: one.due_us)
            return await self._read_in_portions(claims, as_of_us)

    @property
    def _ahead(self) -> float:
        """Return how long before its time an instance is claimed; negative if it is left to others first."""
        return -self.late_seconds or self.ahead_seconds

    @property
    def ahead_us(self) -> int:
        return int(self._ahead * 1_000_000)

    async def _read_in_portions(self, claims: list[Claimed], as_of_us: int) -> Claims:
        """Read the histories, oldest first, as far as memory allows; release the other instances."""
        stored = await self._sizes(claims)
        found: Claims = []
        while claims and not (found and self.memory.is_full):
            some = memory.portion(claims, stored)
            histories = await self._histories(some, as_of_us)
            for one in some:
                self.memory.take(one, histories[one.key])
                found.append((one, histories[one.key]))
            claims = claims[len(some) :]
        if claims:
            await self._give_back(claims)
        return found

    async def _sizes(self, claims: list[Claimed]) -> dict[int, int]:
        old = [one for one in claims if one.fence > 1]
        return dict(await self._fetch(history_sql.HISTORY_SIZES, _which(old))) if len(old) > 1 else {}

    async def _give_back(self, claims: list[Claimed]) -> None:
        given = [{"key": one.key, "fence": one.fence, "due_us": one.due_us} for one in claims]
        log.info("no memory for the histories of %s instances, which were released", len(given))
        await self._fetch(sql.GIVE_BACK, {"worker_id": self._worker_id, "claims": json.dumps(given)})

    async def hold_back(self, limits: Limits) -> list[int]:
        """Mark due instances of full workflows as queued. Return their keys."""
        async with self._lock:
            return await self._surely(lambda: limits.hold_back(self._connection))

    async def _histories(self, claims: list[Claimed], as_of_us: int) -> dict[int, History]:
        old = [one for one in claims if one.fence > 1]
        which = _which(old)
        steps = await self._fetch(history_sql.HISTORY_STEPS, which) if old else []
        found = rows.histories((one.key for one in claims), steps)
        if rows.any_unsettled(found):
            rows.add_attempts(found, await self._fetch(history_sql.HISTORY_ATTEMPTS, which))
        signalled = [one.key for one in claims if one.signals]
        pages = await self._pages(signalled, ALL, as_of_us) if signalled else {}
        for one in claims:
            found[one.key].log_lines = one.log_lines
            found[one.key].events = pages.get(one.key) or Page([], as_of_us)
        return found

    async def _pages(self, keys: list[int], question: Question, as_of_us: int) -> dict[int, Page]:
        """Read a page of buffered events of each instance, in total about PAGE_BYTES."""
        found = await self._fetch(
            history_sql.BUFFERED_EVENTS,
            {
                "keys": keys,
                "after": question.after,
                "types": None if question.types is None else sorted(question.types),
                "limit": PAGE_EVENTS,
                "bytes": PAGE_BYTES,
            },
        )
        return rows.pages(keys, found, as_of_us, limit=PAGE_EVENTS, limit_bytes=PAGE_BYTES)

    async def next_due(self, limits: Limits) -> int | None:
        """Return when the next parked instance may be claimed, in microseconds."""
        async with self._lock:
            return await self._surely(lambda: limits.next_due(self._connection, ahead=self._ahead))

    async def held(self) -> dict[int, rows.Held]:
        """Return the state of the rows that this worker holds."""
        async with self._lock:
            found = await self._fetch(sql.HELD, {"worker_id": self._worker_id})
        return {row.key: row for row in map(rows.Held._make, found)}

    async def let_go(self, strays: dict[int, tuple[int, str | None]]) -> list[int]:
        """Release rows that this worker holds without a cycle, by key, or pause them with a reason. Return the keys."""
        given = [{"key": key, "fence": fence, "reason": reason} for key, (fence, reason) in strays.items()]
        async with self._lock:
            found = await self._fetch(sql.LET_GO, {"worker_id": self._worker_id, "strays": json.dumps(given)})
        return [key for (key,) in found]

    async def clear(self, claimed: Claimed) -> None:
        """Take a held instance out of quarantine."""
        try:
            async with self._lock:
                await self._fetch(
                    sql.CLEAR, {"key": claimed.key, "fence": claimed.fence, "worker_id": self._worker_id}
                )
        except psycopg.Error as error:  # it is quarantined again if its worker dies
            log.warning("instance %s could not be marked as harmless: %s", claimed.key, error)

    async def run_beside(self) -> None:
        """Clear the attempts that run here: a crash no longer counts against them."""
        async with self._lock:
            await self._fetch(sql.CLEAR_ATTEMPTS, {"worker_id": self._worker_id})

    async def beat(self, values: Mapping[str, object]) -> rows.Row:
        """Write the shift's row of `engine_worker`, with these values. Return what it says of a drain."""
        async with self._lock:
            [row] = await self._fetch(
                cluster_sql.BEAT, {"role": "shift", "worker_id": self._worker_id, **values}
            )
        return row

    async def leave(self) -> None:
        """Delete the row that `beat` wrote."""
        async with self._lock:
            await self._fetch(cluster_sql.LEAVE, {"worker_id": self._worker_id})

    async def count(self, sums: str) -> None:
        """Write what a shift has counted for charts (see `engine.worker.tally`)."""
        async with self._lock:
            await self._fetch(cluster_sql.COUNT, {"rows": sums})

    async def next_schedule(self, workflows: list[str]) -> float | None:
        """Return in how many seconds the next schedule of these workflows is due."""
        async with self._lock:
            [(seconds,)] = await self._fetch(cluster_sql.NEXT_SCHEDULE, {"workflows": workflows})
        return None if seconds is None else float(seconds)

    async def look(self) -> tuple[bool, bool]:
        """Return whether a dead worker left anything, and whether notices of ended instances are pending."""
        async with self._lock:
            [(has_orphans, has_parent_notices)] = await self._fetch(sql.LOOK)
        return bool(has_orphans), bool(has_parent_notices)

    async def events(self, key: int, question: Question) -> Page:
        """Return a page of the buffered events of an instance."""
        async with self._lock:
            return (await self._pages([key], question, self._clock.due_us()))[key]

    async def relations(self, claimed: Claimed, asking: Iterable[Awaiting]) -> list[AwaitedState]:
        """Return the outcomes of the instances that these steps wait for."""
        wanted = [{"seq": one.record.seq, **one.whom.to_json()} for one in asking]
        values: dict[str, object] = {
            "key": claimed.key,
            "generation": claimed.generation,
            "wanted": json.dumps(wanted),
        }
        async with self._lock:
            return [AwaitedState(*row) for row in await self._fetch(history_sql.RELATIONS, values)]

    async def wake_ups(self, claimed: Claimed, seqs: list[int]) -> list[WakeUp]:
        """Return until when these steps wait."""
        values: dict[str, object] = {"key": claimed.key, "generation": claimed.generation, "seqs": seqs}
        async with self._lock:
            return [WakeUp(*row) for row in await self._fetch(history_sql.WAKE_UPS, values)]

    async def has_parent_notices(self) -> bool:
        """Return whether notices of an ended instance are pending."""
        async with self._lock:
            [(has_some,)] = await self._fetch(relations.PENDING)
        return bool(has_some)

    async def ask(self, statement: str, parameters: Query = None) -> list[rows.Row]:
        """Execute a statement that is not part of a claim, in its turn."""
        async with self._lock:
            return await self._fetch(statement, parameters)

    async def notify_wake(self) -> None:
        async with self._lock:
            await self._fetch(sql.NOTIFY_WAKE)

    async def notify_quarantine(self) -> None:
        async with self._lock:
            await self._fetch(sql.NOTIFY_QUARANTINE)

    async def notify_changed(self, payload: str) -> None:
        async with self._lock:
            await self._fetch(sql.NOTIFY_CHANGED, (payload,))


def _which(claims: list[Claimed]) -> dict[str, object]:
    return {
        "keys": [one.key for one in claims],
        "generations": [one.generation for one in claims],
    }
