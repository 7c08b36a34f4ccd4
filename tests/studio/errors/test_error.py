"""The page of an error: what it shows, and what people decide there."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from urllib.parse import quote

import pytest
from django.test import Client
from django.utils import timezone

from engine import pauses, workflows
from engine.models import Audit
from engine.status import failures
from studio.errors import page as error_page
from studio.forms.tokens import new_token
from tests.studio.errors.conftest import Fail
from tests.studio.errors.test_errors import fingerprint

People = Callable[[str], Client]


def text_of(page: str, id: str) -> str:
    """Return the text of an element and of all that follows it on the page."""
    found = page[page.index(f'id="{id}"') :]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", found.partition(">")[2])).split())


def shown(client: Client, query: str = "", workflow: str = "orders") -> str:
    answer = client.get(f"/errors/{fingerprint(workflow)}/{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def test_it_says_what_failed_where_and_whether_it_still_does(people: People, fail: Fail) -> None:
    fail()
    page = shown(people("viewer"))
    assert text_of(page, "error-head").startswith("Errors charge_card: no answer within 5 s open")
    assert text_of(page, "error-state").startswith("TimeoutError : no answer within ‹n› s Step charge_card")
    assert "tests/studio/errors/conftest.py, charge" in page
    assert text_of(page, "error-going").startswith("Still failing: last")
    assert text_of(page, "error-figures").startswith("Errored now 1 instance Backing off 0")
    assert "Fewer than two instances fail like this now" in page


def test_it_says_that_the_step_works_again(people: People, fail: Fail) -> None:
    fail()
    fail(message="well")
    page = shown(people("viewer"))
    assert text_of(page, "error-going").startswith(
        "charge_card works again: 1 attempt has succeeded since the last failure"
    )


def test_the_scope_changes_every_figure_and_is_in_the_address(people: People, fail: Fail) -> None:
    for name in ("orders", "orders", "refunds"):
        fail(name)
    viewer = people("viewer")
    page = shown(viewer)
    assert "The same error in 2 workflows" in page
    assert text_of(page, "error-scope").startswith(
        "The same error in 2 workflows Both workflows 3 orders 2 refunds 1"
    )
    assert text_of(page, "error-figures").startswith("Errored now 3 instances")
    assert page.count('<td class="id">') == 3
    page = shown(viewer, "?workflow=refunds")
    assert text_of(page, "error-figures").startswith("Errored now 1 instance ")
    assert page.count('<td class="id">') == 1
    assert viewer.get(f"/errors/{fingerprint()}/?workflow=nothing").status_code == 404


def test_it_shows_what_they_have_in_common(people: People, fail: Fail) -> None:
    fail(message="well", region="us")
    fail(message="well", region="us")
    for _ in range(3):
        fail(region="eu")
    page = shown(people("viewer"))
    assert "100 % have params." in page
    assert text_of(page, "error-common").count("3 of 3") == 2  # the region, and the message
    assert 'class="usual" x="0%"' in page


def test_the_trace_shows_own_frames_and_folds_the_others(people: People, fail: Fail) -> None:
    instance = fail()
    page = shown(people("viewer"))
    own = re.findall(r'<pre class="own" tabindex="0">(.*?)</pre>', page, re.DOTALL)
    assert "in charge" in "".join(own)
    assert "site-packages" not in "".join(own)
    folded = re.findall(r"<summary>([0-9]+ frames? of [^<]+)</summary>", page)
    assert folded
    assert all("the engine" in one or "Python" in one for one in folded)
    assert f'href="{instance.get_absolute_url()}#s-1-a2"' in page
    assert "attempt 2 of 2" in " ".join(page.split())


def test_its_chart_has_an_hour_a_day_and_two_weeks(people: People, fail: Fail) -> None:
    fail()
    viewer = people("viewer")
    for query, bars in (("", 14), ("?span=day", 24), ("?span=hour", 20)):
        chart = shown(viewer, query).partition('id="error-chart"')[2].partition("</section>")[0]
        assert chart.count("<rect ") == bars
        assert chart.count('class="n"') == 1


def test_its_instances_are_a_search_too(people: People, fail: Fail) -> None:
    instance = fail()
    viewer = people("viewer")
    address = re.search(r'href="([^"]*)">Open as a search', shown(viewer))
    assert address is not None
    assert instance.id in viewer.get(html.unescape(address[1])).content.decode()
    assert "No instance waits for its next attempt." in shown(viewer, "?kind=retrying")
    assert "No instance went on after this." in shown(viewer, "?kind=went_on")


def test_pages_of_instances_follow_each_other(
    people: People, fail: Fail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(error_page, "ROWS", 1)
    one, two = fail(), fail()
    viewer = people("viewer")
    first = shown(viewer)
    older = re.search(r'href="(/errors/[^"]*)#error-instances" rel="next"', first)
    assert older is not None
    second = viewer.get(html.unescape(older[1])).content.decode()
    rows = [re.findall(r'<tr id="i-([0-9]+)"', page) for page in (first, second)]
    assert rows == [[str(two.key)], [str(one.key)]]
    assert 'rel="first"' in second
    assert 'rel="next"' not in second


def test_what_is_resolved_opens_again_when_it_fails_again(people: People, fail: Fail) -> None:
    fail()
    operator, where = people("operator"), f"/errors/{fingerprint()}/"
    answer = operator.post(f"{where}resolve/", follow=True)
    assert answer.redirect_chain == [(where, 302)]
    page = answer.content.decode()
    assert "Resolved. It opens again if it fails again." in page
    assert "Resolved by operator" in text_of(page, "error-state")
    assert "Reopen" in page
    fail()
    page = shown(operator)
    assert text_of(page, "error-head").startswith("Errors charge_card: no answer within 5 s open")
    assert text_of(page, "error-steer").startswith("Retry all 2… Resolve Ignore…")


def test_it_is_ignored_for_a_time_and_a_number_of_failures_with_a_reason(people: People, fail: Fail) -> None:
    fail()
    operator, where = people("operator"), f"/errors/{fingerprint()}/"
    answer = operator.post(f"{where}ignore/", {"span": "day", "count": "3", "reason": " "})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "Not ignored. Enter a reason." in page
    assert 'id="ignore-count" name="count" value="3"' in page
    assert '<dialog id="ignore" aria-labelledby="ignore-title" data-open>' in page
    for wrong in ("0", "-1", "x", "1" * 12, "²"):
        answer = operator.post(f"{where}ignore/", {"span": "day", "count": wrong, "reason": "known"})
        assert answer.status_code == 422
    assert failures.group(fingerprint()).state == "open"
    given = {"span": "day", "count": "3", "reason": "The bank <b>knows</b>."}
    assert operator.post(f"{where}ignore/", given).status_code == 302
    page = shown(operator)
    assert "The bank &lt;b&gt;knows&lt;/b&gt;." in page
    assert "for 3 failures" in text_of(page, "error-state")
    found = failures.group(fingerprint())
    assert (found.state, found.ignored_count) == ("ignored", 3)
    assert found.ignored_until is not None
    assert 23 < (found.ignored_until - timezone.now()).total_seconds() / 3600 <= 24
    operator.post(f"{where}reopen/")
    assert failures.group(fingerprint()).state == "open"
    assert [row.verb for row in Audit.objects.filter(verb__startswith="error-").order_by("key")] == [
        "error-ignore",
        "error-reopen",
    ]


def test_a_decision_holds_for_what_the_page_shows(people: People, fail: Fail) -> None:
    for name in ("orders", "refunds"):
        fail(name)
    operator, where = people("operator"), f"/errors/{fingerprint()}/"
    operator.post(f"{where}resolve/?workflow=refunds")
    assert [failures.group(fingerprint(one)).state for one in ("orders", "refunds")] == ["open", "resolved"]
    operator.post(f"{where}resolve/")
    assert [failures.group(fingerprint(one)).state for one in ("orders", "refunds")] == ["resolved"] * 2
    answer = operator.post(f"{where}resolve/")
    assert answer.status_code == 409
    assert "It is already resolved, by operator. Nothing was changed." in answer.content.decode()
    assert Audit.objects.filter(verb="error-resolve").count() == 2


def test_notes_stand_on_the_page_beside_what_was_decided(people: People, fail: Fail) -> None:
    for name in ("orders", "refunds"):
        fail(name)
    operator, where = people("operator"), f"/errors/{fingerprint()}/"
    given = {"text": "Until <b>04:00</b>. @operator looks again.", "token": new_token()}
    for _ in range(2):
        answer = operator.post(f"{where}note/", given, follow=True)
    assert answer.redirect_chain == [(f"{where}#notes", 302)]
    operator.post(f"{where}ignore/", {"span": "day", "count": "", "reason": "The bank knows."})
    page = shown(operator)
    notes = text_of(page, "error-notes").partition("Instances")[0]
    assert notes.index("ignored the error The bank knows.") < notes.index(
        "Until <b>04:00</b>. @operator looks again."
    )
    assert (notes.count("04:00"), notes.count("The bank knows.")) == (1, 1)
    assert "Until &lt;b&gt;04:00&lt;/b&gt;." in page
    assert '<mark class="mention">@' in page
    assert Audit.objects.filter(verb="error-note").count() == 2  # one for each workflow
    only = operator.get(f"{where}?workflow=orders").content.decode()
    assert "04:00" in text_of(only, "error-notes")


def test_a_note_without_text_is_refused_and_a_viewer_adds_none(people: People, fail: Fail) -> None:
    fail()
    where = f"/errors/{fingerprint()}/"
    operator = people("operator")
    answer = operator.post(f"{where}note/", {"text": " \n"})
    assert answer.status_code == 422
    assert "It has no text. Write something." in html.unescape(answer.content.decode())
    answer = operator.post(f"{where}note/", {"text": "x" * 4_001})
    assert answer.status_code == 422
    assert f">{'x' * 4_001}</textarea>" in answer.content.decode()
    viewer = people("viewer")
    assert viewer.post(f"{where}note/", {"text": "x"}).status_code == 403
    page = shown(viewer)
    assert 'id="note-form"' not in page
    assert text_of(page, "error-notes").startswith("No notes yet.")
    assert not Audit.objects.filter(verb="error-note", outcome="done").exists()
    assert operator.post("/errors/0123456789abcdef/note/", {"text": "x"}).status_code == 404


def test_a_viewer_sees_the_buttons_disabled_with_the_reason(people: People, fail: Fail) -> None:
    fail()
    viewer = people("viewer")
    page = shown(viewer)
    assert page.count('disabled title="Requires the operator role"') == 4
    assert "It reopens if it fails again" not in page  # a browser shows the first title of a button
    assert text_of(page, "error-role").startswith("Requires the operator role. Ask an administrator for it.")
    assert 'id="ignore-form"' not in page
    assert viewer.post(f"/errors/{fingerprint()}/resolve/").status_code == 403
    assert failures.group(fingerprint()).state == "open"


def test_whatever_an_error_says_is_inert(people: People, fail: Fail) -> None:
    fail(message='<script>alert(1)</script> \u202egnp NUL "&', step="<b>pay\u202e</b>")
    viewer = people("viewer")
    for page in (viewer.get("/errors/").content.decode(), shown(viewer)):
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert(1)" in page
        assert "<b>pay" not in page
        assert "\0" not in page
        seen = re.sub(r'data-copy="[^"]*"|<bdi>.*?</bdi>|\u2068[^\u2068\u2069]*\u2069', "", page)
        assert "\u202e" not in seen  # what turns the direction stays within isolated text


def test_an_unknown_error_is_not_found(people: People) -> None:
    viewer = people("viewer")
    for where in ("0123456789abcdef/", "0123456789ABCDEF/", "x/"):
        assert viewer.get(f"/errors/{where}").status_code == 404
    assert people("operator").post("/errors/0123456789abcdef/resolve/").status_code == 404


def test_an_instance_and_its_workflow_lead_to_it(people: People, fail: Fail) -> None:
    instance, viewer = fail(), people("viewer")
    page = viewer.get(instance.get_absolute_url()).content.decode()
    assert f'<a class="alike small" href="/errors/{fingerprint()}/">Show this error</a>' in page
    assert "the same way" not in " ".join(page.split())
    fail()
    fail("refunds")
    page = viewer.get(instance.get_absolute_url()).content.decode()
    assert "2 others fail the same way</a> since" in " ".join(page.split())
    well = fail(message="well")
    assert "alike small" not in viewer.get(well.get_absolute_url()).content.decode()
    assert 'href="/errors/?workflow=orders"' in viewer.get("/workflows/orders/?tab=errors").content.decode()


def test_the_errors_of_a_workflow_are_on_its_page(people: People, fail: Fail) -> None:
    fail()
    fail("refunds", "no such card")
    page = people("viewer").get("/workflows/orders/?tab=errors").content.decode()
    assert re.findall(r'<tr id="e-([^"]*)">', page) == [fingerprint()]


def test_the_workflows_of_an_error_are_paused_and_resumed_from_its_page(people: People, fail: Fail) -> None:
    fail("orders")
    fail("refunds")
    operator = people("operator")
    where, both = f"/errors/{fingerprint('orders')}/", "workflow=orders&amp;workflow=refunds"
    page = shown(operator)
    assert "Pause 2 workflows…" in text_of(page, "error-steer")
    assert f'href="/pause-workflows/?{both}&amp;next={quote(where, safe="")}"' in page

    pauses.pause("orders", by="zoe")
    page = shown(operator)
    assert "Pause refunds…" in text_of(page, "error-steer")
    assert "orders is paused; nothing waits. Resume…" in text_of(page, "error-going")

    pauses.pause("refunds", by="zoe")
    workflows["orders"].start({"message": "well"})
    page = shown(operator)
    assert "Pause" not in text_of(page, "error-steer").split("Still failing")[0]
    assert "Both workflows are paused; 1 instance waits. Resume…" in text_of(page, "error-going")
    assert f'href="/resume-workflows/?{both}&amp;next={quote(where, safe="")}"' in page
    assert "Resume…" not in text_of(shown(people("viewer")), "error-going")


def test_what_is_errored_is_retried_from_its_page(people: People, fail: Fail) -> None:
    fail("orders"), fail("orders"), fail("refunds")
    operator = people("operator")
    page = shown(operator)
    assert text_of(page, "error-steer").startswith("Retry all 3…")
    (address,) = re.findall(r'<a class="button to-sheet" href="([^"]+)"', page)
    asked = operator.get(html.unescape(address))
    assert asked.status_code == 200
    assert "Retry 3" in asked.content.decode()
    one = operator.get(f"/errors/{fingerprint('orders')}/?workflow=refunds").content.decode()
    assert text_of(one, "error-steer").startswith("Retry 1…")


def test_the_first_action_is_to_pause_while_it_fails_and_to_retry_once_it_works(
    people: People, fail: Fail
) -> None:
    fail("orders"), fail("orders")
    operator = people("operator")
    assert '<a class="button primary" href="/pause-workflows/' in shown(operator)
    fail("orders", "well")
    page = shown(operator)
    assert '<a class="button to-sheet primary" href="/bulk/new/' in page
    assert '<a class="button" href="/pause-workflows/' in page
