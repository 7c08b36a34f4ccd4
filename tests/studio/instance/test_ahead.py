"""Below its steps, an open instance shows those that its handler makes next, unless the source leaves a doubt."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.test import Client

from engine import workflows
from engine.models import Instance
from studio.instance.live import InstanceView
from studio.instance.steps.ahead import MOST
from tests.modules import Module
from tests.studio import factories
from tests.studio.instance.test_instance import page_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_registry")]

HEAD = """
import asyncio
from engine import WorkflowStep, workflow

@workflow
async def orders(step: WorkflowStep, order: dict) -> None:
    await step.do("check", print)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Module:
    return Module(tmp_path / "shop.py", monkeypatch)


def declare(module: Module, *rest: str) -> str:
    """Declare a handler that begins with `check`, and return its fingerprint."""
    module.load(HEAD + "".join(f"    {line}\n" for line in rest))
    return workflows["orders"].fingerprint


def ahead(client: Client, instance: Instance, query: str = "") -> list[str]:
    page = page_of(client, instance, query)
    part = page[page.index('<tbody id="ahead"') :].split("</tbody>")[0]
    names = re.findall(r'class="name">(.*?)</span>', part, re.DOTALL)
    assert part.count("not started") >= len(names)
    return [re.sub(r"<[^>]*>", "", name).strip("\u2068\u2069") for name in names]


def checked(status: str = "running", **given: object) -> Instance:
    made = factories.instance(status, **given)
    factories.step(made, "check")
    return made


def test_the_steps_that_follow_are_below_those_that_started(viewer: Client, module: Module) -> None:
    code = declare(module, 'await step.do("charge", print)', 'await step.sleep("rest", 3)')
    instance = checked(code=code)
    assert ahead(viewer, instance) == ["charge", "rest"]
    assert 'href="?tab=code#n-8"' in page_of(viewer, instance)
    factories.step(instance, "charge", "running")
    assert ahead(viewer, instance) == ["rest"]
    assert ahead(viewer, factories.instance("queued")) == ["check", "charge", "rest"]


@pytest.mark.parametrize(
    ("rest", "known"),
    [
        (["if order:", '    await step.do("refuse", print)', 'await step.do("ship", print)'], []),
        (["if order:", "    return", 'await step.do("ship", print)'], []),
        (["if order:", "    print()", 'await step.do("ship", print)'], ["ship"]),
        (["for one in order:", '    await step.do("pack", print)', 'await step.do("ship", print)'], []),
        (['await getattr(step, "do")("a", print)', 'await step.do("ship", print)'], []),
        (['await asyncio.gather(step.do("a", print), step.do("b", print))'], ["a", "b"]),
        (['await step.do("check", print)', 'await step.do("ship", print)'], ["check", "ship"]),
    ],
)
def test_what_depends_on_the_run_is_not_said(
    viewer: Client, module: Module, rest: list[str], known: list[str]
) -> None:
    declare(module, *rest)
    assert ahead(viewer, checked()) == known


def test_after_a_branch_that_was_taken_the_rest_is_known(viewer: Client, module: Module) -> None:
    declare(
        module,
        "if order:",
        '    await step.do("a", print)',
        '    await step.do("b", print)',
        'await step.do("ship", print)',
    )
    instance = checked()
    factories.step(instance, "a")
    assert ahead(viewer, instance) == ["b", "ship"]


def test_nothing_is_said_of_ended_past_changed_or_failing_runs(viewer: Client, module: Module) -> None:
    declare(module, 'await step.do("charge", print)', 'await step.do("ship", print)')
    assert ahead(viewer, checked("complete")) == []
    assert ahead(viewer, checked(code="0123456789abcdef")) == []
    failed = checked()
    factories.step(failed, "charge", "errored")
    assert ahead(viewer, failed) == []  # the handler may have caught it
    other = checked()
    factories.step(other, "gone")
    assert ahead(viewer, other) == []
    assert ahead(viewer, checked(), "?find=check") == []


def test_many_are_counted(viewer: Client, module: Module) -> None:
    declare(module, *(f'await step.do("s-{n}", print)' for n in range(MOST + 3)))
    instance = checked()
    assert ahead(viewer, instance) == [f"s-{n}" for n in range(MOST)]
    assert "3 more not started" in page_of(viewer, instance)


def test_the_socket_takes_away_what_starts(module: Module) -> None:
    declare(module, 'await step.do("charge", print)')
    instance = checked()
    view, person = InstanceView(instance.key), factories.person("viewer")
    assert "charge" in view.draw(person).pieces["ahead"].html
    factories.step(instance, "charge", "running")
    assert "charge" not in view.draw(person).pieces["ahead"].html
