"""Decide on a step whose attempts are used up, on the pages of the Studio."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from engine import RollbackContext, StepContext, WorkflowStep, workflow
from engine.models import Audit, Instance, Step
from engine.testing import WorkflowTest, workflow_test

pytestmark = pytest.mark.django_db
PAUSING: dict[str, Any] = {"max_attempts": 2, "delay": 0, "on_exhausted": "pause"}


@pytest.fixture
def test(own_registry: None) -> Iterator[WorkflowTest]:
    with workflow_test(allow_unused=True, skips_time=False) as found:
        yield found


def charge(ctx: StepContext) -> str:
    if ctx.attempt <= 2:
        raise ConnectionError("The bank does not answer.")
    return "charged"


def refund(ctx: RollbackContext) -> None:
    """Nothing was charged."""


def bill(test: WorkflowTest) -> Instance:
    @workflow("bill")
    async def story(step: WorkflowStep) -> str:
        return await step.do("charge", charge, rollback=refund, **PAUSING)

    instance = test.run(story.start(id="bill-1"))
    assert instance.status == "paused"
    return instance


def at(instance: Instance, what: str, seq: int = 1) -> str:
    return f"{instance.get_absolute_url()}steps/{seq}/{what}/"


def text_of(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


def read(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def send(client: Client, instance: Instance, what: str, **fields: Any) -> Any:
    return client.post(at(instance, what), {"generation": instance.generation, **fields})


def test_the_page_of_the_instance_says_why_and_leads_to_the_decision(
    operator: Client, test: WorkflowTest
) -> None:
    instance = bill(test)
    page = read(operator, instance.get_absolute_url())
    text = text_of(page)
    assert "Paused: step 1 charge used up its 2 attempts · ConnectionError: The bank does not answer" in text
    assert "Retry, skip or fail it." in text
    assert f'href="{at(instance, "decide")}"' in page
    assert 'aria-describedby="does-resume"' not in page  # it would be refused
    listed = text_of(read(operator, "/instances/?query=status:paused"))
    assert "step 1 charge used up its 2 attempts" in listed


def test_a_resume_is_refused_with_what_to_do(operator: Client, test: WorkflowTest) -> None:
    instance = bill(test)
    answer = operator.post(f"{instance.get_absolute_url()}resume/")
    assert answer.status_code == 409
    assert "Retry, skip or fail it; then the instance goes on." in text_of(answer.content.decode())


def test_the_page_shows_the_error_and_what_each_choice_does_and_does_not_do(
    operator: Client, test: WorkflowTest
) -> None:
    text = text_of(read(operator, at(bill(test), "decide")))
    assert "The attempts of step 1 charge are used up." in text
    assert "ConnectionError : The bank does not answer." in text
    assert "with all its attempts and the same idempotency key" in text
    assert "It is not rolled back , even if the instance fails later." in text
    assert "its rollbacks run , also that of this step" in text


def test_a_viewer_reads_it_and_cannot_act(viewer: Client, test: WorkflowTest) -> None:
    instance = bill(test)
    page = read(viewer, at(instance, "decide"))
    assert page.count('disabled title="Requires the operator role"') == 3
    assert send(viewer, instance, "skip", output="1", reason="x").status_code == 403
    assert instance.refresh().status == "paused"


def test_retry_runs_it_again(operator: Client, test: WorkflowTest) -> None:
    instance = bill(test)
    answer = send(operator, instance, "retry", reason="it is back")
    assert answer.headers["Location"] == instance.get_absolute_url()
    assert test.run(instance).output == "charged"
    entry = Audit.objects.get(verb="retry_step")
    assert (entry.reason, entry.before, entry.after) == ("it is back", "paused", "queued")
    page = text_of(read(operator, instance.get_absolute_url()))
    assert "retried “charge”" in page


def test_fail_needs_a_reason_and_lets_it_fail(operator: Client, test: WorkflowTest) -> None:
    instance = bill(test)
    refused = send(operator, instance, "fail", reason=" ")
    assert (refused.status_code, instance.refresh().status) == (422, "paused")
    assert "Enter a reason to let it fail." in refused.content.decode()
    send(operator, instance, "fail", reason="cancelled")
    assert test.run(instance).status == "errored"
    page = text_of(read(operator, instance.get_absolute_url()))
    assert "let “charge” fail" in page
    assert "Decision failed by" in page


def test_skip_supplies_the_output(operator: Client, test: WorkflowTest) -> None:
    instance = bill(test)
    send(operator, instance, "skip", output='"by hand"', reason="at the bank")
    found = test.run(instance)
    assert (found.output, Step.objects.get(instance=instance).options.get("rollback")) == ("by hand", None)
    page = text_of(read(operator, f"{instance.get_absolute_url()}?step=charge-1"))
    assert "supplied the output of “charge”" in page
    assert "Decision skipped by" in page


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ('{"a": ', "Line 1, column"),
        ("", "Not skipped:"),
        ("NaN", "Not skipped:"),
        ('{"a": 1, "a": 2}', "Not skipped:"),
    ],
)
def test_a_wrong_output_is_marked_and_kept(
    operator: Client, test: WorkflowTest, typed: str, said: str
) -> None:
    instance = bill(test)
    answer = send(operator, instance, "skip", output=typed, reason="at the bank")
    assert (answer.status_code, instance.refresh().status) == (422, "paused")
    page = html.unescape(answer.content.decode())
    assert said in page
    assert f">{typed}</textarea>" in page
    assert 'value="at the bank"' in page


def test_a_second_decision_is_refused_and_says_who_was_first(operator: Client, test: WorkflowTest) -> None:
    instance = bill(test)
    instance.fail_step("charge", by="ben", reason="too late")
    answer = send(operator, instance, "retry")
    assert answer.status_code == 409
    text = text_of(answer.content.decode())
    assert "No step of it waits for a decision" in text
    assert "Last action: step failed by ben (“too late”)" in text


def test_a_page_from_before_a_restart_decides_nothing(operator: Client, test: WorkflowTest) -> None:
    instance = bill(test)
    instance.restart()
    assert test.run(instance).status == "errored" or instance.refresh().status == "paused"
    answer = operator.post(at(instance, "skip"), {"generation": 1, "output": "1", "reason": "x"})
    assert answer.status_code == 409
    assert "It was restarted after you opened this page." in text_of(answer.content.decode())


def test_both_of_two_steps_are_named_and_each_is_decided_on_its_page(
    operator: Client, test: WorkflowTest
) -> None:
    @workflow("two")
    async def story(step: WorkflowStep) -> list[str]:
        return await asyncio.gather(step.do("left", charge, **PAUSING), step.do("right", charge, **PAUSING))

    instance = test.run(story.start(id="two-1"))
    text = text_of(read(operator, instance.get_absolute_url()))
    assert "1 other step also waits for a decision." in text
    assert "Also to be decided 2 · right" in text_of(read(operator, at(instance, "decide")))
    operator.post(at(instance, "skip", 2), {"generation": 1, "output": '"r"', "reason": "x"})
    assert instance.refresh().status == "paused"
    operator.post(at(instance, "skip", 1), {"generation": 1, "output": '"l"', "reason": "x"})
    assert test.run(instance).output == ["l", "r"]


def test_items_of_two_maps_of_one_name_are_told_apart(operator: Client, test: WorkflowTest) -> None:
    def work(item: int, index: int) -> int:
        raise ConnectionError

    @workflow("maps")
    async def story(step: WorkflowStep) -> list[list[int]]:
        return list(await asyncio.gather(*(step.map("work", [0], work, **PAUSING) for _ in range(2))))

    instance = test.run(story.start(id="maps-1"))
    first, second = Step.objects.filter(instance=instance, kind="do").order_by("seq")
    operator.post(at(instance, "skip", second.seq), {"generation": 1, "output": "2", "reason": "x"})
    operator.post(at(instance, "skip", first.seq), {"generation": 1, "output": "1", "reason": "x"})
    assert test.run(instance).output == [[1], [2]]


def test_a_step_that_backs_off_offers_its_output_only(operator: Client, test: WorkflowTest) -> None:
    @workflow("slow")
    async def story(step: WorkflowStep) -> str:
        return await step.do("charge", charge, delay="1h")

    instance = test.run(story.start(id="slow-1"))
    page = read(operator, instance.get_absolute_url())
    assert "Supply the output…" in text_of(page)
    found = read(operator, at(instance, "decide"))
    assert "You can supply its output instead." in text_of(found)
    assert at(instance, "fail") not in found
    send(operator, instance, "skip", output='"by hand"', reason="x")
    assert test.run(instance).output == "by hand"


def test_a_step_that_does_not_exist_is_not_found(operator: Client, test: WorkflowTest) -> None:
    instance = bill(test)
    assert operator.get(at(instance, "decide", 99)).status_code == 404
    assert operator.post(at(instance, "retry", 99)).status_code == 404


def test_after_its_last_attempt_no_back_off_is_drawn(operator: Client, test: WorkflowTest) -> None:
    instance = bill(test)
    test.time.travel("1 hour")
    page = read(operator, instance.get_absolute_url())
    drawn = page[page.index('<tr id="s-1"') :]
    drawn = drawn[: drawn.index("</tr>")]
    assert re.findall(r'<line class="(\w+)"', drawn)[-1] == "held"
    assert '<line class="now"' in page
    assert "waits for a decision: paused" in drawn
    assert '<i class="k held"></i>waits for a decision' in page
