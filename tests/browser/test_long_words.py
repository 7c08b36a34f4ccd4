"""A very long word makes no page wider than the window, and each column has room for words at each width."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from engine.values.error_record import ErrorRecord
from engine.values.fingerprint import failed
from tests.browser.conftest import Complaints
from tests.live import LiveStack

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]

WORD = "x" * 300
NAME, ID = "w" * 64, "i" * 100
STORY = f"""
from tests.studio import factories
from engine.models import Audit
one = factories.instance("errored", workflow={NAME!r}, id={ID!r}, started_by="s" * 100,
    error={{"type": "E" * 100, "message": {WORD!r}, "details": {{}}, "traceback": {WORD!r}}})
factories.step(one, {WORD[:100]!r}, "errored", error={{"type": "E", "message": {WORD!r}, "details": {{}}}})
asking = factories.instance("waiting", workflow={NAME!r}, id="asking")
factories.request(asking, message={WORD!r}, assignees=["group:" + "g" * 100])
factories.failure({NAME!r}, step={WORD[:100]!r}, decision="ignored", decided_by="d" * 150, reason={WORD!r},
    decided_at=factories.ago(hours=1),
    error={{"type": "E" * 100, "message": {WORD!r}, "details": {{}}, "traceback": ""}})
for verb in ("pause", "send_event"):
    Audit.objects.create(verb=verb, actor="a" * 150, workflow=one.workflow, instance_id=one.id, instance_key=one.key,
        reason={WORD!r}, data={{"type": "t" * 100}})
"""
GROUP = failed(ErrorRecord("E" * 100, WORD), workflow=NAME, step=WORD[:100]).fingerprint
INSTANCE = f"/workflows/{NAME}/instances/{ID}/"
PAGES = [
    "/",
    "/instances/",
    f"/instances/?q={WORD[:100]}",
    f"/instances/?query=workflow:{NAME}+id:{ID}+status:errored&columns=params.{'c' * 100},params.order_id",
    f"/instances/?query=error:{WORD[:150]}+params.{'p' * 90}:*",
    f"/instances/?query=status:{WORD}",
    "/workflows/",
    f"/workflows/{NAME}/",
    INSTANCE,
    f"{INSTANCE}restart/",
    f"{INSTANCE}restart/?step=do:{WORD[:100]}",
    f"/workflows/{NAME}/instances/asking/",
    "/approvals/?box=open",
    "/workers/",
    "/schedules/",
    "/schedules/?view=week",
    "/webhooks/",
    f"/workflows/{NAME}/?tab=versions",
    "/workflows/process-order/?tab=versions",
    f"/errors/?state=ignored&workflow={NAME}&query={'q' * 200}",
    f"/errors/?state=ignored&workflow={NAME}",
    f"/errors/{GROUP}/",
    "/audit/",
    f"/audit/?person={'p' * 150}&workflow={NAME}&id={ID}&verb=pause",
    f"/audit/?person={'p' * 150}",
    f"/{WORD}/",
    f"/workflows/{NAME}/instances/{'n' * 100}/",
    "/password/",
]


@pytest.fixture(scope="module")
def story(live_stack: LiveStack) -> Iterator[None]:
    live_stack.django(STORY)
    yield
    live_stack.django(
        f"from engine.models import Failure, Instance\n"
        f"Instance.objects.filter(workflow={NAME!r}).delete()\nFailure.objects.filter(workflow={NAME!r}).delete()"
    )


# Text in a column that has no room for it: letters stand below each other.
SQUEEZED = """
    [...document.querySelectorAll("main *")].filter((one) => {
      const { width, height } = one.getBoundingClientRect();
      const words = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim().length > 5);
      return words && width > 1 && width < 45 && height > 60;
    }).map((one) => one.textContent.trim().slice(0, 30))
"""


def test_no_page_is_wider_than_its_window_and_no_column_too_narrow_for_words(
    story: None, signed_in: Page, complaints: Complaints
) -> None:
    complaints.allow("404")
    wrong = {}
    for number, where in enumerate(PAGES):
        signed_in.goto(where)
        for width in (390, 901, 1024, 1280, 1440):
            signed_in.set_viewport_size({"width": width, "height": 900})
            more = signed_in.evaluate("document.documentElement.scrollWidth - innerWidth")
            squeezed = signed_in.evaluate(SQUEEZED)
            if more > 0 or squeezed:
                wrong[number, width, where.replace(NAME, "…").replace(ID, "…")[:60]] = max(more, 0), squeezed
    assert wrong == {}, "\n".join(map(str, wrong.items()))
