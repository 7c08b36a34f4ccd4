"""The wall screen: one sentence and the counts that matter, for a room, so without params, results and messages."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from engine.models import Instance
from studio.tv import live as of_tv
from tests.studio import factories
from tests.studio.display.test_escaping import EVIL, assert_is_text
from tests.studio.home.conftest import Home

pytestmark = pytest.mark.django_db


def failed(count: int, workflow: str, step: str, type: str = "TimeoutError") -> None:
    error = factories.FAILURE | {"type": type}
    of: dict[str, Any] = {"workflow": workflow, "error": error | {"step": step}}
    of["fingerprint"] = factories.failure(workflow, step=step, error=error).fingerprint
    for number in range(count):
        factories.instance("errored", **of, finished_at=timezone.now() - timedelta(seconds=number))


class Wall:
    """The screen, as a room reads it."""

    def __init__(self, client: Client) -> None:
        answer = client.get("/tv/")
        assert answer.status_code == 200
        self.html = answer.content.decode()

    @property
    def sentence(self) -> str:
        said = re.findall(r"<h1>(.*?)</h1>", self.html, re.DOTALL)[0]
        return html.unescape(re.sub(r"<[^>]+>", "", said))

    @property
    def tiles(self) -> dict[str, str]:
        found = re.findall(r"<dt>(.*?)</dt>\s*<dd>(.*?)</dd>", self.html, re.DOTALL)
        return {_text(name): _text(value) for name, value in found}

    @property
    def worst(self) -> list[str]:
        return [_text(one) for one in re.findall(r'<li class="s-errored".*?</li>', self.html, re.DOTALL)]

    @property
    def title(self) -> str:
        return re.findall(r'data-tab-title="([^"]*)"', self.html)[0]


def _text(part: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", part)).split())


def test_it_says_what_home_says_and_counts_what_matters(viewer: Client) -> None:
    factories.workers(["orders"], count=2, slots=64, held=3)
    failed(2, "orders", "charge_card")
    factories.instance("running")
    factories.instance("queued", wake_at=factories.ago(minutes=5))
    factories.instance("waiting", waiting_for="retry", wake_at=timezone.now() + timedelta(minutes=3))
    factories.request(factories.instance("waiting"), "Refund 1,240 € to ACME?")
    wall = Wall(viewer)
    assert wall.sentence == Home(viewer).sentence
    assert wall.tiles == {
        "Running": "1",
        "Queued": "1 oldest due 5 min ago",
        "Retrying": "1",
        "Errors": "1 needs somebody",
        "Approvals": "1 waits",
        "Workers": "2 6 of 128 slots",
    }
    assert wall.title == f"({len(Home(viewer).rows)}) Wall screen · Reprise"


def test_the_worst_errors_are_by_workflow_and_type_and_have_no_message(viewer: Client) -> None:
    failed(1, "orders", "charge_card")
    failed(2, "orders", "refund")
    failed(4, "billing", "send", "ConnectionError")
    failed(2, "billing", "print")
    failed(1, "stock", "count")
    wall = Wall(viewer)
    assert [re.sub(" · since .*", "", one) for one in wall.worst] == [
        "4 billing ConnectionError in send",
        "3 orders TimeoutError in charge_card, refund",
        "2 billing TimeoutError in print",
    ]
    assert "5 need somebody" in wall.tiles["Errors"]


def test_nothing_that_people_or_instances_said_is_on_it(viewer: Client) -> None:
    failed(1, "orders", "charge_card")
    factories.request(factories.instance("waiting", id="order-4711"), "Refund 1,240 € to ACME?")
    page = Wall(viewer).html
    for said in ("no answer from the card service", "Refund 1,240", "order-4711", "order_id"):
        assert said not in page


def test_a_quiet_room_reads_that_nothing_needs_it(viewer: Client) -> None:
    factories.workers(["orders"])
    factories.instance("complete")
    wall = Wall(viewer)
    assert wall.sentence == "Nothing needs you."
    assert "No error needs anybody." in wall.html
    assert wall.title == "Wall screen · Reprise"


def test_it_is_there_before_the_first_workflow_ran(viewer: Client) -> None:
    Instance.objects.all().delete()
    assert Wall(viewer).tiles["Workers"] == "0 none is running"


def test_it_has_no_navigation_and_follows_the_theme_of_the_person(viewer: Client) -> None:
    page = Wall(viewer).html
    assert 'class="rail"' not in page
    assert 'data-theme="system"' in page  # which is dark on this page
    viewer.cookies["studio-theme"] = "light"
    assert 'data-theme="light"' in Wall(viewer).html


def test_without_scripts_it_says_that_it_is_not_live(viewer: Client) -> None:
    without = re.findall(r"<noscript>(.*?)</noscript>", Wall(viewer).html, re.DOTALL)
    assert any("Not live: drawn at" in one and 'http-equiv="refresh"' in one for one in without)


def test_numbers_that_cannot_be_read_are_not_shown_as_if_they_were(
    viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(names: object) -> None:
        raise OperationalError("canceling statement due to statement timeout")

    monkeypatch.setattr(of_tv, "board_of", fail)
    wall = Wall(viewer)
    assert "The numbers could not be read" in wall.html
    assert wall.tiles == {}


def test_who_may_not_see_it_does_not(signed_in: Callable[..., Client], client: Client) -> None:
    assert signed_in("nobody").get("/tv/").status_code == 403
    assert client.get("/tv/").status_code == 302


@pytest.mark.usefixtures("engine_db")
def test_what_was_read_is_not_read_again_until_something_changes() -> None:
    viewer = Client()
    viewer.force_login(factories.person("viewer"))
    one = factories.instance("running", by="")
    Wall(viewer)
    with CaptureQueriesContext(connection) as again:
        Wall(viewer)
    assert not [query for query in again.captured_queries if "engine_workflow_count" in query["sql"]]
    factories.instance("running", by="")
    assert Wall(viewer).tiles["Running"] == "2"
    Instance.objects.filter(key__gte=one.key).delete()


def test_its_socket_draws_the_same(viewer: Client) -> None:
    factories.instance("running")
    frame = viewer.get("/_f/live/?topic=tv").content.decode()
    assert re.findall(r'hx-target="#(tv-[a-z]+)"', frame) == ["tv-head", "tv-board"]


def test_it_is_found_from_the_jump_list(viewer: Client) -> None:
    assert 'href="/tv/"' in viewer.get("/jump/?q=wall").content.decode()


@pytest.mark.parametrize("evil", EVIL, ids=[evil[:16] for evil in EVIL])
def test_names_are_text(viewer: Client, evil: str) -> None:
    failed(1, "orders", evil[:200], evil[:60])
    assert_is_text(Wall(viewer).html, evil[:60])
