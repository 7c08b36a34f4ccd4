"""Rollbacks in the Studio: their results are shown, users can request them, and retry those that failed."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from engine.models import Audit, Instance, Step
from tests.studio import factories
from tests.studio.instance.reading import choices
from tests.studio.instance.test_actions import act

pytestmark = pytest.mark.django_db

UNDOABLE: dict[str, Any] = {"max_attempts": 5, "rollback": {"max_attempts": 2}}
BROKEN = {"type": "RefundError", "message": "the bank is closed", "details": {}, "traceback": ""}


def rolled_back(status: str = "errored", rollback: str = "failed", **given: Any) -> Instance:
    """Make an instance whose third step was undone, and whose second could not be."""
    instance = factories.instance(status, id="order-1", rollback=rollback, **given)
    states = ("", "failed" if rollback == "failed" else "running", "complete")
    for name, state in zip(("reserve", "charge", "ship"), states, strict=True):
        step = factories.step(instance, name, options=UNDOABLE, rollback=state, attempts=1)
        factories.attempt(step)
        if state:
            ended = "complete" if state == "complete" else "errored"
            error = None if ended == "complete" else BROKEN
            factories.attempt(step, ended, phase="rollback", number=1, error=error)
            Step.objects.filter(pk=step.pk).update(attempts=1)
    return instance


def page_of(client: Client, instance: Instance) -> str:
    return client.get(instance.get_absolute_url()).content.decode()


def test_a_step_shows_its_rollback_and_the_attempts_at_it(viewer: Client) -> None:
    instance = rolled_back()
    page = page_of(viewer, instance)
    assert (page.count(">undone</span>"), page.count(">not undone</span>")) == (1, 1)
    page = viewer.get(f"{instance.get_absolute_url()}?step=2").content.decode()
    assert page.count("Rollback attempts") == 1
    assert (page.count('id="s-2-r1"'), page.count('id="s-2-a1"'), page.count('id="s-1-r1"')) == (1, 1, 0)
    assert "the bank is closed" in page


def test_the_head_and_the_why_line_say_how_far_it_is(viewer: Client) -> None:
    page = page_of(viewer, rolled_back())
    assert ">rollback failed</span>" in page
    assert "The rollback failed at step 2 " in page
    assert "RefundError: the bank is closed. 1 of 3 steps undone." in page


def test_while_it_runs_the_page_says_what_comes_next(viewer: Client) -> None:
    page = page_of(viewer, rolled_back("running", "running", ends_as="errored"))
    assert ">rolling back</span>" in page
    assert "then it is errored." in page
    assert ">undoing</span>" in page


def test_a_failed_rollback_is_retried_by_a_button_that_says_what_it_does(operator: Client) -> None:
    instance = rolled_back()
    page = page_of(operator, instance)
    assert 'form="retry-rollback-form"' in page
    assert "With all its attempts, then earlier steps." in choices(page)[0]
    status, _ = act(operator, instance, "retry-rollback", reason="it is open again")
    assert (status, instance.refresh().status, instance.rollback) == (302, "queued", "running")
    entry = Audit.objects.get()
    assert (entry.verb, entry.actor, entry.reason) == ("retry_rollback", "oli", "it is open again")
    assert "retried the rollback" in page_of(operator, instance)


@pytest.mark.parametrize(("status", "rollback"), [("errored", "complete"), ("terminated", "complete")])
def test_nothing_else_can_be_retried(operator: Client, status: str, rollback: str) -> None:
    instance = factories.instance(status, rollback=rollback)
    assert "Goes on with the rollback" not in page_of(operator, instance)
    code, page = act(operator, instance, "retry-rollback")
    assert (code, instance.refresh().status) == (409, status)
    assert "Only a rollback that failed can be retried." in page


def test_a_viewer_may_not_retry(viewer: Client) -> None:
    instance = rolled_back()
    assert "disabled" in page_of(viewer, instance).split('form="retry-rollback-form"')[1].split(">")[0]
    assert act(viewer, instance, "retry-rollback")[0] == 403
    assert Audit.objects.get().outcome == "denied"


def test_the_dialog_offers_to_run_the_rollbacks_first(operator: Client) -> None:
    instance = factories.instance("paused", by="")
    factories.attempt(factories.step(instance, "charge", options=UNDOABLE))
    assert "Run the rollbacks first" in page_of(operator, instance)
    status, _ = act(operator, instance, "terminate", reason="wrong order", rollback="1")
    assert (status, instance.refresh().status, instance.rollback) == (302, "queued", "running")
    assert "is being rolled back, then ends" in page_of(operator, instance)
    assert Audit.objects.get().data == {"rollback": True}


def test_unticked_it_undoes_nothing(operator: Client) -> None:
    instance = factories.instance("paused")
    factories.attempt(factories.step(instance, "charge", options=UNDOABLE))
    act(operator, instance, "terminate", reason="wrong order")
    assert (instance.refresh().status, instance.rollback) == ("terminated", "")


def test_a_row_of_the_list_tells_of_it(viewer: Client) -> None:
    rolled_back("running", "running", ends_as="errored")
    assert "olling back" in viewer.get("/instances/").content.decode()
