"""The tab with the code shows the version under which an instance started, the one of now, and what differs."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from engine.models import CodeVersion, Instance
from engine.steer import code_versions, restart
from studio.instance.live import InstanceView
from tests.modules import Module
from tests.studio import factories
from tests.studio.frame.test_weight import MOST_BYTES, weight_of
from tests.studio.instance.test_instance import page_of
from tests.studio.instance.test_painted_code import said

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_registry")]

HEAD = (
    "from engine import WorkflowStep, workflow\n\n@workflow\nasync def orders(step: WorkflowStep) -> str:\n"
)
OLD = f'{HEAD}    await step.do("check", print)\n    await step.do("charge", print)\n    return "paid"\n'
NEW = OLD.replace('"charge", print', '"pay", print, max_attempts=3').replace(
    "    return", "    # <b>\n    return"
)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Module:
    """Workers ran OLD; NEW is the code now."""
    made = Module(tmp_path / "shop.py", monkeypatch)
    made.load(OLD)
    code_versions.keep()
    made.load(NEW)
    return made


def started_under_old(status: str = "complete") -> Instance:
    code = CodeVersion.objects.order_by("first_seen_at").values_list("code", flat=True)[0]
    made = factories.instance(status, code=code)
    factories.step(made, "check")
    factories.step(made, "charge", "complete")
    return made


def code_of(client: Client, instance: Instance, **given: str) -> str:
    query = "".join(f"&{name}={value}" for name, value in given.items())
    return " ".join(page_of(client, instance, f"?tab=code{query}").split())


def shown(page: str) -> str:
    return re.findall(r'<a id="version-(\w+)" href="[^"]*" aria-current="page">', page)[0]


def marked(page: str) -> dict[int, str]:
    rows = re.findall(r'<li id="L(\d+)" class="changed">.*?aria-label="(\w+)"', page)
    return {int(line): sign for line, sign in rows}


def test_what_has_ended_is_painted_in_the_version_under_which_it_started(
    module: Module, viewer: Client
) -> None:
    page = code_of(viewer, started_under_old())
    assert shown(page) == "start"
    assert said(page)[6] == "complete: 800 ms"
    assert said(page)[7] == "ended here"
    assert marked(page) == {6: "removed"}
    assert "not in this drawing" not in page
    assert "2 lines added, 1 removed." in page


def test_what_goes_on_is_painted_in_the_code_that_makes_its_next_step(module: Module, viewer: Client) -> None:
    instance = started_under_old("running")
    page = code_of(viewer, instance)
    assert (shown(page), marked(page)) == ("now", {6: "added", 7: "added"})
    assert "1 step of this instance is not in this drawing" in page
    page = code_of(viewer, instance, version="start")
    assert (shown(page), marked(page)) == ("start", {6: "removed"})


def test_what_waits_for_the_new_code_to_be_accepted_is_painted_in_its_own(
    module: Module, viewer: Client
) -> None:
    module.load(NEW.replace("@workflow", '@workflow(on_code_change="pause")'))
    assert shown(code_of(viewer, started_under_old("running"))) == "start"


def test_the_difference_has_signs_numbers_and_words(module: Module, viewer: Client) -> None:
    page = code_of(viewer, started_under_old(), version="difference")
    rows = re.findall(
        r'<li><span class="n">(\d+)</span><span class="sign" role="img" aria-label="(\w+)">', page
    )
    assert rows == [("6", "removed"), ("6", "added"), ("7", "added")]
    assert '<span class="n">7</span><span class="n">8</span><code> <span class="k">return' in page
    assert "# &lt;b&gt;" in page
    assert "# <b>" not in page
    assert '<svg class="diagram' not in page


def test_the_socket_follows_the_version_that_is_shown(module: Module, viewer: Client) -> None:
    instance, viewing = started_under_old("running"), factories.person("viewer")
    page = code_of(viewer, instance, version="start")
    assert f"topic=instance:{instance.key}&amp;tab=code&amp;version=start" in page
    for version, there in (("start", True), ("now", False)):
        drawn = InstanceView(instance.key, tab="code", given=(("version", version),)).draw(viewing)
        assert (">charge</text>" in drawn.pieces["diagram"].html) is there
    assert (
        "diagram"
        not in InstanceView(instance.key, tab="code", given=(("version", "difference"),)).draw(viewing).pieces
    )


def test_an_earlier_generation_has_the_version_under_which_it_started(module: Module, viewer: Client) -> None:
    instance = started_under_old()
    restart.restart(instance, by="ana", reason="the code is better")
    page = code_of(viewer, instance)
    assert "has changed since" not in page
    page = code_of(viewer, instance, generation="1")
    assert shown(page) == "start"
    assert "The handler has changed since this generation started" in page
    assert 'href="?generation=1&amp;tab=code&amp;version=difference"' in page


def test_a_version_that_only_an_old_worker_ran_is_not_known(module: Module, viewer: Client) -> None:
    CodeVersion.objects.all().delete()
    instance = factories.instance("complete", code="0123456789abcdef")
    factories.step(instance, "check")
    page = code_of(viewer, instance, version="difference")
    assert "Changed lines cannot be marked: no worker has kept its source." in page
    assert said(page)[5] == "complete: 800 ms"
    assert 'id="version-start"' not in page


def test_a_version_that_was_too_long_says_so(module: Module, viewer: Client) -> None:
    CodeVersion.objects.update(text=None)
    assert "more than 256 kB and is not kept" in code_of(viewer, started_under_old())


@pytest.mark.parametrize("text", ["no ) Python", "x = 1", "", "(" * 5_000])
def test_a_kept_source_that_cannot_be_read_is_said(module: Module, viewer: Client, text: str) -> None:
    CodeVersion.objects.update(text=text)
    assert "this version of Python cannot read its source" in code_of(viewer, started_under_old())


def test_a_workflow_that_is_gone_still_shows_what_the_instance_ran(module: Module, viewer: Client) -> None:
    instance = started_under_old()
    module.load("")
    page = code_of(viewer, instance)
    assert "This is the version under which the instance started." in page
    assert said(page)[6] == "complete: 800 ms"


def test_an_unknown_version_is_named_and_has_no_effect(module: Module, viewer: Client) -> None:
    page = code_of(viewer, started_under_old(), version="nope")
    assert "<code><bdi>version=nope</bdi></code>" in page
    assert shown(page) == "start"


def test_the_line_of_a_step_is_that_of_its_version(module: Module, viewer: Client) -> None:
    instance = started_under_old()
    page = " ".join(page_of(viewer, instance, "?step=charge-1").split())
    assert f'href="/workflows/orders/code/?version={instance.code}#L6">' in page
    assert "it has changed since" not in page


def test_unchanged_code_asks_for_no_versions(module: Module, viewer: Client) -> None:
    instance = factories.instance("complete", code=module.workflow().fingerprint)
    with CaptureQueriesContext(connection) as queries:
        page = code_of(viewer, instance)
    assert not [one for one in queries if "engine_code" in one["sql"]]
    assert 'id="version-start"' not in page


def test_hidden_characters_and_markup_in_kept_source_are_inert(module: Module, viewer: Client) -> None:
    module.load(OLD.replace("charge", "\u202egrahc\u2069 </li><script>alert(1)</script>"))
    code_versions.keep()
    code = module.workflow().fingerprint
    module.load(NEW)
    for version in ("start", "difference"):
        page = code_of(viewer, factories.instance("complete", code=code), version=version)
        assert "\\u202egrahc\\u2069 &lt;/li&gt;&lt;script&gt;" in page
        assert "<script>alert" not in page
        assert "\u202e" not in page.partition('<ol class="code')[2].partition("</ol>")[0]


def _long(word: str, *, is_other: bool) -> str:
    """Return a handler with 300 lines and as many parts."""
    lines = [
        f'    if risk > {n}:\n        await step.do("warn-{n}", print)\n'
        if n % 4 == 0
        else f'    risk = await step.do("{word if is_other and n % 3 == 0 else "take"}-the-order-{n}", print, {n})\n'
        for n in range(240)
    ]
    return HEAD.replace("str:", "str:\n    risk = 0") + "".join(lines) + '    return "paid"\n'


def test_300_lines_are_light_in_each_version(module: Module, viewer: Client) -> None:
    module.load(_long("take", is_other=False))
    code_versions.keep()
    made = factories.instance("complete", code=module.workflow().fingerprint)
    for n in range(1, 240, 4):
        factories.step(made, f"take-the-order-{n}")
    module.load(_long("give", is_other=True))
    where = made.get_absolute_url()
    pages = {
        name: viewer.get(where, {"tab": "code", "version": name}).content
        for name in ("start", "now", "difference")
    }
    assert weight_of(pages["difference"]) <= MOST_BYTES
    assert len(gzip.compress(pages["start"], 6)) <= 32_000  # 39,000 before each part was at its own origin
    assert len(gzip.compress(pages["now"], 6)) <= 32_000
