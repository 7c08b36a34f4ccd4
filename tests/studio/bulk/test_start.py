"""The dialog that starts a bulk job: what it says, and what it starts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from engine import bulk, pauses
from engine.models import Audit, BulkJob, Instance
from studio.bulk import found, start
from studio.forms.tokens import new_token
from studio.frame.patience import TooSlowError
from tests.stories import wait_for
from tests.studio.bulk.conftest import Fail, Run, read, text

People = Callable[..., Client]
NEW = "/bulk/new/"
SEARCH = "workflow:orders status:errored"


def at(action: str = "retry", q: str = SEARCH, **more: str) -> str:
    return f"{NEW}?{urlencode({'action': action, 'q': q, **more})}"


def hidden(page: str) -> dict[str, str]:
    """Return the hidden fields of the dialog's form."""
    form = page.split('id="bulk-form"')[1].split("</form>")[0]
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))


def send(client: Client, page: str, **typed: str) -> Any:
    return client.post(NEW, {"reason": "The bank is back.", **hidden(page), **typed})


def dialog(client: Client, *args: str, **more: str) -> str:
    answer = client.get(at(*args, **more))
    assert answer.status_code == 200
    return answer.content.decode()


def ticked(client: Client, *instances: Instance, action: str = "retry", **headers: str) -> Any:
    given = {"action": action, "key": [str(one.key) for one in instances]}
    return client.post(NEW, given, headers=headers)


class TestWhatItSays:
    def test_what_it_does_and_who_is_retried_left_out_and_skipped(self, people: People, fail: Fail) -> None:
        good = fail(2)
        good += fail(1, "plans")
        fail(1, undo=True)
        (other,) = fail(1)
        other.restart()
        page = dialog(people(), "retry", "workflow:orders,plans")
        said = text(page)
        assert "Retry 5 instances" in said
        assert "with all its attempts and the same idempotency key" in said
        assert "Does not roll anything back. Does not change parameters." in said
        assert f"3 will be retried 2 of orders, 1 of plans {good[0].id} , {good[1].id} , {good[2].id}" in said
        assert "1 was rolled back, so it is left out What their steps did was undone, " in said
        assert f"1 is skipped Nothing in it has failed. {other.id}" in said
        assert "The set is fixed when you press the button." in said
        assert said.endswith("Cancel Retry 3")
        assert f'href="{good[0].get_absolute_url()}"' in page
        assert "to go on" not in said

    @pytest.mark.parametrize(
        ("action", "words"),
        [
            ("pause", "Then the instance does nothing until somebody resumes it."),
            ("resume", "Does not decide on a step whose attempts are used up"),
            ("terminate", "Run the rollbacks first"),
            ("restart", "A service that knows a key does nothing twice."),
        ],
    )
    def test_every_action_has_its_own_words(
        self, people: People, fail: Fail, action: str, words: str
    ) -> None:
        (one,) = fail()
        one.restart()
        if action == "resume":
            one.refresh().pause()
        assert words in text(dialog(people(), action, "workflow:orders"))

    def test_nothing_can_be_started_that_applies_to_none(self, people: People, fail: Fail) -> None:
        fail()
        page = dialog(people(), "pause", "workflow:orders")
        assert "0 will be paused It applies to none of them." in text(page)
        assert "1 is skipped It has ended." in text(page)
        assert "Pause 0" not in text(page)

    def test_paused_workflows_are_named(self, people: People, fail: Fail) -> None:
        fail()
        pauses.pause("orders")
        said = text(dialog(people()))
        assert "Resume orders as well 0 instances wait there. Without this, these wait, too." in said
        assert "Pace" not in text(dialog(people(name="bo"), "terminate"))

    def test_another_job_on_the_same_instances_is_named(self, people: People, fail: Fail, run: Run) -> None:
        job = bulk.start("retry", instances=fail(2))
        page = dialog(people())
        assert f'href="/bulk/{job.id}/"' in page
        assert "Another job, retry , still has 2 of these instances to do." in text(page)
        run(job.id)
        assert "Another job" not in text(dialog(people(name="bo")))

    @pytest.mark.parametrize(
        ("where", "words"),
        [
            (NEW, "Nothing is chosen."),
            (f"{NEW}?action=retry", "Nothing is chosen."),
            (at("explode"), "There is no action 'explode'."),
            (at("<b>" * 99), "There is no action"),
            (at("retry", "status:nonsense"), "nonsense"),
            (at("retry", "nonsense:x\0"), "nonsense"),
            (at("retry", "workflow:no-such"), "no-such"),
            (at("retry", "\u202e<script>"), ""),
            (at("retry", "x" * 9_000), ""),
        ],
    )
    def test_what_cannot_be_done_is_explained(self, people: People, where: str, words: str) -> None:
        answer = people().get(where)
        assert answer.status_code in (200, 422)
        page = answer.content.decode()
        assert words in text(page)
        assert "<script>" not in page.split("<main")[1]
        assert not BulkJob.objects.exists()

    def test_a_slow_search_is_explained(
        self, people: People, fail: Fail, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def slow(*_: object, **__: object) -> None:
            raise TooSlowError

        monkeypatch.setattr(found.bulk, "preview", slow)
        assert start.TOO_SLOW in read(people(), at(), 422)

    @pytest.mark.parametrize("elsewhere", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
    def test_it_never_leads_to_another_site(self, people: People, fail: Fail, elsewhere: str) -> None:
        fail()
        assert "evil" not in dialog(people(), next=elsewhere)
        assert 'href="/errors/"' in dialog(people(name="bo"), next="/errors/")


class TestStarting:
    def test_it_starts_the_job_with_the_reason_and_leads_to_its_page(
        self, people: People, fail: Fail, run: Run
    ) -> None:
        fail(2)
        client = people(name="oli")
        answer = send(client, dialog(client))
        job = bulk.jobs()[0]
        assert (answer.status_code, answer.headers["Location"]) == (302, f"/bulk/{job.id}/")
        assert (job.action, job.query, job.actor, job.reason) == ("retry", SEARCH, "oli", "The bank is back.")
        assert run(job.id).done == 2
        assert Audit.objects.filter(verb="bulk-start", actor="oli", outcome="done").count() == 1

    @pytest.mark.parametrize(
        ("pace", "at_once", "ask_after"),
        [("all", None, None), ("ten", 10, None), ("ask", None, 1), ("x", None, None)],
    )
    def test_it_goes_at_the_pace_that_was_chosen(
        self, people: People, fail: Fail, pace: str, at_once: int | None, ask_after: int | None
    ) -> None:
        fail(2)
        client = people()
        send(client, dialog(client), pace=pace)
        job = bulk.jobs()[0]
        assert (job.pace.at_once, job.pace.ask_after, job.pace.stop_after) == (at_once, ask_after, 5)

    def test_one_first_pauses_and_says_so(self, people: People, fail: Fail) -> None:
        fail(2)
        client = people()
        send(client, dialog(client), pace="ask")
        started = bulk.jobs()[0]
        wait_for(Instance.objects.get(workflow="reprise.bulk", id=started.id), "paused")
        job = bulk.get(started.id)
        assert (job.status, job.left) == ("paused", 1)
        page = text(client.get(f"/bulk/{job.id}/").content.decode())
        assert f"Paused: {job.pause_reason}" in page
        assert "retry, pauses after the first 1, pauses after 5 new failures" in page

    def test_it_resumes_paused_workflows_if_asked(self, people: People, fail: Fail) -> None:
        fail()
        pauses.pause("orders", by="zoe", reason="The bank is down.")
        client = people(name="oli")
        send(client, dialog(client), reason="")
        assert [one.workflow for one in pauses.paused()] == ["orders"]
        send(client, dialog(client), resume="1")
        assert not pauses.paused()

    def test_sending_it_twice_starts_one(self, people: People, fail: Fail) -> None:
        fail()
        client = people()
        page = dialog(client)
        first, second = send(client, page), send(client, page)
        assert first.headers["Location"] == second.headers["Location"]
        assert BulkJob.objects.count() == 1

    def test_it_needs_a_reason(self, people: People, fail: Fail) -> None:
        fail()
        client = people()
        answer = send(client, dialog(client), reason=" \0 ")
        assert answer.status_code == 422
        assert "Not started. Enter a reason." in text(answer.content.decode())
        assert not BulkJob.objects.exists()

    def test_many_need_the_number(self, people: People, fail: Fail, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(found, "CONFIRMED_ABOVE", 2)
        monkeypatch.setattr(start, "CONFIRMED_ABOVE", 2)
        fail(3)
        client = people()
        page = dialog(client)
        assert "Type 3 to go on" in text(page)
        for wrong in ("", "2", "30", "three", "x" * 9_000):
            answer = send(client, page, number=wrong)
            assert answer.status_code == 422
            assert "Not started. Type 3 to go on." in text(answer.content.decode())
            assert 'value="The bank is back."' in answer.content.decode()
        assert not BulkJob.objects.exists()
        assert send(client, page, number=" 3 ").status_code == 302

    def test_more_than_it_had_said_are_not_touched(self, people: People, fail: Fail) -> None:
        fail(1)
        client = people()
        page = dialog(client)
        fail(1)
        answer = send(client, page)
        assert answer.status_code == 409
        said = text(answer.content.decode())
        assert "Not started: 2 instances match now, not 1. Look again, then start it." in said
        assert not BulkJob.objects.exists()
        assert not Instance.objects.filter(workflow="reprise.bulk").exists()
        assert send(client, answer.content.decode()).status_code == 302
        assert bulk.jobs()[0].left == 2

    def test_fewer_are_done_without_asking_again_but_not_none(self, people: People, fail: Fail) -> None:
        one, other = fail(2)
        client = people()
        page = dialog(client)
        one.delete()
        assert send(client, page).status_code == 302
        assert bulk.jobs()[0].left == 1
        page = dialog(client, "restart")
        other.delete()
        answer = send(client, page)
        assert answer.status_code == 409
        said = text(answer.content.decode())
        assert "Not started: it applies to none of the instances any more." in said

    @pytest.mark.parametrize("said", ["", "-1", "x", "9" * 40, "1.5", "٣"])
    def test_a_number_that_was_not_said_starts_nothing(self, people: People, fail: Fail, said: str) -> None:
        fail()
        client = people()
        assert send(client, dialog(client), said=said).status_code == 409
        assert not BulkJob.objects.exists()

    @pytest.mark.parametrize("token", ["", "x", "1", "\0", "00000000-0000-4000-8000-000000000000"])
    def test_an_invalid_token_starts_a_job_with_a_new_id(
        self, people: People, fail: Fail, token: str
    ) -> None:
        fail()
        client = people()
        assert send(client, dialog(client), token=token).status_code == 302
        assert bulk.jobs()[0].id != token

    def test_options_of_an_action_reach_the_job(self, people: People, fail: Fail) -> None:
        fail()
        client = people()
        send(client, dialog(client, "restart"), idempotency="same")
        assert bulk.jobs()[0].arguments == {"keys": "same"}
        fail()[0].restart()
        send(client, dialog(client, "terminate", "workflow:orders"), rollback="1", idempotency="same")
        assert bulk.jobs()[0].arguments == {"rollback": True}

    def test_an_unknown_action_starts_nothing(self, people: People, fail: Fail) -> None:
        fail()
        client = people()
        answer = send(client, dialog(client), action="explode")
        assert answer.status_code == 422
        assert not BulkJob.objects.exists()


class TestTicked:
    def test_only_what_was_ticked_is_done(self, people: People, fail: Fail, run: Run) -> None:
        one, _, other = fail(3)
        client = people()
        page = ticked(client, one, other).content.decode()
        assert "Retry 2 instances" in text(page)
        assert "The set is what you ticked." in text(page)
        send(client, page)
        job = bulk.jobs()[0]
        assert (job.query, job.total) == ("", 2)
        assert [item.id for item in bulk.items(job.id)] == [one.id, other.id]

    def test_what_was_deleted_meanwhile_is_said(self, people: People, fail: Fail) -> None:
        one, other = fail(2)
        other.delete()
        said = text(ticked(people(), one, other).content.decode())
        assert "1 of the 2 that you ticked is not there any more." in said
        assert "Retry 1 instance " in said

    @pytest.mark.parametrize("keys", ["x", "-1", "1.5", "\0", "9" * 40, "1" * 18, ",,,", "<b>"])
    def test_keys_of_nothing_choose_nothing(self, people: People, fail: Fail, keys: str) -> None:
        fail()
        answer = people().post(NEW, {"action": "retry", "keys": keys})
        assert answer.status_code in (200, 422)
        said = text(answer.content.decode())
        assert "Nothing is chosen." in said or "0 will be retried" in said

    def test_too_many_are_refused(self, people: People, fail: Fail) -> None:
        fail()
        answer = people().post(NEW, {"action": "retry", "keys": ",".join(map(str, range(1, 1_100)))})
        assert answer.status_code == 422
        assert "Select all that match instead, or narrow the search." in text(answer.content.decode())

    def test_instances_of_reprise_itself_are_left_alone(self, people: People, fail: Fail) -> None:
        bulk.start("retry", instances=fail())
        own = Instance.objects.get(workflow="reprise.bulk")
        assert "0 will be terminated" in text(ticked(people(), own, action="terminate").content.decode())

    def test_those_that_were_rolled_back_can_be_restarted_instead(self, people: People, fail: Fail) -> None:
        (undone,) = fail(1, undo=True)
        fail(1)
        page = dialog(people())
        assert "Restart this one…" in text(page)
        form = page.split('id="restart-form"')[1].split("</form>")[0]
        assert re.findall(r'name="(action|keys)" value="([^"]*)"', form) == [
            ("action", "restart"),
            ("keys", str(undone.key)),
        ]


class TestSheet:
    def test_a_script_gets_the_dialog_alone_and_is_told_where_the_job_is(
        self, people: People, fail: Fail
    ) -> None:
        (one,) = fail()
        client = people()
        sheet = client.get(at(), headers={"HX-Request": "true"}).content.decode()
        assert "<main" not in sheet
        assert 'id="sheet-title"' in sheet
        assert hidden(sheet)["said"] == "1"
        assert "<main" not in ticked(client, one, **{"HX-Request": "true"}).content.decode()
        answer = client.post(NEW, {"reason": "back", **hidden(sheet)}, headers={"HX-Request": "true"})
        assert answer.headers["HX-Redirect"] == f"/bulk/{bulk.jobs()[0].id}/"

    def test_what_is_wrong_comes_back_in_it(self, people: People, fail: Fail) -> None:
        fail()
        client = people()
        sheet = client.get(at(), headers={"HX-Request": "true"}).content.decode()
        answer = client.post(NEW, hidden(sheet), headers={"HX-Request": "true"})
        assert answer.status_code == 422
        assert "Not started. Enter a reason." in answer.content.decode()
        assert "<main" not in answer.content.decode()


@pytest.mark.parametrize("role", ["viewer", "approver", "nobody"])
def test_only_operators_get_it(people: People, fail: Fail, role: str) -> None:
    (one,) = fail()
    client = people(role)
    token = {"token": new_token(), "said": "1", "reason": "x", "action": "retry", "keys": str(one.key)}
    assert client.get(at()).status_code == 403
    assert client.post(NEW, token).status_code == 403
    assert not BulkJob.objects.exists()
    assert [entry.verb for entry in Audit.objects.filter(outcome="denied")] == ["bulk-start"]
    assert people("operator").get("/audit/").status_code == 200
