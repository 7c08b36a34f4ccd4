"""The drawing of a workflow's handler is beside its code, and each leads to the other."""

from __future__ import annotations

import html
import importlib.util
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client

from engine import workflows
from engine.lints import project
from studio.workflows.code import WINDOW
from tests.studio import factories

pytestmark = pytest.mark.django_db

Declare = Callable[[str], None]
SHOP = """
import time
from engine import WorkflowStep, workflow

KEY = "sk-live-4711"

@workflow
async def shop(step: WorkflowStep, order: int) -> str:
    risk = await step.do("fraud-check", print, order)
    if risk > 0.8:
        return "refused <now>"
    time.time()
    await notify(step)
    return "paid"

async def notify(step: WorkflowStep) -> None:
    await step.do("mail", print)
"""
BUILDER = """
from engine import workflow

@workflow
async def shop(step) -> None:
    for kind in ("a", "b"):
        await getattr(step, "do")(kind, print)
"""


@pytest.fixture
def declare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Declare:
    """Declare the workflow `shop` from the text of its module."""
    monkeypatch.setattr(workflows, "_workflows", {})
    monkeypatch.setattr(project, "packages", list)
    monkeypatch.chdir(tmp_path)

    def make(text: str) -> None:
        file = tmp_path / "workflows.py"
        file.write_text(text)
        spec = importlib.util.spec_from_file_location("shop_workflows", file)
        assert spec is not None
        assert spec.loader is not None
        spec.loader.exec_module(importlib.util.module_from_spec(spec))

    return make


def body(client: Client, address: str = "/workflows/shop/code/") -> str:
    response = client.get(address)
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def test_parts_of_the_drawing_and_lines_lead_to_each_other(declare: Declare, viewer: Client) -> None:
    declare(SHOP)
    page = body(viewer)
    assert 'id="n-9" href="#L9"' in page
    assert '<li id="L9"><a class="n item" href="#n-9">9</a>' in page
    assert "risk &gt; 0.8" in page
    assert "refused &lt;now&gt;" in page
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([Ln][^"]*)"', page)) <= set(ids)


def test_only_the_functions_that_are_drawn_are_shown(declare: Declare, viewer: Client) -> None:
    declare(SHOP)
    page = body(viewer)
    assert '<li id="L16" class="begins">' in page  # notify, which the handler calls
    assert "sk-live-4711" not in page


def test_findings_are_beside_their_lines(declare: Declare, viewer: Client) -> None:
    declare(SHOP)
    page = body(viewer)
    line, finding, after = (page.index(one) for one in ('id="L12"', "engine.E105", 'id="L13"'))
    assert line < finding < after


def test_the_drawing_is_also_a_list(declare: Declare, viewer: Client) -> None:
    declare(SHOP)
    listed = re.compile(r'<li id="i-[^"]*"> <a href="#L(\d+)">line \d+</a> <span>([^<]*)</span>')
    page = body(viewer)
    assert listed.findall(page) == []
    (link,) = re.findall(r'<a href="(\?[^"]*)">The drawing as a list</a>', page)
    said = listed.findall(body(viewer, f"/workflows/shop/code/{html.unescape(link)}"))
    assert said == [
        ("9", "step fraud-check"),
        ("10", "if risk &gt; 0.8"),
        ("11", "end: refused &lt;now&gt;"),
        ("17", "step mail, in notify()"),
        ("14", "end: paid"),
    ]


def test_a_handler_that_builds_its_steps_in_code_is_said_and_its_code_shown(
    declare: Declare, viewer: Client
) -> None:
    declare(BUILDER)
    page = body(viewer)
    assert "This handler builds its steps in code, so there is no drawing." in page
    assert '<svg class="diagram' not in page
    assert 'id="L7"' in page


def test_a_handler_without_source_is_said(declare: Declare, viewer: Client, tmp_path: Path) -> None:
    declare(BUILDER)
    (tmp_path / "workflows.py").unlink()
    assert "The source of this handler is not on this machine" in body(viewer)


def test_a_long_handler_is_shown_in_parts(declare: Declare, viewer: Client) -> None:
    steps = "\n".join(f'    await step.do("a{n}", print)' for n in range(5_000))
    declare(f"from engine import workflow\n@workflow\nasync def shop(step) -> None:\n{steps}\n")
    first = body(viewer)
    assert "too many to draw" in first
    assert first.count('<li id="L') == WINDOW
    assert f'href="?from={WINDOW + 1}"' in first
    assert f"{WINDOW + 1:,} to {2 * WINDOW:,} of 5,002 lines" in body(
        viewer, f"/workflows/shop/code/?from={WINDOW + 1}"
    )
    assert "of 5,002 lines" in body(viewer, "/workflows/shop/code/?from=999999999")


def test_a_line_on_another_part_of_the_listing_has_a_link_to_it(declare: Declare, viewer: Client) -> None:
    text = "from engine import workflow\n@workflow\nasync def shop(step) -> None:\n"
    text += '    await step.do("a", print)\n' + "    # nothing\n" * 700 + "    await notify(step)\n"
    text += "async def notify(step) -> None:\n" + "    # nothing\n" * 700 + '    await step.do("b", print)\n'
    declare(text)
    first, last = 4, len(text.splitlines())
    page = body(viewer, "/workflows/shop/code/?list=1")
    assert f'<li id="L{last}"' not in page
    assert page.count(f'href="?from={WINDOW + 1}#L{last}"') == 2  # in the drawing and in the list
    assert f'href="?from=1#L{first}"' not in page
    page = body(viewer, f"/workflows/shop/code/?from={WINDOW + 1}&list=1")
    assert f'<li id="L{last}"' in page
    assert page.count(f'href="?from=1#L{first}"') == page.count(f'href="#L{last}"') == 2


def test_unknown_workflows_have_no_code(declare: Declare, viewer: Client) -> None:
    declare(SHOP)
    assert viewer.get("/workflows/none/code/").status_code == 404
    factories.instance(workflow="gone")
    assert viewer.get("/workflows/gone/code/").status_code == 404


def test_only_who_may_see_the_workflow_sees_its_code(declare: Declare, client: Client) -> None:
    declare(SHOP)
    assert client.get("/workflows/shop/code/").status_code == 302
    assert "fraud-check" not in client.get("/workflows/shop/code/", follow=True).content.decode()


def test_an_unknown_parameter_is_named(declare: Declare, viewer: Client) -> None:
    declare(SHOP)
    assert "<code><bdi>region=eu</bdi></code>" in body(viewer, "/workflows/shop/code/?region=eu&from=1")
