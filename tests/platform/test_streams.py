"""Streams of a real daphne with a real cluster: what they say, who may read on, and what readers cost."""

from __future__ import annotations

import asyncio
import json
import select
import socket
import statistics
import time
import urllib.request
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.conftest import copy_database, home_directory
from tests.live import LiveStack
from tests.platform.subscriber import Event, Subscriber, address_of, token_of
from tests.processes import marked

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

ORDER = {"customer": "ada", "items": [{"sku": "s", "quantity": 2}]}
APPROVED = {"type": "order-approved", "payload": {"approved": True}}
MEBIBYTE = 1024 * 1024
LISTENERS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'reprise studio live'"


class Api:
    """A stack, a program's token, and what the program does with them."""

    def __init__(self, stack: LiveStack) -> None:
        self.stack = stack
        self.token = token_of(stack, "stream-reader")

    def post(self, path: str, body: object) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        address = f"{self.stack.url}/api/v1{path}"
        request = urllib.request.Request(address, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def start(self, id: str) -> None:
        self.post("/workflows/process-order/instances", {"id": id, "params": ORDER})

    def approve(self, id: str) -> None:
        self.post(f"/workflows/process-order/instances/{id}/events", APPROVED)

    def rows(self, statement: str, *values: object) -> list[Any]:
        with psycopg.connect(self.stack.dsn(), autocommit=True) as connection:
            done = connection.execute(statement, values)  # type: ignore[arg-type]
            return done.fetchall() if done.description else []

    def subscriber(self, id: str, query: str = "", *, token: str = "", **headers: str) -> Subscriber:
        address = address_of("process-order", id, query)
        return Subscriber(self.stack.port, address, token or self.token, **headers)

    async def status(self, id: str, query: str = "", *, token: str = "", **headers: str) -> int:
        """Return the status of the answer, and close the stream."""
        stream = await self.subscriber(id, query, token=token, **headers).open()
        await stream.close()
        return stream.status

    async def events(self, id: str, query: str = "", **headers: str) -> list[Event]:
        """Return all events up to the end."""
        stream = await self.subscriber(id, query, **headers).open()
        assert stream.status == 200, stream.head
        return (await asyncio.wait_for(stream.follow(), 60)).events

    def web(self) -> int:
        (pid,) = [pid for pid, command in marked(self.stack.run).items() if "daphne" in command]
        return pid

    def memory(self) -> int:
        lines = Path(f"/proc/{self.web()}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) * 1024

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.web()}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100


@pytest.fixture(scope="module")
def api(migrated_home: Path) -> Iterator[Api]:
    with home_directory() as home:
        copy_database(migrated_home, home)
        stack = LiveStack(home).start()
        try:
            yield Api(stack)
        finally:
            stack.stop()


def runs(story: Callable[[Api], Coroutine[Any, Any, None]]) -> Callable[[Api], None]:
    """Make a test of a coroutine."""

    def test(api: Api) -> None:
        asyncio.run(story(api))

    test.__doc__ = story.__doc__
    return test


def said(events: list[Event]) -> list[tuple[str, Any]]:
    """Return what events say, without the sentence that has the time in it."""
    return [(one.type, {name: value for name, value in one.data.items() if name != "why"}) for one in events]


@runs
async def test_the_history_comes_then_what_happens_then_the_end(api: Api) -> None:
    """CF-95."""
    api.start("cf-95")
    stream = await api.subscriber("cf-95").open()
    assert (stream.status, "text/event-stream" in stream.head) == (200, True)
    assert "Content-Encoding: identity" in stream.head
    assert "x-reprise-flow" not in stream.head.lower()
    following = asyncio.create_task(stream.follow())
    await stream.until("instance", status="waiting", waiting_for="event")
    await asyncio.to_thread(api.approve, "cf-95")
    await asyncio.wait_for(following, 60)
    steps = [(one.data["seq"], one.data["status"]) for one in stream.events if one.type == "step"]
    assert [seq for seq, status in steps if status == "complete"] == [1, 2, 3]
    assert stream.types[0] == "action"
    assert stream.types[-2:] == ["instance", "end"]
    assert stream.events[-2].data["status"] == "complete"
    assert stream.events[-1].data == {"status": "complete", "generation": 1, "is_deleted": False}


@runs
async def test_from_every_cursor_the_rest_follows(api: Api) -> None:
    """CF-95. After a disconnect at any place, nothing is missing and nothing comes twice."""
    api.start("resumed")
    api.approve("resumed")
    whole = await api.events("resumed")
    finished = await api.events("resumed")
    assert finished[-1].data == whole[-1].data
    for position, one in enumerate(finished[:-1]):
        rest = await api.events("resumed", f"cursor={one.id}")
        assert said(rest) == said(finished[position + 1 :])
        assert said(await api.events("resumed", Last_Event_ID=one.id)) == said(rest)
    # Those of the first stream, which has seen it happen, lead to the same end.
    for one in whole[:-1]:
        assert (await api.events("resumed", f"cursor={one.id}"))[-1].data == whole[-1].data


@runs
async def test_the_end_comes_also_if_its_kind_is_left_out(api: Api) -> None:
    """CF-95."""
    api.start("filtered")
    stream = await api.subscriber("filtered", "types=step,log").open()
    following = asyncio.create_task(stream.follow())
    await stream.until("step", seq=2)
    await asyncio.to_thread(api.approve, "filtered")
    await asyncio.wait_for(following, 60)
    assert {*stream.types} == {"step", "end"}
    assert stream.types[-1] == "end"


@runs
async def test_after_the_end_there_is_nothing_until_a_restart(api: Api) -> None:
    api.start("again")
    api.approve("again")
    end = (await api.events("again"))[-1]
    assert await api.status("again", Last_Event_ID=end.id) == 204
    api.post("/workflows/process-order/instances/again/restart", {"reason": "again"})
    stream = await api.subscriber("again", Last_Event_ID=end.id).open()
    following = asyncio.create_task(stream.follow())
    await stream.until("instance", generation=2, waiting_for="event")
    assert "generation" in stream.types
    await asyncio.to_thread(api.approve, "again")
    await asyncio.wait_for(following, 60)
    assert stream.events[-1].data == {"status": "complete", "generation": 2, "is_deleted": False}


@runs
async def test_what_cannot_be_read_is_a_problem(api: Api) -> None:
    api.start("refused")
    for query, status in (("cursor=x", 422), ("cursor=", 422), ("types=", 422), ("types=step,x", 422)):
        assert await api.status("refused", query) == status, query
    assert await api.status("nothing") == 404
    assert await api.status("refused", token="rpr_no") == 401


@pytest.mark.parametrize("how", ["role", "revoked", "inactive"])
def test_a_reader_who_may_not_any_more_is_told_and_cut_off(api: Api, how: str) -> None:
    name = f"leaver-{how}"
    api.start(name)
    token = token_of(api.stack, name)
    takes = {
        "role": "DELETE FROM auth_user_groups WHERE user_id = (SELECT id FROM auth_user WHERE username = %s)",
        "revoked": "UPDATE studio_token SET revoked_at = now() WHERE name = %s",
        "inactive": "UPDATE auth_user SET is_active = false WHERE username = %s",
    }

    async def story() -> None:
        stream = await api.subscriber(name, token=token).open()
        following = asyncio.create_task(stream.follow())
        await stream.until("instance", waiting_for="event")
        taken = time.monotonic()
        await asyncio.to_thread(api.rows, takes[how], name)
        await asyncio.wait_for(following, 30)
        last = stream.events[-1]
        assert last.type == "error"
        assert last.data["status"] in (401, 403, 404)
        assert last.at - taken < 8
        assert await api.status(name, token=token) in (401, 403, 404)

    asyncio.run(story())


@runs
async def test_readers_that_vanish_leave_nothing(api: Api) -> None:
    api.start("left")
    streams = [await api.subscriber("left").open() for _ in range(40)]
    following = [asyncio.create_task(one.follow()) for one in streams]
    for one in streams:
        await one.until("instance", waiting_for="event")
    assert api.rows(LISTENERS) == [(1,)]
    for one in streams:
        one.writer.transport.abort()
    await asyncio.gather(*following)
    deadline = time.monotonic() + 60
    while api.rows(LISTENERS) != [(0,)]:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)
    # All of their places are free.
    streams = [await api.subscriber("left").open() for _ in range(3)]
    assert {one.status for one in streams} == {200}
    for one in streams:
        await one.close()


@runs
async def test_a_reader_that_never_reads_costs_little_and_nobody_waits_for_it(api: Api) -> None:
    api.start("flood")
    (key,) = api.rows("SELECT key FROM engine_instance WHERE id = 'flood'")[0]
    lines = "SELECT %s, 1, 'info', repeat('x', 2000), clock_timestamp() FROM generate_series(1, 20000)"
    api.rows(f"INSERT INTO engine_log (instance_id, generation, level, message, at) {lines}", key)
    before = api.memory()
    lazy = [_lazy(api, "flood") for _ in range(5)]
    try:
        api.start("calm")
        stream = await api.subscriber("calm").open()
        following = asyncio.create_task(stream.follow())
        await stream.until("instance", waiting_for="event")
        began = time.monotonic()
        await asyncio.to_thread(api.approve, "calm")
        await stream.until("step", seq=2, status="complete")
        took = time.monotonic() - began
        await following
        await asyncio.to_thread(_wait_for_cut, lazy[0])
        used = api.memory() - before
    finally:
        for one in lazy:
            one.close()
    print(f"five readers of 45 MiB that never read: {used / MEBIBYTE:.1f} MiB; another waited {took:.3f} s")
    assert took < 5
    assert used < 60 * MEBIBYTE


def _lazy(api: Api, id: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", api.stack.port), timeout=60)
    address = address_of("process-order", id)
    head = f"GET {address} HTTP/1.1\r\nHost: 127.0.0.1:{api.stack.port}\r\nAuthorization: Bearer {api.token}\r\n\r\n"
    connection.sendall(head.encode())
    return connection


def _wait_for_cut(connection: socket.socket) -> None:

    poll = select.poll()
    poll.register(connection, select.POLLHUP | select.POLLERR)
    assert poll.poll(120_000)


STREAMS = 200


@runs
async def test_two_hundred_streams_of_one_daphne(api: Api) -> None:
    """Half of them follow one instance, the others one each."""
    ids = ["crowd", *(f"crowd-{number}" for number in range(STREAMS // 2))]
    for name in ids:
        api.start(name)
    before, cpu, began = api.memory(), api.cpu_s(), time.monotonic()
    wanted = [*["crowd"] * (STREAMS // 2), *ids[1:]]
    streams = await asyncio.gather(*(api.subscriber(name).open() for name in wanted))
    following = [asyncio.create_task(one.follow()) for one in streams]
    await asyncio.gather(*(one.until("instance", waiting_for="event") for one in streams))
    opened, used = time.monotonic() - began, api.memory() - before
    opening_cpu = api.cpu_s() - cpu
    cpu = api.cpu_s()
    await asyncio.sleep(10)
    idle = (api.cpu_s() - cpu) / 10
    delays = []
    for number in range(20):
        found = [
            asyncio.create_task(one.until("event", dedup_key=f"n{number}")) for one in streams[: STREAMS // 2]
        ]
        body = {"type": "note", "payload": number, "dedup_key": f"n{number}"}
        sent = await asyncio.to_thread(_send, api, body)
        delays += [(one.at - sent) * 1000 for one in await asyncio.gather(*found)]
        await asyncio.sleep(0.2)
    listeners = api.rows(LISTENERS)
    sessions = api.rows("SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    for name in ids:
        await asyncio.to_thread(api.approve, name)
    await asyncio.wait_for(asyncio.gather(*following), 120)
    cuts = statistics.quantiles(delays, n=100)
    print(
        f"{STREAMS} streams: open after {opened:.1f} s ({opening_cpu:.1f} s of CPU), {used / MEBIBYTE:.1f} MiB, "
        f"idle {idle:.1%} of a core, commit to byte p50 {cuts[49]:.0f} ms, p99 {cuts[98]:.0f} ms, sessions {sessions}"
    )
    assert listeners == [(1,)]
    assert {one.events[-1].type for one in streams} == {"end"}
    assert used < 100 * MEBIBYTE


def _send(api: Api, body: object) -> float:
    """Send an event; return when it was committed, as near as a client knows."""
    api.post("/workflows/process-order/instances/crowd/events", body)
    return time.monotonic()
