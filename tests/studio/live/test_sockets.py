"""The socket of a tab."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import OperationalError, connections
from django.utils import timezone

from engine.models import Instance
from engine.steer import lifecycle
from studio.access import people
from studio.home.live import HomeView
from studio.live import consumer
from tests.studio import factories
from tests.studio.live.conftest import (
    HOST,
    Open,
    closing_code,
    cookie_of,
    drained,
    frame,
    make,
    until_it_listens,
)

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_stranger_is_closed_out_before_any_frame(opened: Open) -> None:
    socket = await opened("topic=home", None)
    assert (await socket.connect())[0]
    assert await socket.receive_output() == {"type": "websocket.close", "code": consumer.SIGNED_OUT}


async def test_open_pages_below_two_prefixes_get_links_of_their_own(opened: Open) -> None:
    """A server in front may pass on a site below several prefixes. Drawings are shared, but not across them."""
    user, instance = await make("viewer")
    sockets = {prefix: await opened(f"topic=instance:{instance.key}", user) for prefix in ("", "/a", "/b")}
    frames = {}
    for prefix, socket in sockets.items():
        socket.scope |= {"root_path": prefix, "path": f"{prefix}/ws/"}
        await socket.connect()
        frames[prefix] = await frame(socket)
    for prefix, text in frames.items():
        assert set(re.findall(r'href="([^"#?]*)/workflows/', text)) == {prefix}


async def test_somebody_without_a_role_is_closed_out(opened: Open) -> None:
    user, _ = await make("nobody")
    socket = await opened("topic=home", user)
    await socket.connect()
    assert await closing_code(socket) == consumer.SIGNED_OUT


@pytest.mark.parametrize(
    "origin",
    [
        None,
        b"null",
        b"http://evil",
        b"http://127.0.0.1:9999",
        b"https://" + HOST,
        b"javascript://" + HOST,
    ],
)
async def test_a_page_of_another_origin_gets_no_socket(opened: Open, origin: bytes | None) -> None:
    user, _ = await make()
    socket = await opened("topic=home", user, origin=origin)
    assert not (await socket.connect())[0]


@pytest.mark.parametrize(
    "topic", ["topic=nonsense", "topic=instance:x", "", "topic=instance:-1", "topic=workflow:a/b"]
)
async def test_an_unknown_topic_is_refused(opened: Open, topic: str) -> None:
    user, _ = await make()
    socket = await opened(topic, user)
    await socket.connect()
    assert await closing_code(socket) == consumer.NOT_ALLOWED


async def test_it_begins_with_a_snapshot(opened: Open) -> None:
    user, instance = await make()
    socket = await opened(f"topic=instance:{instance.key}", user)
    await socket.connect()
    snapshot = await frame(socket)
    for piece in ("head", "why", "actions", "timeline", "steps"):
        assert f'hx-target="#{piece}"' in snapshot


async def test_a_change_reaches_every_tab_within_a_second(opened: Open) -> None:
    user, instance = await make("operator")
    topics = [f"topic=instance:{instance.key}"] * 2 + [
        f"topic=list&keys={instance.key}&top={instance.key}",
        "topic=home",
    ]
    tabs = [await opened(topic, user) for topic in topics]
    for tab in tabs:
        await tab.connect()
    for tab in tabs:
        await frame(tab)
    # The best of a few: what is promised is about the Studio, not about a machine busy with other tests.
    assert (
        min([await seconds_until_seen(tabs[:3], act) for act in (lifecycle.pause, lifecycle.resume) * 2]) < 1
    )


async def seconds_until_seen(tabs: list[WebsocketCommunicator], act: Callable[[Instance], Instance]) -> float:
    """Steer the only instance; return the time until the last of the tabs shows it."""
    await asyncio.sleep(
        1.1
    )  # lists gather changes for a second; let it pass, so that the next is sent at once
    await drained(tabs)
    instance = await Instance.objects.aget()
    began = time.monotonic()
    after = (await sync_to_async(act)(instance)).status
    for tab in tabs:
        assert after in await frame(tab)
    return time.monotonic() - began


async def test_only_what_changed_is_sent(opened: Open) -> None:
    user, instance = await make("operator")
    await sync_to_async(factories.step)(instance, "reserve")
    socket = await opened(f"topic=instance:{instance.key}", user)
    await socket.connect()
    assert 'id="s-1"' in await frame(socket)
    await drained([socket])
    await sync_to_async(lifecycle.pause)(instance, by=user)
    news = await frame(socket)
    assert 'hx-target="#why"' in news
    assert 'hx-target="#s-1"' not in news
    assert 'hx-target="#steps"' not in news


async def test_many_changes_at_once_become_few_frames(opened: Open) -> None:
    user, instance = await make("operator")
    socket = await opened(f"topic=instance:{instance.key}", user)
    await socket.connect()
    await frame(socket)
    for _ in range(20):
        await sync_to_async(lifecycle.pause)(instance, by=user)
        await sync_to_async(lifecycle.resume)(instance, by=user)
    frames = []
    while not await socket.receive_nothing(timeout=0.8, interval=0.05):
        frames.append(await frame(socket))
    assert 1 <= len(frames) <= 12
    assert "queued" in "".join(frames)


async def test_a_new_step_arrives_in_its_place(opened: Open) -> None:
    user, instance = await make()
    socket = await opened(f"topic=instance:{instance.key}", user)
    await socket.connect()
    await frame(socket)

    @sync_to_async
    def begin_a_step() -> None:
        factories.step(instance, "reserve")
        from engine.steer import notify

        notify.tell(changed=[instance.key])

    await begin_a_step()
    news = await frame(socket)
    assert '<hx-partial hx-target="#steps" hx-swap="innerMorph">' in news
    assert 'id="s-1"' in news


async def test_a_list_counts_what_is_new_and_moves_nothing(opened: Open) -> None:
    user, instance = await make()
    socket = await opened(f"topic=list&keys={instance.key}&top={instance.key}", user)
    await socket.connect()
    assert "new · show" not in await frame(socket)

    @sync_to_async
    def start_another() -> None:
        from engine.steer import notify

        other = factories.instance()
        notify.tell(changed=[other.key])

    await start_another()
    news = await frame(socket)
    assert "1 new · show" in news
    assert news.count("<tr ") == 0


async def test_a_finished_instance_ends_its_socket(opened: Open) -> None:
    user, instance = await make(status="complete")
    socket = await opened(f"topic=instance:{instance.key}", user)
    await socket.connect()
    assert "complete" in await frame(socket)
    assert await closing_code(socket) == consumer.FINISHED


@sync_to_async
def take_role(user: User) -> None:
    user.groups.clear()


@sync_to_async
def disable(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


@sync_to_async
def new_password(user: User) -> None:
    user.set_password("another long password")
    user.save()


@sync_to_async
def sign_out(user: User) -> None:
    from django.contrib.sessions.models import Session

    Session.objects.all().delete()


@pytest.mark.parametrize(
    "deed", [take_role, disable, new_password, sign_out], ids=["role", "disabled", "password", "sign-out"]
)
async def test_who_lost_access_is_closed_out(
    opened: Open, monkeypatch: pytest.MonkeyPatch, deed: Callable[[User], Awaitable[None]]
) -> None:
    monkeypatch.setattr(consumer, "CHECK_EVERY_S", 0.0)
    user, instance = await make("operator")
    socket = await opened("topic=home", user)
    await socket.connect()
    await frame(socket)
    await deed(user)
    await sync_to_async(lifecycle.pause)(instance)
    assert await closing_code(socket) == consumer.SIGNED_OUT


@pytest.mark.parametrize("is_kept", [True, False])
async def test_a_check_writes_no_session_after_the_secret_key_was_changed(
    opened: Open, settings: Any, is_kept: bool
) -> None:
    vic = await sync_to_async(factories.person)("viewer", "vic")
    key = (await sync_to_async(cookie_of)(vic)).partition("=")[2]
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY] if is_kept else []
    settings.SECRET_KEY = "another key, which is long enough to be taken for one of Django's"
    found = await sync_to_async(people.person_of_session)(key)
    assert found == (vic if is_kept else None)
    assert await Session.objects.filter(session_key=key).aexists()
    assert await Session.objects.acount() == 1


async def test_a_beat_is_answered_and_a_page_may_send_one_every_two_seconds(opened: Open) -> None:
    user, _ = await make()
    socket = await opened("topic=home", user)
    await socket.connect()
    await frame(socket)
    for _ in range(31):
        await socket.send_to(text_data=consumer.BEAT)
        assert await frame(socket) == consumer.BEAT


async def test_a_page_that_an_answer_has_painted_is_sent_everything_anew(opened: Open) -> None:
    """Also where nothing has changed since the last frame: the answer may show what was true for a moment only."""
    user, instance = await make()
    socket = await opened(f"topic=instance:{instance.key}", user)
    await socket.connect()
    before = await frame(socket)
    assert 'hx-target="#head"' in before
    await socket.send_to(text_data=consumer.PAINTED)
    assert 'hx-target="#head"' in await frame(socket)


async def test_what_is_sent_to_a_painted_page_is_no_older_than_the_answer(opened: Open) -> None:
    """The hint of what the action did comes when it likes."""
    user, instance = await make()
    await (await opened("topic=home", user)).connect()
    await until_it_listens()
    socket = await opened(f"topic=instance:{instance.key}", user)
    await socket.connect()
    await frame(socket)
    paused = {"status": "paused", "paused_at": timezone.now(), "waiting_for": "", "wake_at": None}
    await Instance.objects.filter(key=instance.key).aupdate(**paused)  # no tab is told
    await sync_to_async(factories.deed)(instance, "pause", "li", "", after="paused")
    await socket.send_to(text_data=consumer.PAINTED)
    assert "paused" in await frame(socket)


class TestAbuse:
    async def socket(self, opened: Open) -> WebsocketCommunicator:
        user, _ = await make()
        socket = await opened("topic=home", user)
        await socket.connect()
        await frame(socket)
        return socket

    async def test_a_large_frame_closes(self, opened: Open) -> None:
        socket = await self.socket(opened)
        await socket.send_to(text_data="x" * 2_000)
        assert await closing_code(socket) == consumer.TOO_BIG

    async def test_a_binary_frame_closes(self, opened: Open) -> None:
        socket = await self.socket(opened)
        await socket.send_to(bytes_data=b"x")
        assert await closing_code(socket) == consumer.TOO_BIG

    async def test_many_frames_close(self, opened: Open) -> None:
        socket = await self.socket(opened)
        for _ in range(consumer.FRAMES_A_MINUTE + 1):
            await socket.send_to(text_data="{}")
        assert await closing_code(socket) == consumer.NOT_ALLOWED

    async def test_one_person_has_a_limited_number_of_sockets(
        self, opened: Open, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(consumer, "SOCKETS_A_PERSON", 2)
        user, _ = await make()
        for _ in range(2):
            socket = await opened("topic=home", user)
            await socket.connect()
            assert "home-head" in await frame(socket)
        one_more = await opened("topic=home", user)
        await one_more.connect()
        assert await closing_code(one_more) == consumer.TOO_MANY


async def test_a_viewer_and_an_operator_get_their_own_drawing(opened: Open) -> None:
    """What is cached for one role never reaches another."""
    operator, instance = await make("operator")
    viewer = await sync_to_async(factories.person)("viewer")
    for user, disabled in ((operator, 0), (viewer, 5), (operator, 0)):
        socket = await opened(f"topic=instance:{instance.key}", user)
        await socket.connect()
        assert (await frame(socket)).count("disabled title=") == disabled


async def test_a_page_whose_drawing_fails_is_told_to_come_again(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise OperationalError("the database went away")

    user, _ = await make()
    monkeypatch.setattr(HomeView, "drawing", fail)

    socket = await opened("topic=home", user)
    await socket.connect()
    assert await closing_code(socket) == consumer.BROKEN


def test_every_code_is_one_that_daphne_sends_and_a_broken_page_comes_again_at_its_own() -> None:
    """At any other code autobahn raises, and the page keeps a socket on which nothing ever comes."""
    final = {consumer.SIGNED_OUT, consumer.FINISHED, consumer.TOO_MANY}
    final |= {consumer.TOO_BIG, consumer.NOT_ALLOWED}
    assert all(3000 <= code <= 4999 for code in (*final, consumer.BROKEN))
    script = (settings.BASE_DIR / "static/studio/live/live.js").read_text()
    listed = re.search(r"reconnectCodes = \[([^]]*)]", script)
    assert listed is not None
    comes_again = {int(code) for code in listed[1].split(",")}
    assert consumer.BROKEN in comes_again
    assert final.isdisjoint(comes_again)


async def test_changes_arrive_again_after_the_listening_connection_was_lost(opened: Open) -> None:
    user, instance = await make("operator")
    socket = await opened(f"topic=instance:{instance.key}", user)
    await socket.connect()
    await frame(socket)
    await drained([socket])
    await until_it_listens()
    await sync_to_async(cut_the_listener)()
    await sync_to_async(lifecycle.pause)(instance, by=user)
    assert "paused" in await frame(socket)


def cut_the_listener() -> None:
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'reprise studio live' AND datname = current_database()"
        )
        assert cursor.fetchall() == [(True,)]


async def test_people_of_one_role_see_each_what_they_may_answer(opened: Open) -> None:
    """What was drawn for one is not shown to the other; and a page tells how many requests wait for its person."""

    def prepare() -> tuple[User, User, Instance]:
        ada, bob = factories.person("operator", "ada"), factories.person("operator", "bob")
        instance = factories.instance("waiting")
        factories.request(instance, assignees=["ada"])
        return ada, bob, instance

    ada, bob, instance = await sync_to_async(prepare)()
    for topic in (f"topic=instance:{instance.key}", "topic=approvals&box=open"):
        for person, may_answer in ((ada, True), (bob, False), (ada, True)):
            socket = await opened(topic, person)
            await socket.connect()
            snapshot = await frame(socket)
            if "instance" in topic:
                assert ("Send answer" in snapshot) is may_answer
                assert ("can answer this" in snapshot) is not may_answer
            count = re.search(r'id="approvals-count" class="badge"( hidden)?>\s*(\d)', snapshot)
            assert count is not None
            assert count[2] == ("1" if may_answer else "0")
