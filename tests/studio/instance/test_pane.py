"""The pane of a step leads to its line of code, and an error to where it was raised."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from engine import WorkflowStep, workflow
from engine.models import Instance
from tests.studio import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_registry")]

TRACE = """Traceback (most recent call last):
  File "/app/shop/orders.py", line 62, in orders
    paid = await step.do("charge", payments.charge, order)
  File "/app/shop/payments.py", line 88, in charge
    reply = client.post(url, json=body)
  File "/usr/lib/python3.12/site-packages/client/sync.py", line 7, in post
    raise TimeoutError("no answer")
TimeoutError: no answer
"""


@pytest.fixture
def declared() -> int:
    """Declare a workflow with steps, and return the line of the first."""

    @workflow(name="pane-of-orders")
    async def orders(step: WorkflowStep, order: int) -> None:
        await step.do("charge", print, order)
        for n in range(order):
            await step.do(f"item-{n}", print)
        await step.sleep("charge", 3)

    return orders.handler.__code__.co_firstlineno + 2


def pane_of(client: Client, instance: Instance, step: str) -> str:
    page = client.get(f"{instance.get_absolute_url()}?step={step}").content.decode()
    return " ".join(page[page.index('id="pane"') : page.index("</section>", page.index('id="pane"'))].split())


def test_a_step_leads_to_its_line_of_code(viewer: Client, declared: int) -> None:
    instance = factories.instance("running", workflow="pane-of-orders")
    factories.step(instance, "charge")
    factories.step(instance, "item-7")
    factories.step(instance, "gone-since")
    pane = pane_of(viewer, instance, "charge-1")
    assert f'<a href="/workflows/pane-of-orders/code/#L{declared}">test_pane.py:{declared}</a>' in pane
    assert "await</span> step.do(" in pane
    assert f"code/#L{declared + 2}" in pane_of(viewer, instance, "item-7-1")  # its name is computed
    assert "Line of code" not in pane_of(viewer, instance, "gone-since-1")


def test_a_line_that_may_be_another_one_now_says_so(viewer: Client, declared: int) -> None:
    old = factories.instance("running", workflow="pane-of-orders", code="a" * 64)
    factories.step(old, "charge")
    assert "now; it has changed since" in pane_of(viewer, old, "charge-1")
    assert viewer.get(f"/workflows/pane-of-orders/code/#L{declared}").status_code == 200


def test_an_error_says_first_where_own_code_raised_it(viewer: Client) -> None:
    instance = factories.instance("running")
    step = factories.step(instance, "charge")
    error = {"type": "TimeoutError", "message": "no <answer>", "traceback": TRACE}
    factories.attempt(step, "errored", error=error)
    factories.attempt(step)
    pane = pane_of(viewer, instance, "charge-1")
    place = pane.index("payments.py:88</span> reply = client.post(url, json=body)")
    assert place < pane.index("Traceback")


def test_children_are_named_by_their_params(viewer: Client) -> None:
    instance = factories.instance("waiting", waiting_for="child")
    params = {"sku": "<teapot>", "pin": {"$reprise-secret": "gAAAAA"}}
    child = factories.child(instance, "running", id="order-1-0af81e" + "0" * 26, params=params)
    chosen = factories.child(instance, "running", id="inv-7", params={"sku": "cup"})
    bare = factories.child(instance, "running", id="77c01d" + "0" * 26, params={})
    page = " ".join(viewer.get(instance.get_absolute_url()).content.decode().split())
    rows = page[page.index('id="steps"') : page.index("</table>")]
    for part in (rows, page[page.index('id="children"') :]):
        assert "&lt;teapot&gt;" in part
        assert "••••••" in part
        assert f'href="{child.get_absolute_url()}" title="{child.id}">invoices' in part
        assert f"› {child.id}" not in part
        assert f"› {chosen.id}" in part
        assert f"› {bare.id}" in part
    assert "gAAAAA" not in page


def test_the_params_of_a_child_are_beside_its_output(viewer: Client) -> None:
    instance = factories.instance("running")
    params = {"sku": "<teapot>", "pin": {"$reprise-secret": "gAAAAA"}}
    child = factories.child(instance, "complete", params=params)
    factories.step(instance, "charge")
    pane = pane_of(viewer, instance, "bill-1")
    beside = pane[pane.index("<h3>Input</h3>") : pane.index("<h3>Output</h3>")]
    assert "&lt;teapot&gt;" in beside
    assert "••••••" in beside
    assert f'href="{child.get_absolute_url()}payload/params/"' in beside
    assert pane.index("<h3>Output</h3>") < pane.index("<h3>Details</h3>")
    assert "<h3>Input</h3>" not in pane_of(viewer, instance, "charge-1")  # arguments are not recorded


def test_a_pane_that_was_opened_before_its_step_ended_keeps_its_size(viewer: Client) -> None:
    instance = factories.instance("running")
    factories.step(instance, "charge", "running")
    factories.step(instance, "ship")
    page = viewer.get(instance.get_absolute_url()).content.decode()
    again = re.search(r'hx-get="([^"]*/1/pane/[^"]*)"', page)
    assert again is not None
    address = again[1].replace("/1/pane/", "/2/pane/")  # as if it had ended since
    later = viewer.get(address).content.decode()
    assert '<div class="beside steady">' in later
    assert 'steady=1"' in later
    assert "steady" not in pane_of(viewer, instance, "ship-1")
