"""The boxes of the list, and the form that they belong to: without a script, it leads to the dialog of a bulk job."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from tests.studio import factories

pytestmark = pytest.mark.django_db


def page_of(client: Client, query: str = "") -> str:
    answer = client.get("/instances/", {"query": query} if query else {})
    assert answer.status_code == 200
    return answer.content.decode()


def form_of(page: str) -> str:
    return page.split('id="ticks"')[1].split("</form>")[0]


def test_each_row_has_a_box_of_the_form(operator: Client) -> None:
    made = [factories.instance("waiting"), factories.instance("errored")]
    boxes = re.findall(
        r'<input type="checkbox" name="key" value="(\d+)" form="ticks" aria-label="([^"]+)"',
        page_of(operator),
    )
    assert sorted(boxes) == [(str(one.key), f"Select {one.id}") for one in made]


def test_the_form_leads_to_the_dialog_with_each_action(operator: Client) -> None:
    one = factories.instance("waiting")
    form = form_of(page_of(operator, "status:open"))
    assert re.findall(r'name="action" value="(\w+)"', form) == [
        "retry",
        "pause",
        "resume",
        "restart",
        "terminate",
    ]
    assert 'name="next" value="/instances/?query=status%3Aopen"' in form
    answer = operator.post(
        "/bulk/new/", {"action": "pause", "key": str(one.key), "next": "/instances/?query=x"}
    )
    assert "Pause 1" in answer.content.decode()
    assert 'href="/instances/?query=x"' in answer.content.decode()


def test_all_that_match_are_those_of_the_search(operator: Client) -> None:
    factories.instance("waiting"), factories.instance("waiting")
    assert 'name="q" value="status:open"' in form_of(page_of(operator, "status:open"))
    assert 'name="q"' not in form_of(page_of(operator))  # a job on everything needs a search that says so
    given = {"action": "pause", "q": "status:open", "key": "1"}
    assert "Pause 2" in operator.post("/bulk/new/", given).content.decode()


@pytest.mark.parametrize(
    ("query", "total"),
    [
        ("", "4"),
        ("status:open", "1"),
        ("status:errored,complete", "3"),
        ("workflow:orders -status:errored", "2"),
        ("workflow:no-such", "0"),
    ],
)
def test_the_page_knows_how_many_match(operator: Client, query: str, total: str) -> None:
    for status in ("waiting", "errored", "errored", "complete"):
        factories.instance(status)
    strip = page_of(operator, query).split('id="strip"')[1].split(">")[0]
    assert f'data-total="{total}"' in strip


def test_a_viewer_sees_the_actions_disabled_with_the_reason(viewer: Client) -> None:
    factories.instance("waiting")
    assert form_of(page_of(viewer)).count('disabled title="Requires the operator role"') == 5


def test_other_lists_have_no_boxes(operator: Client) -> None:
    factories.instance("waiting", workflow="process-order")
    assert 'name="key"' not in operator.get("/workflows/process-order/").content.decode()
    assert 'id="ticks"' not in page_of(operator, "status:complete")


def test_a_live_row_has_its_box(operator: Client) -> None:
    one = factories.instance("waiting")
    drawn = operator.get(f"/_f/live/?topic=list&keys={one.key}").content.decode()
    assert f'name="key" value="{one.key}"' in drawn
