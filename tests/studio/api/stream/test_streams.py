"""Streams in this process: what is sent, what it costs, and who gets one."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings as django_settings
from django.db import connections
from django.test import AsyncClient

from engine.models import Instance, Log
from engine.status.changes import Page
from studio.access.permissions import Verb
from studio.api.stream import feed, limits, stream
from studio.api.stream.feed import feeds
from studio.frame.hub import connect
from tests.studio import factories
from tests.studio.api.conftest import PREFIX, Program, Programs

pytestmark = pytest.mark.django_db(transaction=True)

MESSAGE = "first\n\nevent: end\r\ndata: {}\u2028last"


class Stream:
    """An answer that is read event by event."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.text = ""
        self.chunks: Any = aiter(answer.streaming_content) if answer.streaming else None

    async def next(self) -> tuple[str, Any]:
        """Return type and data of the next event, or a comment."""
        while True:
            block, end, rest = self.text.partition("\n\n")
            if not end:
                self.text += (await asyncio.wait_for(anext(self.chunks), 60)).decode()
                continue
            self.text = rest
            fields = dict(line.split(": ", 1) for line in block.split("\n"))
            if "event" in fields:
                return fields["event"], json.loads(fields["data"])
            if "" in fields:
                return "", fields[""]

    async def until(self, kind: str) -> list[tuple[str, Any]]:
        found = [await self.next()]
        while found[-1][0] != kind:
            found.append(await self.next())
        return found

    async def close(self) -> None:
        """Cancel it while it waits, as Django does when its reader is gone."""
        while True:
            waiting = asyncio.ensure_future(anext(self.chunks, None))
            done, _ = await asyncio.wait([waiting], timeout=0.05)
            if not done:
                waiting.cancel()
                await asyncio.wait([waiting])
                return
            if waiting.result() is None:
                return


def address(instance: Instance, query: str = "") -> str:
    return f"{PREFIX}/workflows/{instance.workflow}/instances/{instance.id}/subscribe{query}"


async def opened(program: Program, instance: Instance, query: str = "", **headers: str) -> Stream:
    given = {"Authorization": f"Bearer {program.token}", **headers}
    return Stream(await AsyncClient().get(address(instance, query), headers=given))


def told(story: Coroutine[Any, Any, None]) -> None:
    """Run a story, and close what its threads have opened."""

    async def whole() -> None:
        try:
            await asyncio.wait_for(story, 60)
        finally:
            await sync_to_async(connections.close_all)()

    asyncio.run(whole())


async def act(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    return await sync_to_async(function)(*args, **options)


def line(instance: Instance, message: str) -> None:
    Log.objects.create(
        instance=instance,
        generation=1,
        level="info",
        message=message,
        at=instance.created_at,
        fields={"a": 1},
    )


def test_history_then_life_then_the_end(program: Program) -> None:
    """CF-95."""
    instance = factories.instance("waiting")

    async def story() -> None:
        found = await opened(program, instance)
        assert [kind for kind, _ in await found.until("instance")] == ["step", "instance"]
        await act(instance.terminate, by="ada", reason="enough")
        events = await found.until("end")
        assert [kind for kind, _ in events][-2:] == ["instance", "end"]
        assert events[-1][1] == {"status": "terminated", "generation": 1, "is_deleted": False}
        with pytest.raises(StopAsyncIteration):
            await found.next()

    told(story())


def test_a_line_break_ends_no_event(program: Program) -> None:
    instance = factories.instance("queued")
    line(instance, MESSAGE)

    async def story() -> None:
        found = await opened(program, instance, "?types=log")
        kind, document = await found.next()
        assert (kind, document["message"]) == ("log", MESSAGE)
        await found.close()

    told(story())


def test_the_headers_keep_everything_between_from_holding_events_back(
    program: Program, settings: Any
) -> None:
    settings.MIDDLEWARE = ["django.middleware.gzip.GZipMiddleware", *django_settings.MIDDLEWARE]
    instance = factories.instance("complete")

    async def story() -> None:
        found = await opened(program, instance, **{"Accept-Encoding": "gzip"})
        wanted = {"Cache-Control": "no-store", "Content-Encoding": "identity", "X-Accel-Buffering": "no"}
        assert wanted.items() <= dict(found.answer.headers).items()
        assert (await found.until("end"))[-1][1]["status"] == "complete"

    told(story())


def test_a_quiet_stream_has_heartbeats(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "TICK_S", 0.05)
    monkeypatch.setattr(stream, "HEARTBEAT_S", 0.05)
    instance = factories.instance("queued")

    async def story() -> None:
        found = await opened(program, instance)
        await found.until("instance")
        assert await found.next() == ("", "still here")
        assert await found.next() == ("", "still here")
        await found.close()

    told(story())


def test_streams_at_the_same_place_share_each_read(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: Counter[object] = Counter()
    read = feed.read

    def counting(*args: Any, **options: Any) -> Page:
        reads["all"] += 1
        return read(*args, **options)

    instance = factories.instance("queued")

    async def story() -> None:
        streams = [await opened(program, instance) for _ in range(30)]
        await asyncio.gather(*(one.until("instance") for one in streams))
        # Whatever they read while they opened, from the next notification on they are at one place.
        await act(instance.pause, by="ada")
        await asyncio.gather(*(one.until("instance") for one in streams))
        await asyncio.sleep(0.2)
        monkeypatch.setattr(feed, "read", counting)
        await act(instance.resume, by="ada")
        await asyncio.gather(*(one.until("instance") for one in streams))
        for one in streams:
            await one.close()

    told(story())
    assert 1 <= reads["all"] <= 3


def test_a_narrow_token_gets_no_names_of_other_instances(program_of: Programs) -> None:
    instance = factories.instance("waiting", waiting_for="child")
    child = factories.child(instance, workflow="billing", id="inv-7", name="bill")

    async def why(program: Program) -> str:
        stream = await opened(program, instance, "?types=instance")
        found = await stream.until("instance")
        await stream.close()
        return str(found[-1][1]["why"])

    wide, narrow = (program_of(name=name, workflows=[name]) for name in ("*", "orders"))

    async def story() -> None:
        said = await asyncio.gather(*(why(one) for one in (wide, narrow, wide, narrow)))
        assert [child.id in one for one in said] == [True, False, True, False], said

    told(story())


def test_the_last_stream_leaves_nothing_behind(program: Program) -> None:
    instance = factories.instance("queued")

    async def story() -> None:
        streams = [await opened(program, instance) for _ in range(3)]
        await asyncio.gather(*(one.until("instance") for one in streams))
        assert limits._open.total() == 3
        assert [*feeds().open] == [instance.key]
        for one in streams:
            await one.close()
        assert (limits._open.total(), feeds().open) == (0, {})
        left = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert "studio-live" not in left

    told(story())


BLOCKED = """
SELECT pg_terminate_backend(pid) FROM pg_locks
 WHERE NOT granted AND relation = 'engine_log'::regclass
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


def test_a_stream_works_as_soon_as_the_database_does(program: Program) -> None:
    instance = factories.instance("queued")

    async def story() -> None:
        # One that takes nothing more keeps the feed open.
        slow = await opened(program, instance)
        await slow.until("instance")
        async with await connect() as connection, connection.transaction():
            await connection.execute("LOCK TABLE engine_log")
            feeds().open[instance.key].wake()
            lost = await opened(program, instance)
            waiting = asyncio.ensure_future(lost.next())
            while not await (await connection.execute(BLOCKED)).fetchall():
                await asyncio.sleep(0.01)
            with pytest.raises(StopAsyncIteration):  # and the client comes again
                await waiting
        version = feeds().open[instance.key].version
        again = await opened(program, instance)
        await again.until("instance")
        assert feeds().open[instance.key].version == version
        await again.close()
        await slow.close()

    told(story())


@pytest.mark.parametrize(("limit", "status"), [("MOST_OF_A_HOLDER", 429), ("MOST", 503)])
def test_streams_are_limited(
    program: Program, monkeypatch: pytest.MonkeyPatch, limit: str, status: int
) -> None:
    monkeypatch.setattr(limits, limit, 1)
    instance = factories.instance("queued")

    async def story() -> None:
        first = await opened(program, instance)
        await first.until("instance")
        refused = (await opened(program, instance)).answer
        assert (refused.status_code, refused["Retry-After"]) == (status, "5")
        assert json.loads(refused.content)["code"] == "too_many_streams"
        await first.close()
        second = await opened(program, instance)
        assert second.answer.status_code == 200
        await second.until("instance")
        await second.close()

    told(story())


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("?cursor=x", "invalid_cursor"),
        ("?cursor=", "invalid_cursor"),
        ("?types=", "invalid_request"),
        ("?types=step,steps", "invalid_request"),
        ("?types=STEP", "invalid_request"),
    ],
)
def test_a_query_that_cannot_be_understood_is_refused(program: Program, query: str, code: str) -> None:
    instance = factories.instance("queued")

    async def story() -> None:
        answer = (await opened(program, instance, query)).answer
        assert (answer.status_code, json.loads(answer.content)["code"]) == (422, code)

    told(story())


def test_what_a_token_does_not_cover_is_not_there(program_of: Programs) -> None:
    program = program_of(verbs=(Verb.VIEW,), workflows=("billing",))
    instance = factories.instance("queued")

    async def story() -> None:
        assert (await opened(program, instance)).answer.status_code == 404

    told(story())


def test_head_opens_no_stream(program: Program) -> None:
    instance = factories.instance("queued")

    async def story() -> None:
        headers = {"Authorization": f"Bearer {program.token}"}
        answer = await AsyncClient().head(address(instance), headers=headers)
        assert (answer.status_code, answer["Content-Type"]) == (200, "text/event-stream; charset=utf-8")
        assert (await AsyncClient().post(address(instance), headers=headers)).status_code == 405

    told(story())


def test_after_the_end_there_is_no_content(program: Program) -> None:
    instance = factories.instance("complete")

    async def story() -> None:
        found = await opened(program, instance)
        text = b"".join([chunk async for chunk in found.chunks]).decode()
        last = text.rstrip().rpartition("\n\n")[2]
        cursor = last.splitlines()[0].removeprefix("id: ")
        assert (await opened(program, instance, f"?cursor={cursor}")).answer.status_code == 204
        again = await opened(program, instance, **{"Last-Event-ID": cursor})
        assert again.answer.status_code == 204
        await act(line, instance, "late")
        late = await opened(program, instance, f"?cursor={cursor}")
        assert [kind for kind, _ in await late.until("end")] == ["log", "end"]

    told(story())


@pytest.mark.parametrize("query", ["types=log&types=step", "type=log", "cursor=x&cursor=y"])
def test_parameters_that_would_have_no_effect_are_refused(program: Program, query: str) -> None:
    instance = factories.instance("queued")

    async def story() -> None:
        answer = (await opened(program, instance, f"?{query}")).answer
        wrong = json.loads(answer.content)["errors"][0]
        assert (answer.status_code, wrong["path"]) == (422, query.split("=", maxsplit=1)[0])
        assert (await opened(Program("x"), instance, f"?{query}")).answer.status_code == 401

    told(story())
