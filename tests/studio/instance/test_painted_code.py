"""The tab with the handler's drawing and code says what the instance has done, and leads to its steps."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from engine import workflows
from engine.models import Instance, Step
from studio.instance.live import InstanceView
from tests.modules import Module
from tests.studio import factories
from tests.studio.instance.test_instance import page_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_registry")]

Declare = Callable[[str], None]
SHOP = """
from engine import WorkflowStep, workflow

@workflow
async def orders(step: WorkflowStep, order: dict) -> str:
    risk = await step.do("check", print, order)
    if risk > 0.8:
        await step.do("refuse", print)
        return "refused"
    await step.map("allocate", order, print)
    for n in range(3):
        await step.do(f"parcel-{n}", print)
    await step.do("charge", print)
    return "paid"
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Module:
    return Module(tmp_path / "shop.py", monkeypatch)


@pytest.fixture
def declare(module: Module) -> Declare:
    """Declare the workflow `orders` from the text of its module."""
    return module.load


def running() -> Instance:
    """Make an instance that is retrying its charge."""
    made = factories.instance("waiting", waiting_for="retry", wake_at=factories.ago(minutes=-2))
    factories.step(made, "check")
    group = factories.step(made, "allocate", kind="map")
    for n in range(3):
        factories.step(made, "allocate", parent=group.seq, count=n + 1)
    for n in range(3):
        factories.step(made, f"parcel-{n}")
    charge = factories.step(made, "charge", "waiting", wake_at=made.wake_at)
    for _ in range(2):
        factories.attempt(charge, "errored")
    return made


def code_of(client: Client, instance: Instance, query: str = "") -> str:
    return " ".join(page_of(client, instance, f"?tab=code{query}").split())


def said(page: str) -> dict[int, str]:
    """Return the text beside each line."""
    found = re.findall(r'<span class="beside-line" id="f-(\d+)">(.*?)</span></li>', page)
    return {int(line): " ".join(re.sub(r"<[^>]+>", " ", html).split()) for line, html in found}


def test_each_line_says_what_its_steps_have_done(declare: Declare, viewer: Client) -> None:
    declare(SHOP)
    beside = said(code_of(viewer, running()))
    assert re.sub(r" in .*", "", beside.pop(13)) == "retrying: 2 of 5 failed"
    assert beside == {
        6: "complete: 800 ms",
        7: "no",
        8: "not reached",
        9: "not reached",
        10: "complete: 3 items · 800 ms",
        11: "",
        12: "complete: 3 times · 800 ms",
        14: "not reached",
    }


def test_each_part_of_the_drawing_has_the_state_of_its_step_in_words(
    declare: Declare, viewer: Client
) -> None:
    declare(SHOP)
    page = code_of(viewer, running())
    titles = dict(re.findall(r'<a class="node[^"]*" id="n-([^"]*)"[^>]*><title>([^<]*)</title>', page))
    assert titles["6"] == "step check: complete, 800 ms"
    assert titles["8"] == "step refuse: not reached"
    assert titles["13"] == "step charge: retrying, 2 of 5 failed"
    assert re.search(r'<a class="node step s-retrying" id="n-13" href="#L13"', page)
    assert re.search(r'<a class="node step open" id="n-8"', page)


def test_lines_and_list_lead_to_the_steps(declare: Declare, viewer: Client) -> None:
    declare(SHOP)
    instance = running()
    page = code_of(viewer, instance)
    links = re.findall(r'id="f-13">.*?<a href="([^"]*)"', page)
    assert links == ["?step=charge-1"]
    assert "Open step 9" not in page
    (listed,) = re.findall(r'<a href="([^"]*)">The drawing as a list</a>', page)
    assert listed == "?tab=code&amp;from=1&amp;list=1#outline-title"
    page_with_list = code_of(viewer, instance, "&from=1&list=1")
    assert '<a class="to-step" href="?step=charge-1">Open step 9</a>' in page_with_list
    assert 'id="pane-title" class="mono">charge' in " ".join(page_of(viewer, instance, links[0]).split())


def test_repeated_steps_are_found_together(declare: Declare, viewer: Client) -> None:
    declare(SHOP.replace('f"parcel-{n}"', '"parcel"'))
    instance = factories.instance("running")
    for n in (1, 2, 3):
        factories.step(instance, "parcel", count=n)
    page = code_of(viewer, instance)
    assert said(page)[12] == "complete: 3 times · 800 ms all 3"
    assert 'href="?find=parcel">all 3</a>' in page


def test_a_failed_turn_stays_visible_after_a_good_one(declare: Declare, viewer: Client) -> None:
    declare(SHOP)
    instance = factories.instance("running")
    factories.step(instance, "parcel-0", "errored")
    factories.step(instance, "parcel-1")
    assert said(code_of(viewer, instance))[12] == "complete: 2 times · 800 ms · 1 failed before"


def test_it_says_where_the_instance_ended(declare: Declare, viewer: Client) -> None:
    declare(SHOP)
    instance = factories.instance("complete")
    factories.step(instance, "check")
    factories.step(instance, "refuse")
    beside = said(code_of(viewer, instance))
    assert beside[9] == "ended here"
    assert beside[7] == "yes"
    assert beside[14] == "not reached"


def test_the_socket_updates_the_drawing_and_the_lines_but_not_the_code(declare: Declare) -> None:
    declare(SHOP)
    instance = factories.instance("running")
    factories.step(instance, "check")
    view, viewing = InstanceView(instance.key, tab="code", given=(("list", "1"),)), factories.person("viewer")
    before = view.draw(viewing).pieces
    factories.step(instance, "parcel-0")
    after = view.draw(viewing).pieces
    changed = {name for name in after if after[name].print != before[name].print}
    assert {"diagram", "outline", "f-12"} <= changed
    assert {"f-6", "f-8", "version"} & changed == set()
    assert "handler" not in after


def test_changed_code_is_said_with_both_versions(declare: Declare, viewer: Client) -> None:
    declare(SHOP)
    current = workflows["orders"].fingerprint
    changed = factories.instance("complete", code="0123456789abcdef")
    page = code_of(viewer, changed)
    assert "The handler has changed since this instance started" in page
    assert "<code>0123456789ab</code>" in page
    assert f"<code>{current[:12]}</code>" in page
    assert "Changed lines cannot be marked: no worker has kept its source." in page
    assert 'id="version-difference"' not in page
    assert "has changed since" not in code_of(viewer, factories.instance("complete", code=current))


def test_steps_that_the_code_no_longer_makes_are_counted(declare: Declare, viewer: Client) -> None:
    declare(SHOP)
    instance = factories.instance("complete")
    factories.step(instance, "check")
    assert "not in this drawing" not in code_of(viewer, instance)
    factories.step(instance, "gone")
    factories.step(instance, "gone-too")
    page = code_of(viewer, instance)
    assert "2 steps of this instance are not in this drawing; the latest is" in page
    assert 'href="?step=gone-too-1"' in page


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('    await getattr(step, "do")("a", print)', "builds its steps in code, so there is no drawing"),
        ("    await step.do('a', print)\n" * 5_000, "too many to draw"),
    ],
)
def test_a_handler_that_cannot_be_drawn_has_its_code(
    declare: Declare, viewer: Client, body: str, expected: str
) -> None:
    declare(f"from engine import workflow\n@workflow\nasync def orders(step) -> None:\n{body}\n")
    page = code_of(viewer, running())
    assert expected in page
    assert '<li id="L3">' in page
    assert '<svg class="diagram' not in page


def test_a_workflow_that_is_no_longer_in_the_code_is_said(declare: Declare, viewer: Client) -> None:
    page = code_of(viewer, factories.instance("complete"))
    assert "no longer in the code, so there is neither drawing nor code" in page


def test_a_handler_without_source_is_said(declare: Declare, viewer: Client, tmp_path: Path) -> None:
    declare(SHOP)
    (tmp_path / "shop.py").unlink()
    assert "The source of this handler is not on this machine" in code_of(viewer, running())


def test_code_in_parts_keeps_the_tab(declare: Declare, viewer: Client) -> None:
    steps = "    await step.do('a', print)\n" * 5_000
    declare(f"from engine import workflow\n@workflow\nasync def orders(step) -> None:\n{steps}")
    instance = running()
    assert 'href="?tab=code&amp;from=1001"' in code_of(viewer, instance)
    assert "1,001 to 2,000 of 5,002 lines" in code_of(viewer, instance, "&from=1001")


def test_an_instance_of_10000_steps_is_counted_and_not_read(declare: Declare, viewer: Client) -> None:
    declare(SHOP.replace('step.do(f"parcel-{n}", print)', 'step.sleep(f"parcel-{n}", 1)'))
    instance = factories.instance("running")
    at = instance.created_at
    of = {"instance_id": instance.key, "generation": 1, "kind": "sleep", "status": "complete", "count": 1}
    Step.objects.bulk_create(
        Step(seq=n, name=f"parcel-{n}", delivery=n, started_at=at, finished_at=at, **of)
        for n in range(1, 10_001)
    )
    code_of(viewer, instance)
    with CaptureQueriesContext(connection) as queries:
        page = code_of(viewer, instance)
    assert said(page)[12] == "complete: 10,000 times · 0 s"
    assert len(queries) < 40
