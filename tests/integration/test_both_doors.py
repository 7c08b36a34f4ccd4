"""The command line and the Studio show the same values of an instance, in each of its generations."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from engine.models import Instance
from engine.steer import restart
from studio.instance import queries as instance_queries
from tests.studio import factories

pytestmark = pytest.mark.django_db
REFUSED = {"type": "CardError", "message": "no", "details": {}, "traceback": "", "step": "charge"}
# The columns of an instance that are its own in each generation, or the same in all of them.
OF_INSTANCE = (
    "workflow",
    "id",
    "generation",
    "status",
    "waiting_for",
    "rollback",
    "tags",
    "started_by",
    "created_at",
    "started_at",
    "finished_at",
    "wake_at",
    "deadline_at",
    "retention",
    "unreached",
    "error",
)
OF_STEP = ("seq", "parent", "kind", "name", "count", "status", "kept_from", "started_at", "finished_at")
OF_ATTEMPT = ("number", "phase", "status", "worker", "started_at", "finished_at")
OF_EVENT = ("type", "state", "sent_by", "received_at", "consumed_by", "consumed_generation")
OF_AUDIT = ("at", "verb", "actor", "before", "after", "outcome", "reason")


@pytest.fixture
def restarted() -> Instance:
    """Make an instance in its third generation, which differs from the first two in every column."""
    found = factories.instance(
        "errored", id="order-1", code="first", error=REFUSED, rollback="failed", tags=["vip"], unreached=[2]
    )
    kept = factories.step(found, "reserve", options={"max_attempts": 5, "rollback": {"max_attempts": 2}})
    factories.attempt(kept, "errored")
    factories.child(found, "complete", name="bill", id="bill-1")
    factories.attempt(factories.step(found, "charge", "errored", error=REFUSED), "errored", error=REFUSED)
    factories.event(found, "late", {"by": "li"})
    restart.restart(found, "charge", by="ana", reason="the card is good")
    factories.attempt(factories.step(found, "charge", "errored", seq=3, error=REFUSED))
    ended = timezone.now() + timedelta(minutes=1)
    _put(found, status="terminated", finished_at=ended, wake_at=None, code="second", ends_as="")
    factories.deed(found, "terminate", "li", "enough")
    restart.restart(found, by="zoe")
    factories.step(found, "reserve", "running", seq=1)
    _put(
        found,
        status="running",
        owner=7,
        wake_at=ended,
        deadline_at=ended,
        code="third",
        rollback="running",
        ends_as="terminated",
        started_at=ended,
    )
    return found.refresh()


def _put(instance: Instance, **columns: Any) -> None:
    Instance.objects.filter(key=instance.key).update(**columns)
    instance.refresh()


def printed(number: int) -> Any:
    out = io.StringIO()
    call_command("workflow", "show", "orders/order-1", "--generation", str(number), "--json", stdout=out)
    return json.loads(out.getvalue())


def plain(row: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Return columns of a row as they are in JSON."""
    values = {name: getattr(row, name) for name in names}
    return {
        name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in values.items()
    }


def only(shape: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return the same keys of what was printed; empty columns of a row are null there."""
    return {name: shape[name] for name in names}


def emptied(values: dict[str, Any]) -> dict[str, Any]:
    return {name: None if value in ("", 0) else value for name, value in values.items()}


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.usefixtures("restarted")
def test_both_doors_show_the_same_values_of_each_generation(number: int) -> None:
    line, page = printed(number), instance_queries.of("orders", "order-1", generation=number)
    shown = plain(page.instance, OF_INSTANCE)
    shown["error"] = {name: shown["error"][name] for name in ("type", "message")} if shown["error"] else None
    assert emptied(only(line["instance"], OF_INSTANCE)) == emptied(shown)
    assert line["instance"]["why"].startswith(str(page.why[0]))
    steps = {one["seq"]: one for one in line["steps"]}
    drawn = {one.step.seq: one for one in page.lines}
    assert steps.keys() == drawn.keys()
    for seq, step in drawn.items():
        assert emptied(only(steps[seq], OF_STEP)) == emptied(plain(step.step, OF_STEP))
        tries = [(one["phase"], one["number"], one["status"]) for one in steps[seq]["attempts"]]
        made = [("do", one) for one in step.tries[::-1]] + [("rollback", one) for one in step.undone[::-1]]
        assert tries == [(phase, one.number, one.status) for phase, one in made]
    events = [plain(event, OF_EVENT) for event in page.record.events]
    assert [only(one, OF_EVENT) for one in line["events"]] == events
    assert [one["id"] for one in line["children"]] == [row.instance.id for row in page.children]
    # The page needs the last action only; its Activity reads the others by itself.
    assert [only(one, OF_AUDIT) for one in line["audit"][:1]] == [
        plain(one, OF_AUDIT) for one in page.record.audit
    ]
    assert [one["number"] for one in line["generations"]] == [one.number for one in page.generations.earlier]


@pytest.mark.usefixtures("restarted")
def test_an_earlier_generation_has_nothing_of_the_newest() -> None:
    """It has no deadline, no worker and no wait; its code is the one that it ended under."""
    pages = [instance_queries.of("orders", "order-1", generation=number).instance for number in (1, 2, 3)]
    assert [page.code for page in pages] == ["first", "second", "third"]
    assert [page.owner for page in pages] == [None, None, 7]
    assert [page.ends_as for page in pages] == ["", "", "terminated"]
    assert [page.deadline_at is None for page in pages] == [True, True, False]
    assert [page.wake_at is None for page in pages] == [True, True, False]
    assert [page.rollback for page in pages] == ["failed", "", "running"]


@pytest.mark.parametrize(("number", "most"), [(1, 13), (2, 15), (3, 16)])
@pytest.mark.usefixtures("restarted")
def test_the_command_line_asks_nothing_twice(
    number: int, most: int, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(most):
        printed(number)
