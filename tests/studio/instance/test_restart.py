"""Restarting from the Studio: a preview says what it will do, it needs a reason, and it happens once."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client

from engine.models import Audit, Instance
from engine.steer import restart
from studio.instance import deleted_instances
from tests.studio import factories
from tests.studio.display.test_escaping import EVIL, assert_is_text
from tests.studio.forms.as_sent import as_sent
from tests.studio.instance.test_actions import act

pytestmark = pytest.mark.django_db


def failed(status: str = "errored", **given: Any) -> Instance:
    """Make an instance of three steps, whose second wait has taken an event."""
    instance = factories.instance(status, id="order-1", **given)
    factories.attempt(factories.step(instance, "reserve"))
    wait = factories.step(instance, "approved", kind="event")
    factories.event(
        instance, "approved", state="consumed", consumed_by=wait.seq, consumed_generation=instance.generation
    )
    factories.event(instance, "later")
    factories.attempt(factories.step(instance, "charge", "errored"), "errored")
    return instance


def preview_of(client: Client, instance: Instance, step: str = "") -> str:
    answer = client.get(f"{instance.get_absolute_url()}restart/", {"step": step} if step else {})
    assert answer.status_code == 200
    return answer.content.decode()


def parts(page: str) -> tuple[list[str], list[str]]:
    """Return the names under "keeps" and under "runs again"."""
    keeps, again = page.split("<h2>Runs again")
    return tuple(
        re.findall(r'<a class="mono" href="[^"]*#s-\d+">\s*([^<]*?)\s*</a>', one) for one in (keeps, again)
    )  # type: ignore[return-value]


def press(client: Client, instance: Instance, step: str = "", **given: str) -> tuple[int, str]:
    fields = {"step": step, "generation": str(instance.generation), "reason": "the card is good"} | given
    return act(client, instance, "restart", **fields)


def test_from_a_step_it_says_what_is_kept_and_what_happens_again(operator: Client) -> None:
    page = preview_of(operator, failed(), "event:approved:1")
    assert parts(page) == (["reserve"], ["approved", "charge"])
    assert "Side effects happen again:" in page
    assert "1 event that these steps received will be delivered again." in page
    assert "dropped" not in page
    assert "as generation 2" in page
    assert '<option value="event:approved:1" selected>' in page
    button = " ".join(re.sub(r"<svg.*?</svg>", "", page).split())
    assert "> Restart from approved </button>" in button


def test_from_the_start_nothing_is_kept(operator: Client) -> None:
    page = preview_of(operator, failed())
    assert parts(page) == ([], ["reserve", "approved", "charge"])
    assert "1 event that no step received is discarded." in page


def test_of_one_that_is_open_it_says_that_it_ends(operator: Client) -> None:
    page = preview_of(operator, failed("running"))
    assert "Generation 1 (running) is terminated now" in page


def test_each_step_of_the_handler_leads_there(viewer: Client) -> None:
    instance = failed()
    factories.step(instance, "inside", parent=1)
    factories.step(instance, "a:b 1/ü&#", count=2)
    rows = viewer.get(instance.get_absolute_url()).content.decode()
    found = []
    for row in re.findall(r'<a class="open" href="(\?step=[^"#]*)#s-', rows):
        page = viewer.get(instance.get_absolute_url() + row).content.decode()
        found += re.findall(r'href="([^"]*/restart/\?step=(?!retry)[^"]*)"', page)
    assert len(found) == 4  # not of the one inside another
    assert found[0].endswith("?step=do%3Areserve%3A1")
    odd = viewer.get(found[-1])
    assert odd.status_code == 200
    assert "from step <code>a:b 1/ü&amp;# #2</code>" in odd.content.decode()


@pytest.mark.parametrize(
    "status", ["queued", "running", "waiting", "paused", "complete", "errored", "terminated"]
)
def test_it_is_done_and_recorded_once(operator: Client, status: str) -> None:
    instance = failed(status, by="")
    code, _ = press(operator, instance, "event:approved:1")
    assert (code, instance.refresh().status, instance.generation) == (302, "queued", 2)
    assert [step.name for step in instance.steps.filter(generation=2)] == ["reserve"]
    (entry,) = Audit.objects.all()
    assert (entry.verb, entry.actor, entry.reason, entry.before, entry.after) == (
        "restart",
        "oli",
        "the card is good",
        status,
        "queued",
    )
    page = operator.get(instance.get_absolute_url()).content.decode()
    assert "Restarted order-1 from approved as generation 2." in page
    assert "restarted from approved: “the card is good”" in page


@pytest.mark.parametrize("reason", ["", "   "])
def test_it_needs_a_reason(operator: Client, reason: str) -> None:
    instance = failed()
    code, page = press(operator, instance, "do:charge:1", reason=reason)
    assert (code, instance.refresh().generation) == (422, 1)
    assert "Enter a reason to restart it." in page
    assert parts(page) == (["reserve", "approved"], ["charge"])


def test_of_two_who_press_the_second_is_told_who_was_first(operator: Client, signed_in: Any) -> None:
    instance = failed()
    assert press(signed_in("operator", "ana"), instance)[0] == 302
    code, page = press(operator, instance, reason="me too")
    assert (code, instance.refresh().generation) == (409, 2)
    assert "Last action: restarted by ana (“the card is good”)." in page
    assert re.search(r'name="reason" [^>]*value="me too"', page)
    assert Audit.objects.count() == 1


@pytest.mark.parametrize(
    ("rollback", "said"),
    [
        ("complete", "step do &quot;reserve&quot;, which is before it, has been rolled back"),
        ("failed", "the rollback of step do &quot;reserve&quot;, which is before it, failed"),
    ],
)
def test_what_was_rolled_back_cannot_be_kept(operator: Client, rollback: str, said: str) -> None:
    instance = failed(rollback=rollback)
    undoable = {"max_attempts": 5, "rollback": {"max_attempts": 2}}
    instance.steps.filter(seq=1).update(options=undoable, rollback=rollback)
    ended = {"complete": "complete", "failed": "errored"}[rollback]
    factories.attempt(
        instance.steps.get(seq=1), ended, phase="rollback", started_at=factories.ago(seconds=60)
    )
    page = preview_of(operator, instance, "do:charge:1")
    assert said in page
    assert 'disabled title="You cannot restart from this step"' in page
    code, page = press(operator, instance, "do:charge:1")
    assert (code, instance.refresh().generation) == (409, 1)
    assert said in page


@pytest.mark.parametrize(
    "step",
    ["do:nowhere:1", "do:charge:2", "x:charge:1", "do:reserve:99999999999", ":::", ":charge:1", " ", "\0"],
)
def test_a_step_that_is_not_there_is_named_with_those_that_are(operator: Client, step: str) -> None:
    instance = failed()
    answer = operator.get(f"{instance.get_absolute_url()}restart/", {"step": step})
    assert answer.status_code == 404
    assert "reserve" in answer.content.decode().split('role="alert"')[1][:600]
    assert press(operator, instance, step)[0] == 409  # and it is not taken for the start
    assert instance.refresh().generation == 1


def test_a_viewer_reads_the_page_and_may_not_press(viewer: Client) -> None:
    instance = failed()
    assert 'disabled title="Requires the operator role"' in preview_of(viewer, instance, "do:charge:1")
    assert press(viewer, instance)[0] == 403
    assert instance.refresh().generation == 1
    (entry,) = Audit.objects.all()
    assert (entry.verb, entry.outcome, entry.actor) == ("restart", "denied", "vic")


def test_of_very_many_steps_the_first_are_listed(viewer: Client) -> None:
    instance = factories.instance("errored", id="order-1")
    many = [factories.step(instance, "n", count=n) for n in range(1, 3)]
    rows = [
        type(many[0])(**{**_fields(many[0]), "seq": n, "delivery": n, "count": n, "name": "n" * 256})
        for n in range(3, 1_002)
    ]
    type(many[0]).objects.bulk_create(rows)
    factories.attempts_of(rows)
    page = preview_of(viewer, instance)
    assert "and 901 more" in page
    assert page.count("<option ") == 202
    assert len(page) < 250_000
    far = preview_of(viewer, instance, f"do:{'n' * 256}:900")
    assert len(re.findall(r'<option value="[^"]*:900" selected>', far)) == 1


def _fields(step: Any) -> dict[str, Any]:
    return {
        field.attname: getattr(step, field.attname)
        for field in step._meta.concrete_fields
        if field.name != "pk"
    }


@pytest.mark.parametrize("evil", EVIL, ids=[evil[:16] for evil in EVIL])
def test_names_are_text(operator: Client, evil: str) -> None:
    instance = factories.instance("errored")
    factories.step(instance, evil[:256])
    assert_is_text(preview_of(operator, instance, f"do:{evil[:256]}:1"), evil)
    restart.restart(instance, evil[:256], by=evil[:150], reason=evil[:2000])
    assert_is_text(operator.get(instance.get_absolute_url()).content.decode(), evil)
    assert_is_text(operator.get(f"{instance.get_absolute_url()}?generation=1").content.decode(), evil)


class TestDelete:
    def test_it_is_removed_and_who_did_it_stays(self, operator: Client) -> None:
        instance = failed()
        code, _ = act(operator, instance, "delete", reason="a test")
        assert (code, Instance.objects.count()) == (302, 0)
        assert "Deleted order-1." in operator.get("/instances/").content.decode()
        (entry,) = Audit.objects.all()
        assert (entry.verb, entry.actor, entry.reason) == ("delete", "oli", "a test")

    def test_its_address_tells_who_did_it_and_what_else_was_done(
        self, operator: Client, viewer: Client
    ) -> None:
        instance = failed()
        factories.deed(instance, "pause", "li", "provider down")
        act(operator, instance, "delete", reason="a <b>test</b>")
        gone = viewer.get(instance.get_absolute_url())
        page = gone.content.decode()
        assert gone.status_code == 410
        assert re.search(r"Deleted by <strong>oli</strong>", page)
        assert "“a &lt;b&gt;test&lt;/b&gt;”" in page
        assert "provider down" in page
        assert viewer.get("/workflows/orders/instances/never/").status_code == 404
        assert act(operator, instance, "delete", reason="again")[0] == 404

    def test_however_long_ago_it_was_it_is_found(
        self, operator: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        instance = failed()
        act(operator, instance, "delete", reason="a test")
        monkeypatch.setattr(deleted_instances, "WINDOW", 0)
        assert operator.get(instance.get_absolute_url()).status_code == 410

    def test_one_that_had_its_id_later_is_told_of(self, operator: Client) -> None:
        act(operator, failed(), "delete", reason="a test")
        later = failed()
        factories.deed(later, "start", "zoe")
        Instance.objects.filter(key=later.key).delete()
        assert "retention" in operator.get(later.get_absolute_url()).content.decode()

    def test_one_that_went_with_its_retention_says_so(self, viewer: Client) -> None:
        instance = failed()
        factories.deed(instance, "start", "zoe")
        Instance.objects.filter(key=instance.key).delete()
        gone = viewer.get(instance.get_absolute_url())
        assert gone.status_code == 410
        assert "retention" in gone.content.decode()

    @pytest.mark.parametrize("reason", ["", " "])
    def test_it_needs_a_reason(self, operator: Client, reason: str) -> None:
        code, page = act(operator, failed(), "delete", reason=reason)
        assert (code, Instance.objects.count()) == (422, 1)
        assert 'aria-labelledby="delete-title" data-open' in page

    def test_only_a_finished_one(self, operator: Client) -> None:
        instance = failed("waiting")
        code, page = act(operator, instance, "delete", reason="x")
        assert (code, Instance.objects.count()) == (409, 1)
        assert "Only a finished instance can be deleted" in page

    def test_none_that_its_parent_waits_for(self, operator: Client) -> None:
        parent = factories.instance("waiting", waiting_for="child", id="parent")
        child = factories.child(parent, "running", name="ship")
        like = factories.instance("complete")
        ended = {
            name: getattr(like, name) for name in ("status", "owner", "wake_at", "finished_at", "output")
        }
        Instance.objects.filter(key=like.key).delete()
        Instance.objects.filter(key=child.key).update(**ended)  # the parent has not heard of it yet
        code, page = act(operator, child, "delete", reason="x")
        assert (code, Instance.objects.count()) == (409, 2)
        assert "parent" in page.split('role="alert"')[1][:400]

    def test_a_viewer_may_not(self, viewer: Client) -> None:
        assert act(viewer, failed(), "delete", reason="x")[0] == 403
        assert (Instance.objects.count(), Audit.objects.get().outcome) == (1, "denied")

    def test_an_open_page_learns_of_it(self, operator: Client) -> None:
        instance = failed()
        act(operator, instance, "delete", reason="a test")
        frame = operator.get(f"/_f/live/?topic=instance:{instance.key}").content.decode()
        assert "Deleted by <strong>oli</strong>" in frame
        assert 'hx-target="#actions"' in frame


def test_a_viewer_who_starts_something_leaves_a_row(viewer: Client) -> None:
    assert viewer.post("/workflows/process-order/start/", {"params": "{}"}).status_code == 403
    (entry,) = Audit.objects.all()
    assert (entry.verb, entry.workflow, entry.outcome) == ("start", "process-order", "denied")


def unlucky(**given: Any) -> Instance:
    """Make an instance that its last step has ended."""
    error = {"type": "OSError", "message": "no paper", "details": {}, "traceback": "", "step": "charge"}
    instance = factories.instance("errored", id="order-1", error=error)
    factories.attempt(factories.step(instance, "reserve", delivery=1))
    factories.attempt(factories.step(instance, "charge", "errored", delivery=2, **given), "errored")
    return instance


def test_the_failed_step_can_be_retried_with_its_key(operator: Client) -> None:
    instance = unlucky()
    address = f'href="{instance.get_absolute_url()}restart/?step=retry"'
    assert address in operator.get(instance.get_absolute_url()).content.decode()
    page = preview_of(operator, instance, "retry")
    assert parts(page) == (["reserve"], ["charge"])
    assert "With the same idempotency keys:" in page
    assert 'name="keys"' not in page
    status, _ = press(operator, instance, "retry")
    assert (status, instance.refresh().status, instance.keys_from) == (302, "queued", 1)
    page = operator.get(f"{instance.get_absolute_url()}").content.decode()
    assert "retried charge" in page


def test_a_retry_of_a_map_says_how_many_finished_items_it_keeps(operator: Client) -> None:
    error = {"type": "OSError", "message": "no paper", "details": {}, "traceback": "", "step": "ship"}
    instance = factories.instance("errored", id="order-1", error=error)
    outer = factories.step(instance, "ship", "errored", kind="map", delivery=1, error=error)
    for count, status in enumerate(("complete", "complete", "errored"), start=1):
        factories.attempt(factories.step(instance, "ship", status, parent=outer.seq, count=count), status)
    page = preview_of(operator, instance, "retry")
    assert parts(page) == ([], ["ship"])
    assert "2 finished steps inside are kept, and do not run again." in " ".join(page.split())


def test_the_retry_is_not_offered_where_no_step_has_failed(operator: Client, viewer: Client) -> None:
    instance = failed("complete")
    assert "?step=retry" not in operator.get(instance.get_absolute_url()).content.decode()
    answer = operator.get(f"{instance.get_absolute_url()}restart/", {"step": "retry"})
    assert answer.status_code == 404
    assert "but not because of a step" in answer.content.decode() or "not errored" in answer.content.decode()
    assert press(operator, instance, "retry")[0] == 409
    assert instance.refresh().generation == 1


def test_a_restart_keeps_the_keys_if_that_is_chosen(operator: Client) -> None:
    instance = unlucky()
    assert '<input type="radio" name="keys" value="new" checked>' in preview_of(operator, instance)
    press(operator, instance, keys="same")
    assert instance.refresh().keys_from == 1
    press(operator, instance)
    assert (instance.refresh().generation, instance.keys_from) == (3, None)


def test_the_keys_of_what_was_rolled_back_cannot_be_chosen(operator: Client) -> None:
    instance = unlucky(options={"rollback": {"max_attempts": 1}})
    step = instance.steps.get(name="charge")
    factories.attempt(step, phase="rollback")
    instance.steps.filter(name="charge").update(rollback="complete")
    Instance.objects.filter(key=instance.key).update(rollback="complete")
    page = " ".join(preview_of(operator, instance).split())
    assert '<input type="radio" name="keys" value="same" disabled>' in page
    assert "cannot run again with the same idempotency key: it has been rolled back." in page
    assert press(operator, instance, keys="same")[0] == 409
    assert "?step=retry" not in operator.get(instance.get_absolute_url()).content.decode()
    assert instance.refresh().generation == 1


def test_other_params_are_checked_and_taken(operator: Client) -> None:
    instance = failed(
        workflow="process-order", params={"customer": "Ada", "items": [{"sku": "a", "quantity": 1}]}
    )
    page = preview_of(operator, instance)
    assert "Change the parameters" in page
    status, page = press(operator, instance, params='{"customer": "Ada", "items": []')
    assert (status, instance.refresh().generation) == (422, 1)
    assert "Not restarted:" in page
    assert '<details class="fold" id="new-params" open>' in page
    status, page = press(
        operator, instance, params='{"customer": "Ada", "items": [{"sku": "a", "quantity": 0}]}'
    )
    assert (status, instance.refresh().generation) == (422, 1)
    press(operator, instance, params='{"customer": "Bo", "items": [{"sku": "b", "quantity": 2}]}')
    assert (instance.refresh().generation, instance.params["customer"]) == (2, "Bo")
    past = operator.get(f"{instance.get_absolute_url()}?generation=1&step=start").content.decode()
    assert "Ada" in past
    assert "params-g1" in past
    payload = operator.get(f"{instance.get_absolute_url()}payload/params-g1/")
    assert b"Ada" in b"".join(payload)


def test_params_that_will_change_are_never_folded_away(operator: Client) -> None:
    """Nobody undoes somebody else's change with a form that was opened before it"""
    old = {"customer": "Ada", "items": [{"sku": "a", "quantity": 1}]}
    instance = failed(workflow="process-order", params=old)
    assert '<details class="fold" id="new-params">' in preview_of(operator, instance)
    instance.restart(params={"customer": "Bo", "items": [{"sku": "b", "quantity": 2}]})
    for given, status in (({"generation": "1"}, 409), ({"generation": "2", "reason": ""}, 422)):
        answer, page = press(operator, instance, params=json.dumps(old), **given)
        assert (answer, instance.refresh().generation) == (status, 2)
        assert '<details class="fold" id="new-params" open>' in page


def test_the_same_params_change_nothing_and_a_restart_from_a_step_takes_none(operator: Client) -> None:
    params = {"customer": "Ada", "items": [{"sku": "a", "quantity": 1}]}
    instance = failed(workflow="process-order", params=params)
    assert "Change the parameters" not in preview_of(operator, instance, "do:reserve:1")
    sent = as_sent(preview_of(operator, instance), "restart-form")
    press(operator, instance, **{**sent, "reason": "again"})
    assert (instance.refresh().generation, Audit.objects.get(verb="restart").data.get("has_new_params")) == (
        2,
        None,
    )


def test_a_field_of_the_form_changes_the_params_and_a_button_in_it_restarts_nothing(operator: Client) -> None:
    instance = failed(
        workflow="process-order", params={"customer": "Ada", "items": [{"sku": "a", "quantity": 1}]}
    )
    sent = {**as_sent(preview_of(operator, instance), "restart-form"), "reason": "typo"}
    status, page = press(operator, instance, **sent, op="add:/items")
    sent = as_sent(page, "restart-form")
    assert (status, instance.refresh().generation, sent["reason"]) == (200, 1, "typo")
    status, page = press(operator, instance, **sent)
    assert status == 422
    assert 'id="f/items/1/sku-problem"' in page
    status, _ = press(operator, instance, **{**sent, "f./items/1/sku": "b", "f./customer": "Bo"})
    assert (status, instance.refresh().generation) == (302, 2)
    assert (instance.params["customer"], [item["sku"] for item in instance.params["items"]]) == (
        "Bo",
        ["a", "b"],
    )
