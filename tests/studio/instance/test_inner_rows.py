"""Steps inside a folded step, such as children, are rows of the table when somebody asks for them."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from engine.models import Instance, Step
from studio.instance.live import InstanceView
from studio.instance.steps.nested import PAGE
from studio.instance.window import Window, opened
from tests.studio import factories
from tests.studio.instance.test_nested_steps import map_of, page_of, rows_in

pytestmark = pytest.mark.django_db


def table(page: str) -> str:
    return page[page.index('id="steps"') : page.index("</table>")]


def row(page: str, seq: int) -> str:
    start = page.index(f'<tr id="s-{seq}"')
    return " ".join(page[start : page.index("</tr>", start)].split())


def toggle(page: str, seq: int) -> tuple[str, str]:
    """Return the address of what shows or hides the steps inside one, and whether they are shown."""
    found = re.search(rf'id="k-{seq}" href="([^"]*)"\s+aria-expanded="(\w+)"', page)
    assert found is not None
    return found[1], found[2]


def with_branches(many: int = 3) -> tuple[Instance, Step]:
    """Make an instance that waits for children, of which the first runs and the others are complete."""
    parent = factories.instance("waiting", waiting_for="child")
    group = factories.step(parent, "allocate", "waiting", "parallel", options={"branches": many})
    for n in range(many):
        status, params = "complete" if n else "running", {"sku": f"cup-{n}", "qty": n}
        child = factories.child(parent, status, name="allocate", id=f"{n:032x}", params=params)
        Step.objects.filter(instance=parent, seq=child.parent_step or 0).update(parent=group.seq)
    return parent, group


def test_children_are_folded_until_somebody_asks_for_their_rows(viewer: Client) -> None:
    parent, group = with_branches()
    page = page_of(viewer, parent)
    assert rows_in(table(page)) == [group.seq]
    address, is_shown = toggle(page, group.seq)
    assert (address, is_shown) == ("?rows=1#k-1", "false")
    opened_page = page_of(viewer, parent, address.partition("#")[0])
    assert rows_in(table(opened_page)) == [1, 2, 3, 4]
    assert toggle(opened_page, group.seq) == ("?#k-1", "true")


def test_a_child_is_a_row_by_step_and_params_with_its_own_state(viewer: Client) -> None:
    parent, _ = with_branches()
    page = page_of(viewer, parent, "?rows=1")
    first, second = row(page, 2), row(page, 3)
    assert 'class="row s-running depth-1"' in first
    assert 'class="row s-complete depth-1"' in second
    assert '<span>#2</span> <span class="by">cup-0 · 0</span>' in first
    assert '<span>#3</span> <span class="by">cup-1 · 1</span>' in second
    child = Instance.objects.get(parent_key=parent.key, parent_step=2)
    assert f'href="{child.get_absolute_url()}" title="{child.workflow} {child.id}"' in first
    assert child.id not in re.sub(r"<[^>]*>", "", first)
    assert '<g class="bar s-running">' in first


def test_many_rows_are_shown_a_page_at_a_time_in_their_order(viewer: Client) -> None:
    instance = factories.instance("running")
    parent = map_of(instance, ["complete"] * 900 + ["errored", "running"] + ["complete"] * 98)
    page = page_of(viewer, instance, "?rows=1")
    assert rows_in(table(page)) == [parent.seq, *range(2, PAGE + 2)]
    assert "1 to 50 of 1,000" in page
    assert re.search(r'<a href="\?rows=1\.2#k-1">Next', page)
    last = page_of(viewer, instance, "?rows=1.99")
    assert rows_in(table(last)) == [parent.seq, *range(952, 1_002)]
    assert "letters[950]" in row(last, 952)
    assert re.search(r'<a href="\?rows=1\.19#k-1">', last)
    with CaptureQueriesContext(connection) as folded:
        page_of(viewer, instance)
    with CaptureQueriesContext(connection) as shown:
        page_of(viewer, instance, "?rows=1")
    assert len(shown) <= len(folded) + 3


def test_the_socket_follows_the_rows_that_are_shown(viewer: Client) -> None:
    parent, _ = with_branches()
    page = page_of(viewer, parent, "?rows=1")
    assert f"topic=instance:{parent.key}&rows=1" in page
    view = InstanceView(parent.key, Window(rows=opened("1")))
    assert {"s-1", "s-2", "s-3", "s-4"} <= set(view.draw(factories.person("viewer")).order)


def test_values_of_params_are_shown_without_secrets_and_markup(viewer: Client) -> None:
    instance = factories.instance("running")
    factories.child(instance, params={"pin": {"$reprise-secret": "gAAAAA"}, "sku": "<b>", "more": {"a": 1}})
    page = viewer.get(instance.get_absolute_url()).content.decode()
    assert '<span class="by">•••••• · &lt;b&gt;</span>' in page
    assert "gAAAAA" not in page


def test_a_step_is_not_listed_in_a_pane_while_it_has_a_row(viewer: Client) -> None:
    """The browser moves what the socket sends to where its ID is: to the pane, if that had the same one."""
    parent, group = with_branches()
    ids = re.findall(r'\bid="([^"]+)"', page_of(viewer, parent, f"?rows=1&step={group.seq}&open=1"))
    assert sorted(ids) == sorted(set(ids))
    pane = reverse("studio:pane", args=[parent.workflow, parent.id, group.seq])
    listed, in_rows = (viewer.get(f"{pane}{given}").content.decode() for given in ("", "?rows=1"))
    assert "data-inner" in listed.partition("Inside")[2]
    assert "data-inner" not in in_rows.partition("Inside")[2]
    assert "3 steps, each with a row of its own" in in_rows
    assert f'hx-get="{pane}?rows=1&amp;steady=1"' in in_rows, "it must ask again for the same"
