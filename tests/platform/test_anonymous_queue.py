"""Anonymous requests wait for each other, and signed-in users do not wait for them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import RequestFactory

from studio import site
from studio.access import anonymous_queue
from studio.access.anonymous_queue import (
    AnonymousQueue,
    QueueFullError,
    release_turn,
    remember,
    take_turn,
)
from studio.access.cookies import session_key_of
from studio.access.permissions import Verb
from studio.asgi import application
from studio.frame.guard import guard
from studio.server import route_limits
from studio.server.application import with_studio
from tests.live import LiveStack
from tests.platform.crowd import REQUESTS
from tests.platform.delays import least_delayed

KNOWN = "k" * 32


class Server:
    """An application behind the queue whose requests continue when the test says so."""

    def __init__(self) -> None:
        self.lane = AnonymousQueue(
            self.application,
            lambda scope: scope.get("ours", True),
            lambda scope: scope.get("delivery", False),
        )
        self.begun: list[str] = []
        self.go_on: dict[str, asyncio.Event] = {}
        self.scopes: dict[str, Any] = {}
        self.tasks: list[asyncio.Task[int]] = []

    async def application(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope["path"]
        self.begun.append(path)
        self.scopes[path] = scope
        await self.go_on.setdefault(path, asyncio.Event()).wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})

    def ask(
        self, path: str, *, session: str = "", address: str = "10.0.0.1", **given: Any
    ) -> asyncio.Task[int]:
        cookie = f"{settings.SESSION_COOKIE_NAME}={session}".encode()
        headers = [(b"cookie", cookie), *given.pop("headers", [])]
        scope = {"type": "http", "path": path, "headers": headers, "client": [address, 1], **given}
        task = asyncio.create_task(self._ask(scope))
        self.tasks.append(task)
        return task

    async def _ask(self, scope: Any) -> int:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        await self.lane(scope, lambda: asyncio.sleep(0), send)
        return int(sent[0]["status"])

    def finish(self, path: str) -> None:
        self.go_on.setdefault(path, asyncio.Event()).set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not condition():
                await asyncio.sleep(0.005)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    remember(KNOWN)
    made = Server()
    yield made
    for task in made.tasks:
        task.cancel()
    await asyncio.gather(*made.tasks, return_exceptions=True)


async def test_a_request_does_not_wait_for_itself_if_a_site_is_wrapped_twice() -> None:
    server = Server()
    server.lane = AnonymousQueue(server.lane, lambda scope: True)
    for session in ("", KNOWN):
        remember(session)
        path = f"/{session}"
        server.go_on.setdefault(path, asyncio.Event()).set()
        assert await asyncio.wait_for(server.ask(path, session=session), 60) == 200


def test_an_application_that_has_the_studio_is_returned_as_it_is() -> None:
    assert with_studio(application) is application


class TestLane:
    async def test_one_stranger_is_served_at_a_time(self, server: Server) -> None:
        for path in ("a", "b"):
            server.ask(path)
        await asyncio.sleep(0.05)
        assert server.begun == ["a"]
        server.finish("a")
        await server.until(lambda: server.begun == ["a", "b"])

    async def test_somebody_known_waits_for_no_stranger(self, server: Server) -> None:
        server.ask("a")
        await server.until(lambda: server.begun == ["a"])
        server.ask("page", session=KNOWN)
        await server.until(lambda: server.begun == ["a", "page"])

    async def test_a_made_up_session_is_a_strangers(self, server: Server) -> None:
        server.ask("a", session="x" * 32)
        server.ask("b", session="y" * 32)
        await asyncio.sleep(0.05)
        assert server.begun == ["a"]

    async def test_nobody_is_known_by_an_empty_session(self, server: Server) -> None:
        remember("")
        assert not anonymous_queue.is_known(with_session(""))

    async def test_a_stranger_waits_while_somebody_is_served_but_not_for_ever(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(anonymous_queue, "LONGEST_WAIT_S", 0.2)
        server.ask("page", session=KNOWN)
        await server.until(lambda: server.begun == ["page"])
        began = time.monotonic()
        server.ask("a")
        await server.until(lambda: server.begun == ["page", "a"])
        assert time.monotonic() - began >= 0.2

    async def test_a_stranger_goes_on_when_somebody_was_served(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(anonymous_queue, "LONGEST_WAIT_S", 60)
        server.ask("page", session=KNOWN)
        await server.until(lambda: server.begun == ["page"])
        server.ask("a")
        server.finish("page")
        await server.until(lambda: server.begun == ["page", "a"])

    async def test_who_steps_aside_lets_the_next_one_go_on(self, server: Server) -> None:
        for path in ("a", "b"):
            server.ask(path)
        await server.until(lambda: server.begun == ["a"])
        # From a thread, as views do; twice changes nothing.
        for _ in range(2):
            await asyncio.to_thread(release_turn, server.scopes["a"])
        server.ask("c")
        await server.until(lambda: server.begun == ["a", "b"])
        await asyncio.sleep(0.05)
        assert server.begun == ["a", "b"]

    async def test_an_open_socket_of_somebody_known_keeps_no_stranger_waiting(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(anonymous_queue, "LONGEST_WAIT_S", 60)
        server.ask("socket", session=KNOWN)
        await server.until(lambda: server.begun == ["socket"])
        release_turn(server.scopes["socket"])
        server.ask("a")
        await server.until(lambda: server.begun == ["socket", "a"])

    async def test_who_was_cut_off_gives_the_turn_back(self, server: Server) -> None:
        first, waiting = server.ask("a"), server.ask("b")
        await server.until(lambda: server.begun == ["a"])
        waiting.cancel()
        first.cancel()
        server.ask("c")
        await server.until(lambda: server.begun == ["a", "c"])

    async def test_so_many_wait_and_no_more(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(anonymous_queue, "MOST_WAITING", 3)
        monkeypatch.setattr(anonymous_queue, "MOST_OF_AN_ADDRESS", 2)
        server.ask("a")
        await server.until(lambda: server.begun == ["a"])
        for path in ("b", "c"):
            server.ask(path)
        await asyncio.sleep(0)
        assert await server.ask("d") == 503
        server.ask("e", address="10.0.0.2")
        await asyncio.sleep(0)
        assert await server.ask("f", address="10.0.0.3") == 503

    async def test_deliveries_wait_for_each_other_and_not_for_pages(self, server: Server) -> None:
        for path in ("a", "b"):
            server.ask(path)
            server.ask(f"hook-{path}", delivery=True)
        await server.until(lambda: server.begun == ["a", "hook-a"])
        await asyncio.sleep(0.05)
        assert server.begun == ["a", "hook-a"]
        server.finish("hook-a")
        await server.until(lambda: server.begun == ["a", "hook-a", "hook-b"])

    async def test_more_deliveries_may_wait_than_pages(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(anonymous_queue, "MOST_OF_AN_ADDRESS", 1)
        monkeypatch.setattr(anonymous_queue, "MOST_DELIVERIES_OF_AN_ADDRESS", 3)
        for path in ("a", "b", "c", "d"):
            server.ask(path, delivery=True)
        await server.until(lambda: server.begun == ["a"])
        assert await server.ask("e", delivery=True) == 503

    async def test_deliveries_wait_for_people_who_are_signed_in(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(anonymous_queue, "LONGEST_WAIT_S", 60)
        server.ask("page", session=KNOWN)
        await server.until(lambda: server.begun == ["page"])
        server.ask("hook", delivery=True)
        await asyncio.sleep(0.05)
        assert server.begun == ["page"]
        server.finish("page")
        await server.until(lambda: server.begun == ["page", "hook"])

    async def test_forms_in_many_parts_are_not_read(self, server: Server) -> None:
        kind = [(b"content-type", b" Multipart/Form-Data; boundary=x")]
        assert await server.ask("a", headers=kind) == 415
        server.ask("b", headers=kind, session=KNOWN)
        server.ask("c", headers=kind, ours=False)
        await server.until(lambda: sorted(server.begun) == ["b", "c"])

    async def test_other_pages_of_a_larger_site_are_left_alone(self, server: Server) -> None:
        for path in ("a", "b", "c"):
            server.ask(path, ours=False)
        await server.until(lambda: server.begun == ["a", "b", "c"])

    async def test_a_question_about_a_request_takes_its_turn_once(self, server: Server) -> None:
        async def question(scope: Any) -> str:
            return await take_turn(scope, lambda scope: asyncio.sleep(0, "inner"))

        scope = {"type": "http", "path": "a", "headers": [], "client": None}
        async with asyncio.timeout(60):
            assert await take_turn(scope, question) == "inner"

    async def test_the_one_who_was_welcome_first_is_forgotten_first(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(anonymous_queue, "_known", type(anonymous_queue._known)())
        monkeypatch.setattr(anonymous_queue, "MOST_KNOWN", 2)
        for key in ("a", "b", "a", "c"):
            remember(key)
        assert [anonymous_queue.is_known(with_session(key)) for key in "abc"] == [True, False, True]


def with_session(key: str) -> dict[str, Any]:
    """Return the part of a request that says who sent it."""
    return {"headers": [(b"cookie", f"{settings.SESSION_COOKIE_NAME}={key}".encode())]}


class TestAcceptedSessions:
    """A page whose view accepts the session, and which then continues, as a long download does."""

    def show(self, scope: Any) -> int:
        request = RequestFactory().get("/")
        request.scope = scope  # type: ignore[attr-defined]
        request.user = User(username="ada", is_superuser=True)
        request.COOKIES = {settings.SESSION_COOKIE_NAME: session_key_of(scope)}
        view = guard(get=Verb.VIEW)(lambda request: HttpResponse())
        return view(request).status_code

    async def test_stop_holding_the_turn_of_an_anonymous_request(self, server: Server) -> None:
        server.ask("first page", session="n" * 32)
        await server.until(lambda: server.begun == ["first page"])
        server.ask("sign-in")
        assert await asyncio.to_thread(self.show, server.scopes["first page"]) == 200
        await server.until(lambda: server.begun == ["first page", "sign-in"])

    async def test_keep_the_priority_of_a_session_that_was_known(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(anonymous_queue, "LONGEST_WAIT_S", 60)
        server.ask("page", session=KNOWN)
        await server.until(lambda: server.begun == ["page"])
        server.ask("sign-in")
        assert await asyncio.to_thread(self.show, server.scopes["page"]) == 200
        await asyncio.sleep(0.1)
        assert server.begun == ["page"]


class TestLargeBodies:
    def asked(self, session: bytes = b"") -> Any:
        cookie = f"{settings.SESSION_COOKIE_NAME}=".encode() + session
        path = "/workflows/orders/start/"
        return {"type": "http", "path": path, "headers": [(b"cookie", cookie)], "client": ["10.0.0.1", 1]}

    @pytest.mark.parametrize("session", [b"", rb'"\000aaaaaaaaaa"', b"\xff" * 32])
    async def test_of_a_client_without_a_session_are_refused_at_once(
        self, server: Server, session: bytes
    ) -> None:
        server.ask("a")
        await server.until(lambda: server.begun == ["a"])
        async with asyncio.timeout(60):
            assert await route_limits.may_be_large(self.asked(session)) is False

    async def test_wait_in_the_same_queue_with_the_same_limits(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(anonymous_queue, "MOST_OF_AN_ADDRESS", 1)
        for path in ("a", "b"):
            server.ask(path)
        await server.until(lambda: server.begun == ["a"])
        with pytest.raises(QueueFullError):
            async with asyncio.timeout(60):
                await route_limits.may_be_large(self.asked(b"x" * 32))


class TestPrefixes:
    """A prefix of the path that Django leaves out: set by the project, by the server, or by the client in a header."""

    @pytest.fixture(autouse=True)
    def larger_site(self, settings: Any) -> None:
        settings.ROOT_URLCONF = LargerSite

    @pytest.mark.parametrize(
        ("path", "root_path", "is_ours"),
        [
            ("/sign-in/", "", True),
            ("/x/sign-in/", "/x", True),
            ("/x/sign-in/", "", False),
            ("/sign-in/", "/sig", False),
            ("/sign-in/", "/x", True),
        ],
    )
    def test_are_left_out_of_the_path_as_django_does(self, path: str, root_path: str, is_ours: bool) -> None:
        scope = {"type": "http", "path": path, "root_path": root_path}
        assert route_limits.is_studio_request(scope) is is_ours

    def test_that_the_project_sets_come_before_those_of_a_client(self, settings: Any) -> None:
        settings.FORCE_SCRIPT_NAME = "/studio"
        for root_path in ("", "/x"):
            scope = {"type": "http", "path": "/studio/sign-in/", "root_path": root_path}
            assert route_limits.is_studio_request(scope)


class LargerSite:
    """A project that includes the Studio."""

    urlpatterns = site.urlpatterns


@pytest.mark.process
@pytest.mark.second_tier
@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_two_dozen_strangers_delay_nobodys_page(live_stack: LiveStack, name: str) -> None:
    """On an idle machine the delay is 50 ms at most (p95): `python -m tests.platform.delays` measures that. Here the
    strangers themselves, and maybe others, take time from the server; without the queue it would be many times the
    quiet time all the same."""
    best = least_delayed(live_stack, name)
    assert best.pressed <= 3 * best.quiet + 0.1
