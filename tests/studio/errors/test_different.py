"""The instances of an error: when each failed last, and what sets it apart from the rest."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import pytest
from django.test import Client

from engine import RollbackContext, WorkflowStep, workflow
from engine.models import Instance
from engine.status import failures
from tests.stories import run_to_end
from tests.studio.errors.conftest import Fail
from tests.studio.errors.test_errors import fingerprint

People = Callable[[str], Client]


def row_of(client: Client, instance: Instance) -> str:
    """Return the text of an instance's row on the page of its error."""
    page = client.get(f"/errors/{fingerprint(instance.workflow)}/").content.decode()
    found = re.search(rf'<tr id="i-{instance.key}">(.*?)</tr>', page, re.DOTALL)
    assert found is not None
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", found[1])).split())


def test_a_row_says_when_and_at_which_attempt_it_failed(people: People, fail: Fail) -> None:
    instance = fail()
    (last,) = failures.last_failures([fingerprint()], [instance.key]).values()
    assert (last.attempt, last.of) == (2, 2)
    assert instance.started_at is not None
    assert instance.started_at <= last.at <= instance.refresh().finished_at
    assert "2 of 2" in row_of(people("viewer"), instance)


def test_an_instance_that_has_not_what_nearly_all_have_says_so(people: People, fail: Fail) -> None:
    usual = [fail(region="eu") for _ in range(8)]
    other, without, marked = fail(region="us"), fail(), fail(region="<i>us\u202e</i>")
    viewer = people("viewer")
    assert row_of(viewer, usual[0]).endswith("2 of 2")
    assert "region = us" not in row_of(viewer, usual[0])
    with_values = failures.values([other.key, without.key])
    assert with_values[other.key]["params.region"] == ["us"]
    assert "params.region" not in with_values[without.key]
    shares = [one for one in failures.shares([fingerprint()]) if one.what == "params.region"]
    assert [(one.value, one.count, one.of) for one in shares] == [("eu", 8, 11)]  # below 80 %
    for _ in range(5):
        fail(region="eu")
    assert row_of(viewer, other).endswith("region = us")
    assert row_of(viewer, without).endswith("no region")
    assert "region = <i>us" in row_of(viewer, marked)
    page = viewer.get(f"/errors/{fingerprint()}/").content.decode()
    assert "<i>us" not in page


def test_the_code_of_another_workflow_is_no_other_version(people: People, fail: Fail) -> None:
    many = [fail("orders") for _ in range(5)]
    other = fail("refunds")
    Instance.objects.filter(key__in=[one.key for one in many]).update(code="a" * 16)
    Instance.objects.filter(key=other.key).update(code="b" * 16)
    viewer = people("viewer")
    assert "version" not in row_of(viewer, other)
    Instance.objects.filter(key=many[0].key).update(code="b" * 16)
    page = viewer.get(f"/errors/{fingerprint()}/?workflow=orders").content.decode()
    assert page.count("another version of the code") == 1


@pytest.mark.usefixtures("engine_db", "own_registry")
def test_an_instance_that_was_rolled_back_says_so(people: People) -> None:
    def undo(ctx: RollbackContext) -> None:
        pass

    def charge() -> None:
        raise TimeoutError("no answer within 5 s")

    @workflow(name="orders")
    async def order(step: WorkflowStep, is_reserved: bool) -> None:
        if is_reserved:
            await step.do("reserve", lambda: None, rollback=undo)
        await step.do("charge_card", charge, max_attempts=1)

    plain, undone = (run_to_end(order.start(given)) for given in (False, True))
    viewer = people("viewer")
    assert "rolled back" in row_of(viewer, undone)
    assert "rolled back" not in row_of(viewer, plain)


def test_a_handler_that_fails_has_no_attempt_and_says_when_it_ended(
    people: People, engine_db: None, own_registry: None
) -> None:
    @workflow(name="orders")
    async def order(step: WorkflowStep) -> None:
        raise ValueError("no step")

    instance = run_to_end(order.start())
    assert failures.last_failures([fingerprint()], [instance.key]) == {}
    assert "of" not in row_of(people("viewer"), instance).split()
