"""Each version of a workflow's code leads to its source, and to what differs from the version before."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.test import Client
from django.utils.html import escape

from engine.models import CodeVersion
from engine.steer import code_versions
from tests.modules import Module
from tests.studio import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_registry")]

HEAD = (
    "from engine import WorkflowStep, workflow\n\n@workflow\nasync def orders(step: WorkflowStep) -> None:\n"
)
TEXTS = [f"{HEAD}    await step.do('{name}', print)\n" for name in ("check", "charge", "pay")]
WHERE = "/workflows/orders/"


@pytest.fixture
def codes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Workers have run three versions; the last is the code now."""
    module, found = Module(tmp_path / "shop.py", monkeypatch), list[str]()
    for text in TEXTS:
        module.load(text)
        code_versions.keep()
        found.append(module.workflow().fingerprint)
        factories.instance("complete", code=found[-1])
    return found


def page_of(client: Client, address: str = "", **given: str) -> str:
    answer = client.get(f"{WHERE}{address}", given)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_versions_lead_to_their_code_and_to_what_differs(codes: list[str], viewer: Client) -> None:
    page = page_of(viewer, tab="versions")
    links = re.findall(r'href="/workflows/orders/code/([^"]*)"', page.partition('id="version-rows"')[2])
    first, second, third = codes
    of_older = {f"?version={first}", f"?version={second}"}
    assert {*links} == {
        "",
        *of_older,
        f"?version={second}&amp;against={first}",
        f"?version={third}&amp;against={second}",
    }


def test_an_earlier_version_is_drawn_beside_its_code(codes: list[str], viewer: Client) -> None:
    page = page_of(viewer, "code/", version=codes[0])
    assert f"This is version <code>{codes[0][:12]}</code>, not the code now." in page
    assert ">check</text>" in page
    assert ">pay</text>" not in page
    assert f'href="?against={codes[0]}">compare with the code now</a>' in page


def test_two_versions_are_compared(codes: list[str], viewer: Client) -> None:
    page = page_of(viewer, "code/", version=codes[1], against=codes[0])
    signs = re.findall(r'aria-label="(removed|added)">.</span><code>.*?&#x27;(\w+)&#x27;', page)
    assert signs == [("removed", "check"), ("added", "charge")]
    assert "1 line added, 1 removed." in page
    assert "the code now" not in page.partition('id="main"')[2]


def test_the_code_now_is_compared_if_no_version_is_named(codes: list[str], viewer: Client) -> None:
    page = page_of(viewer, "code/", against=codes[0])
    assert re.search(rf"version <code>{codes[2][:12]}</code>, the code now", page)


def test_an_address_with_the_version_of_now_is_that_of_the_code(codes: list[str], viewer: Client) -> None:
    page = page_of(viewer, "code/", version=codes[2])
    assert "not the code now" not in page
    assert ">pay</text>" in page


def test_a_version_without_source_is_said(codes: list[str], viewer: Client) -> None:
    CodeVersion.objects.filter(code=codes[0]).delete()
    said = f"There is no code of version <code>{codes[0][:12]}</code>: no worker has kept its source."
    assert said in page_of(viewer, "code/", version=codes[0])
    assert said in page_of(viewer, "code/", version=codes[1], against=codes[0])
    assert f"version={codes[0]}" not in page_of(viewer, tab="versions")


@pytest.mark.parametrize("version", ["nope!", "<script>", "0123456789abcdefg", "f" * 65])
def test_what_is_no_version_is_named_and_has_no_effect(
    codes: list[str], viewer: Client, version: str
) -> None:
    page = page_of(viewer, "code/", version=version)
    assert "<script>alert" not in page
    assert ">pay</text>" in page
    assert f"<bdi>version={escape(version)[:20]}" in page


def test_versions_of_other_workflows_are_not_shown(codes: list[str], viewer: Client) -> None:
    CodeVersion.objects.filter(code=codes[0]).update(workflow="secrets")
    assert "There is no code of version" in page_of(viewer, "code/", version=codes[0])


def test_a_workflow_that_is_gone_has_the_code_of_its_versions(
    codes: list[str], viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.declare.registry.workflows._workflows", {})
    assert viewer.get(f"{WHERE}code/").status_code == 404
    assert ">check</text>" in page_of(viewer, "code/", version=codes[0])
    assert f"?version={codes[0]}" in page_of(viewer, tab="versions")


def test_two_versions_with_thousands_of_lines_are_cut(
    tmp_path: Path, viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, found = Module(tmp_path / "shop.py", monkeypatch), list[str]()
    for word in ("a", "b"):
        module.load(HEAD + "".join(f"    {word}{n} = {n}\n" for n in range(4_000)))
        code_versions.keep()
        found.append(module.workflow().fingerprint)
    page = page_of(viewer, "code/", against=found[0])
    assert "4,000 lines added, 4,000 removed." in page
    assert "Only the first 600 lines of the difference are shown." in page
    assert page.count('<span class="sign" role="img"') <= 600
