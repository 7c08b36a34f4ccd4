"""The pane of a step leads to its line of code, and an error to where it was raised."""

from __future__ import annotations

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
