"""What an instance's page says about code that changed since it started, and how users accept it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from engine import WorkflowStep, workflow
from engine.declare.registry import Workflow
from engine.models import Audit, Instance
from tests.studio import factories
from tests.studio.instance.reading import choices, labels
from tests.studio.instance.test_instance import page_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_registry")]
HTMX = {"HX-Request": "true"}
OLD = "0123456789abcdef"
ERROR = {"type": "CodeChangedError", "message": "The code of workflow …", "details": {}, "traceback": ""}


def declared(**options: Any) -> Workflow[Any, Any]:
    async def handler(step: WorkflowStep) -> None: ...

    return workflow("orders", **options)(handler)


def paused(code: str = OLD) -> Instance:
    return factories.instance("paused", code=code, pause_reason=ERROR, id="order-1")


def notice(page: str) -> str:
    """Return the notice as text; empty if it is hidden."""
    [(attributes, inside)] = re.findall(r'<div id="code"([^>]*)>(.*?)\n</div>', page, re.DOTALL)
    return "" if "hidden" in attributes else " ".join(re.sub(r"<[^>]+>", " ", inside).split())


def accept(client: Client, instance: Instance, code: str, *, htmx: bool = False) -> tuple[int, str]:
    address = f"{instance.get_absolute_url()}accept-code/"
    answer = client.post(address, {"code": code}, headers=HTMX if htmx else {})
    return answer.status_code, answer.content.decode()


def test_an_instance_under_the_code_that_it_started_under_has_no_notice(operator: Client) -> None:
    current = declared().fingerprint
    assert notice(page_of(operator, factories.instance("waiting", code=current))) == ""


@pytest.mark.parametrize("status", ["complete", "errored", "terminated"])
def test_an_instance_that_has_ended_has_no_notice(operator: Client, status: str) -> None:
    declared()
    assert notice(page_of(operator, factories.instance(status, code=OLD))) == ""


def test_an_instance_that_goes_on_under_other_code_says_so(operator: Client) -> None:
    current = declared().fingerprint
    page = page_of(operator, factories.instance("waiting", code=OLD))
    assert notice(page) == (
        "Started under different code. It continues under the new code. "
        f"Started under 0123456789ab , now {current[:12]} ."
    )
    assert "Accept" not in page


def test_an_instance_that_will_be_paused_can_be_told_to_go_on_beforehand(operator: Client) -> None:
    declared(on_code_change="pause")
    page = page_of(operator, factories.instance("waiting", code=OLD))
    assert "It will be paused before its next step." in notice(page)
    assert "Accept the new code" in labels(page)


def test_a_paused_instance_offers_to_accept_and_not_to_resume(operator: Client) -> None:
    current = declared(on_code_change="pause").fingerprint
    page = page_of(operator, paused())
    assert "the code has changed" not in notice(page)  # the sentence above says it
    assert "Recorded steps keep their results" in choices(page)[0]
    assert f'name="code" value="{current}"' in page
    assert labels(page) == [
        "Accept the new code",
        "Restart…",
        "Send event…",
        "Start another like it…",
        "Terminate…",
    ]
    assert "the code has changed since it started" in page[page.index('id="why"') :]


def test_old_code_that_is_back_needs_nobody(operator: Client) -> None:
    current = declared(on_code_change="pause").fingerprint
    page = page_of(operator, paused(current))
    assert "a worker resumes it automatically" in notice(page)
    assert "Accept" not in page
    assert "Resume" in labels(page)


def test_a_workflow_that_is_gone_cannot_be_accepted(operator: Client) -> None:
    instance = paused()
    page = page_of(operator, instance)
    assert "now no longer in the code." in notice(page)
    assert "Accept" not in page
    assert accept(operator, instance, "")[0] == 409
    assert instance.refresh().status == "paused"


def test_a_viewer_sees_the_button_disabled(viewer: Client) -> None:
    declared(on_code_change="pause")
    page = page_of(viewer, paused())
    assert re.search(r'<button[^>]*form="accept-form"[^>]*disabled title="Requires the operator role"', page)


def test_accepting_resumes_the_instance_and_is_recorded(operator: Client) -> None:
    current = declared(on_code_change="pause").fingerprint
    instance = paused()
    assert accept(operator, instance, current)[0] == 302
    assert (instance.refresh().status, instance.code, instance.error) == ("queued", current, None)
    entry = Audit.objects.get()
    assert (entry.verb, entry.actor, entry.data) == (
        "accept_code",
        "oli",
        {"recorded": OLD, "current": current},
    )
    page = page_of(operator, instance)
    assert notice(page) == ""
    assert "accepted the new code" in page


def test_an_answer_to_htmx_takes_the_notice_away(operator: Client) -> None:
    current = declared(on_code_change="pause").fingerprint
    status, frame = accept(operator, paused(), current, htmx=True)
    assert status == 200
    assert "Accepted the new code. order-1 is queued." in frame
    assert re.search(r'<div id="code"\s+class="note s-retrying" hidden>', frame)


def test_code_that_was_deployed_since_the_page_was_drawn_is_not_accepted(operator: Client) -> None:
    declared(on_code_change="pause")
    instance = paused()
    status, page = accept(operator, instance, "of a page drawn before")
    assert (status, instance.refresh().status, instance.code) == (409, "paused", OLD)
    assert "The code has changed again since you opened this page." in page
    assert not Audit.objects.exists()


def test_the_code_of_an_instance_that_has_ended_is_not_accepted(operator: Client) -> None:
    current = declared(on_code_change="pause").fingerprint
    status, page = accept(operator, factories.instance("complete", code=OLD), current)
    assert status == 409
    assert "accepting other code is no longer possible" in page


def test_steps_that_the_code_no_longer_reached_are_listed_by_name(operator: Client) -> None:
    instance = factories.instance("complete", unreached=[1, 3])
    for name in ("reserve", "charge", "ship"):
        factories.step(instance, name, count=2 if name == "ship" else 1)
    page = page_of(operator, instance)
    note = page[page.index('id="steps-note"') :]
    said = " ".join(re.sub(r"<[^>]+>", "", note[: note.index("</p>")].partition(">")[2]).split())
    assert said == "The code that ended this instance no longer reached steps 1 reserve, 3 ship #2."
    assert '<a href="?upto=3#s-3"' in note


def test_of_very_many_unreached_steps_the_first_are_listed(operator: Client) -> None:
    instance = factories.instance("complete", unreached=list(range(1, 60)))
    for number in range(1, 60):
        factories.step(instance, f"n{number}")
    page = page_of(operator, instance)
    assert "<code>n50</code></a> and 9 more." in " ".join(page.split())


def test_a_list_says_why_the_engine_paused_an_instance(operator: Client) -> None:
    paused()
    factories.instance("paused", pause_reason={"type": "NonDeterminismError", "message": "It does not fit."})
    page = operator.get("/instances/").content.decode()
    assert "the code has changed" in page
    assert "NonDeterminismError: It does not fit." in page


def test_what_the_engine_paused_needs_attention(operator: Client) -> None:
    refused = {"type": "CardRefused", "message": "no"}
    factories.instance("paused", id="by-a-person", error=refused, rollback="running", ends_as="errored")
    paused()
    page = operator.get("/").content.decode()
    assert "paused until the new code is accepted" in page
    assert "order-1" in page
    assert "by-a-person" not in page
