"""The page of a workflow says under which versions instances started, what has failed, and what its code sets."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from engine import WorkflowStep, workflow, workflows
from engine.declare.workflow_options import WorkflowOptions
from engine.status.options import options_of
from studio.workflow import versions
from tests.studio import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_registry")]
OLD, OLDER = "0123456789abcdef", "fedcba9876543210"


def declared(**options: object) -> str:
    """Declare the workflow `orders`; return the fingerprint of its code."""

    async def handler(step: WorkflowStep) -> None: ...

    return workflow("orders", **options)(handler).fingerprint  # type: ignore[call-overload, no-any-return]


def page_of(client: Client, tab: str = "", where: str = "/workflows/orders/") -> str:
    answer = client.get(where, {"tab": tab} if tab else {})
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def counts(page: str) -> dict[str, list[int]]:
    """Return open, complete, errored and terminated by the row's version."""
    rows = re.findall(r'<tr id="v-([^"]*)">(.*?)</tr>', page)
    return {code: [int(n) for n in re.findall(r'class="num-cell">(\d+)<', row)] for code, row in rows}


def test_instances_are_counted_by_the_version_under_which_they_started(viewer: Client) -> None:
    now = declared()
    for status in ("running", "waiting", "complete"):
        factories.instance(status, code=OLD)
    factories.instance("errored", code=OLDER)
    factories.instance("terminated", code=now)
    factories.instance("complete", code="other", workflow="refunds")
    page = page_of(viewer, "versions")
    assert counts(page) == {now: [0, 0, 0, 1], OLDER: [0, 0, 1, 0], OLD: [2, 1, 0, 0]}
    assert page.count("the code now</a>") == 1
    assert "Open instances of other versions go on with the code now." in page


def test_the_version_of_the_code_is_there_before_its_first_instance(viewer: Client) -> None:
    now = declared(on_code_change="pause")
    assert counts(page_of(viewer, "versions")) == {now: [0, 0, 0, 0]}
    factories.instance("waiting", code=OLD)
    assert "are paused before their next new step" in page_of(viewer, "versions")


def test_only_the_newest_instances_are_counted_and_that_is_said(
    viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = declared()
    for _ in range(3):
        factories.instance("complete", code=now)
    assert "Counted among" not in page_of(viewer, "versions")
    monkeypatch.setattr(versions, "COUNTED", 2)
    page = page_of(viewer, "versions")
    assert counts(page) == {now: [0, 2, 0, 0]}
    assert "Counted among the newest" in page


def test_versions_are_read_with_two_queries_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "SHOWN", 3)
    for n in range(5):
        factories.instance("complete", code=f"{n:016}")
    with CaptureQueriesContext(connection) as queries:
        found = versions.versions_of("orders", "")
    assert len(queries) == 2  # their counts, and which have their source
    assert [one.code for one in found.rows] == [f"{n:016}" for n in (4, 3, 2)]


def test_settings_say_what_the_code_sets_and_what_is_usual(viewer: Client) -> None:
    declared(max_running=10, timeout="7 days", retention={"errored": None}, defaults={"max_attempts": 3})
    page = page_of(viewer, "settings")
    rows = dict(re.findall(r'<tr id="option-([^"]*)">.*?</td> <td>(.*?)</td>', page))
    said = {name: " ".join(re.sub(r"<[^>]+>", " ", html).split()) for name, html in rows.items()}
    assert said == {
        "timeout": "7 d",
        "handler_timeout": "5 m 00 s default",
        "max_steps": "10,000 default",
        "max_running": "10",
        "search": "none default",
        "retention": "complete: 30 d errored: forever terminated: 30 d",
        "step_identity": "occurrence default",
        "on_code_change": "continue default",
        "defaults": "max_attempts: 3",
        "schedules": "0",
        "pause": "no",
    }


def test_no_option_is_left_out() -> None:
    declared()
    shown = {one.name for one in options_of(workflows["orders"])} | {"schedules"}
    assert shown == set(WorkflowOptions.__dataclass_fields__)


@pytest.mark.parametrize("tab", ["", "versions", "schedules", "errors", "settings"])
def test_a_workflow_that_is_no_longer_in_the_code_has_every_tab(viewer: Client, tab: str) -> None:
    factories.instance("complete", workflow="gone")
    assert "This workflow is no longer in the code" in page_of(viewer, tab, "/workflows/gone/")


@pytest.mark.parametrize(
    "where", ["/", "/code/", "/start/", "/?tab=versions", "/?tab=schedules", "/?tab=errors", "/?tab=settings"]
)
def test_a_workflow_is_paused_from_each_of_its_pages(operator: Client, where: str) -> None:
    declared()
    page = page_of(operator, where=f"/workflows/orders{where}")
    assert 'href="/pause-workflows/?workflow=orders"' in page


def test_an_unknown_tab_is_named(viewer: Client) -> None:
    declared()
    assert "<code><bdi>tab=nope</bdi></code>" in page_of(viewer, "nope")
