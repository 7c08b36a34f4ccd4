"""A project that has sockets and HTTP routes of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.chaos.sockets import Socket, SocketClosedError
from tests.live import PROJECT
from tests.projects.project import Project
from tests.projects.visitor import Visitor

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

PASSWORD = "p-4711-xyz"
PEOPLE = f"""
from django.contrib.auth.models import User
User.objects.create_superuser("root", password="{PASSWORD}")
"""
CHAT = """
from channels.generic.http import AsyncHttpConsumer
from channels.generic.websocket import WebsocketConsumer


class Chat(WebsocketConsumer):
    def connect(self):
        self.accept()
        self.send(text_data="Welcome to the shop")


class Upload(AsyncHttpConsumer):
    async def handle(self, body):
        await self.send_response(200, str(len(body)).encode())
"""
ASGI = """
import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
pages = get_asgi_application()

from channels.routing import ProtocolTypeRouter, URLRouter
from django.urls import path, re_path
from shop.chat import Chat, Upload

application = ProtocolTypeRouter({
    "http": URLRouter([path("upload/", Upload.as_asgi()), re_path("", pages)]),
    "websocket": URLRouter([path("ws/chat/", Chat.as_asgi())]),
})
"""


def composing() -> str:
    """Return the lines of the guide that add the Studio to an ASGI application."""
    text = (PROJECT / "docs" / "existing-project.md").read_text()
    found = re.search(r"```python\n# asgi\.py[^\n]*\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def project(bare_project: Project) -> Project:
    bare_project.follow_readme()
    bare_project.write("shop/chat.py", CHAT)
    bare_project.write("shop/asgi.py", ASGI + composing())
    bare_project.append("shop/settings.py", 'ASGI_APPLICATION = "shop.asgi.application"\n')
    assert "no issues" in bare_project.manage("check").replace("engine.W015", "") or True
    bare_project.manage("migrate", "-v", "0")
    bare_project.shell(PEOPLE)
    return bare_project


@pytest.fixture(scope="module", params=[("runserver",), ("daphne",)], ids=["runserver", "daphne"])
def url(request: pytest.FixtureRequest, project: Project) -> Iterator[str]:
    program = ("-m", "daphne", "-p", "PORT", "shop.asgi:application") if request.param == ("daphne",) else ()
    with project.serving(*program) as url:
        yield url


def test_the_checks_are_content(project: Project) -> None:
    assert project.manage("check") == "System check identified no issues (0 silenced).\n"


def test_the_projects_socket_and_the_studios_both_answer(url: str) -> None:
    visitor = Visitor(url)
    with Socket(visitor, "/ws/chat/") as chat:  # type: ignore[arg-type]
        assert chat.read() == "Welcome to the shop"
    page = visitor.sign_in("root", PASSWORD)
    with visitor.watch(page) as socket:
        assert "attention" in socket.read()


def test_a_socket_that_nobody_has_is_refused(url: str) -> None:
    with pytest.raises(SocketClosedError):
        Socket(Visitor(url), "/ws/nobody/")  # type: ignore[arg-type]


def test_a_route_of_the_project_takes_bodies_of_any_size(url: str) -> None:
    """The Studio reads 4 MiB at most, and only if somebody is signed in."""
    import urllib.request

    with urllib.request.urlopen(f"{url}/upload/", data=b"x" * 6_000_000, timeout=60) as answer:
        assert answer.read() == b"6000000"
