"""Retry now and Wake now on the page of an instance."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from engine import RollbackContext, WorkflowStep, workflow
from engine.models import Audit, Instance
from engine.testing import workflow_test
from tests.studio import factories
from tests.studio.instance.reading import choices
from tests.studio.instance.test_actions import act

pytestmark = pytest.mark.django_db

FORMS = {"retry": "retry-now", "sleep": "wake-now"}
VERBS = {"retry": "retry_now", "sleep": "wake_now"}


def parked(waiting_for: str, **given: Any) -> Instance:
    """Make an instance that backs off, or sleeps, for another hour."""
    wake_at = timezone.now() + timedelta(hours=1)
    return factories.instance("waiting", id="order-1", waiting_for=waiting_for, wake_at=wake_at, **given)


def page_of(client: Client, instance: Instance) -> str:
    return client.get(instance.get_absolute_url()).content.decode()


@pytest.mark.parametrize("waiting_for", FORMS)
def test_it_is_the_primary_action_and_offered_only_where_it_does_something(
    operator: Client, waiting_for: str
) -> None:
    instance = parked(waiting_for)
    [primary] = [one for one in choices(page_of(operator, instance)) if "primary" in one]
    assert f'data-dialog="#{FORMS[waiting_for]}"' in primary
    other = factories.instance("waiting", id="other")
    assert not any("-now" in one for one in choices(page_of(operator, other)))


def test_the_dialog_names_the_idempotency_key(operator: Client) -> None:
    page = page_of(operator, parked("retry"))
    dialog = page.split('<dialog id="retry-now"')[1].split("</dialog>")[0]
    assert "It has the same idempotency key as the attempts before it" in dialog
    assert page.count('id="plain-retry-now-form"') == 1  # without JavaScript
    assert 'id="plain-wake-now-form"' not in page


@pytest.mark.parametrize("waiting_for", FORMS)
def test_it_is_done_and_recorded_once(operator: Client, waiting_for: str) -> None:
    instance = parked(waiting_for)
    status, _ = act(operator, instance, FORMS[waiting_for], reason="it is open again")
    assert (status, instance.refresh().status) == (302, "waiting")
    assert instance.wake_at is not None
    assert instance.wake_at <= timezone.now()
    entry = Audit.objects.get()
    assert (entry.verb, entry.actor, entry.reason) == (VERBS[waiting_for], "oli", "it is open again")
    page = page_of(operator, instance)
    assert {"retry": "retried “charge_card” early", "sleep": "woke “wait” early"}[waiting_for] in page
    assert not any("-now" in one for one in choices(page))

    code, page = act(operator, instance, FORMS[waiting_for])
    assert code == 409
    said = {"retry": "retried early by oli", "sleep": "woken early by oli"}[waiting_for]
    assert f"Last action: {said} (“it is open again”)." in page
    assert Audit.objects.count() == 1


@pytest.mark.parametrize("waiting_for", FORMS)
def test_a_viewer_sees_why_not(viewer: Client, waiting_for: str) -> None:
    instance = parked(waiting_for)
    [button] = [one for one in choices(page_of(viewer, instance)) if FORMS[waiting_for] in one]
    assert 'disabled title="Requires the operator role"' in button
    assert act(viewer, instance, FORMS[waiting_for])[0] == 403
    assert Audit.objects.get().outcome == "denied"


def test_of_a_paused_instance_it_is_refused_with_the_advice_to_resume_it(operator: Client) -> None:
    instance = factories.instance("paused")
    code, page = act(operator, instance, "retry-now")
    assert (code, "Resume it first, then retry." in page) == (409, True)


def test_while_a_rollback_backs_off_it_can_be_retried(operator: Client, own_registry: None) -> None:
    def undo(ctx: RollbackContext) -> None:
        raise ConnectionError("not now")

    options: Any = {"max_attempts": 3, "delay": "1h", "max_delay": "1h"}

    @workflow
    async def sale(step: WorkflowStep) -> None:
        await step.do("charge", str, rollback=undo, rollback_options=options)
        await step.fail("sold out")

    with workflow_test(sale, skips_time=False) as test:
        instance = test.run(test.start())
        assert (instance.status, instance.rollback) == ("waiting", "running")
        assert any("#retry-now" in one for one in choices(page_of(operator, instance)))
        assert act(operator, instance, "retry-now")[0] == 302
    assert Audit.objects.get().data == {"steps": ["charge"], "total": 1}
