"""Errors on Home: groups across workflows, their back-offs, what is new, and whose they are."""

from __future__ import annotations

import html
import re
from datetime import timedelta

import pytest
from django.test import Client

from engine import failures, pauses
from engine.models import Failure
from studio.home import details, failing, group
from tests.studio import factories
from tests.studio.home.conftest import Fail, Home


@pytest.fixture
def oli(engine_db: None) -> Client:
    client = Client()
    client.force_login(factories.person("operator", "oli"))
    return client


def fingerprint(workflow: str = "orders") -> str:
    return Failure.objects.get(workflow=workflow).fingerprint


def test_one_error_of_several_workflows_is_one_row_with_the_number_of_each(oli: Client, fail: Fail) -> None:
    for name in ("orders", "orders", "renewals"):
        fail(name)
    page = Home(oli)
    (row,) = page.rows
    assert (row.count, row.state) == ("3", "errored")
    assert row.title == "charge_card: no answer within 5 s"
    assert row.line == "orders 2 · renewals 1"
    assert row.href == f"/errors/{fingerprint()}/" or row.href == f"/errors/{fingerprint('renewals')}/"
    assert oli.get(row.href).status_code == 200
    assert page.sentence.startswith("3 instances of 2 workflows have failed in one step since ")
    assert page.look == "errored"


def test_another_message_is_another_row_and_a_fact_of_the_sentence(oli: Client, fail: Fail) -> None:
    fail(), fail()
    other = fail(message="the amount is too small")
    page = Home(oli)
    assert [(row.count, row.title) for row in page.rows] == [
        ("2", "charge_card: no answer within 5 s"),
        ("1", "charge_card: the amount is too small"),
    ]
    assert page.rows[1].line == f"orders · {other.id} · TimeoutError, never seen before"
    assert page.sentence.startswith("2 instances of orders have failed in one step since ")
    assert page.facts[0] == "1 failed for another reason"


def test_the_sentence_about_one_instance_names_the_step(oli: Client, fail: Fail) -> None:
    fail()
    assert Home(oli).sentence.startswith("1 instance of orders failed in charge_card at ")


def test_back_offs_follow_their_error_before_any_other(oli: Client, fail: Fail) -> None:
    fail(), fail()
    for _ in range(3):
        fail(message="the amount is too small")
    backs_off = fail(attempts=6, delay="40m")
    page = Home(oli)
    assert [(row.count, row.state) for row in page.rows] == [
        ("3", "errored"),
        ("2", "errored"),
        ("1", "retrying"),
    ]
    row = page.rows[2]
    assert row.title == "The same error, backing off"
    assert row.line.startswith(f"orders · {backs_off.id} · attempt 2 of 6 starts by itself at ")
    assert row.since.partition("next ")[2].startswith("in ")
    assert (
        row.href
        == f"/instances/?query=error-group:{fingerprint_of('no answer within ‹n› s')}+status:retrying"
    )
    assert oli.get(row.href).status_code == 200
    assert "1 more backs off until" in page.facts[1]


def fingerprint_of(message: str) -> str:
    return Failure.objects.get(message=message).fingerprint


def test_a_retry_without_a_failure_comes_after_the_engines_pauses(oli: Client, fail: Fail) -> None:
    fail(attempts=6, delay="40m")
    fail("onboarding", message="no kit", pauses=True)
    page = Home(oli)
    assert [(row.state, row.title) for row in page.rows] == [
        ("paused", "charge_card: attempts used up"),
        ("retrying", "charge_card: no answer within 5 s"),
    ]
    assert page.sentence.startswith("1 instance of onboarding has been paused by the engine since ")
    assert page.facts[0].startswith("1 backs off until ")


def test_a_rollback_that_failed_comes_first(oli: Client, fail: Fail) -> None:
    for _ in range(3):
        fail()
    fail(message="the amount is too small", undo=True)
    page = Home(oli)
    assert [(row.count, row.title) for row in page.rows] == [
        ("1", "Rollback of charge_card: refunds are closed"),
        ("3", "charge_card: no answer within 5 s"),
    ]
    assert page.sentence.startswith("1 instance of orders could not be rolled back at ")
    assert page.facts[0] == "3 failed for another reason"


def test_what_was_resolved_or_ignored_needs_nobody(oli: Client, fail: Fail) -> None:
    fail()
    fail(message="the amount is too small")
    failures.resolve(fingerprint_of("no answer within ‹n› s"), by="ana")
    failures.ignore(fingerprint_of("the amount is too small"), by="ana", reason="known")
    page = Home(oli)
    assert page.is_quiet
    assert page.sentence.startswith("Nothing needs you")
    fail()
    assert [row.title for row in Home(oli).rows] == ["charge_card: no answer within 5 s"]


def test_only_an_error_that_was_never_seen_before_is_new(oli: Client, fail: Fail) -> None:
    fail(), fail()
    assert 'class="new"' in Home(oli).rows[0].html
    Failure.objects.update(first_seen=factories.ago(days=3))
    assert 'class="new"' not in Home(oli).rows[0].html


def test_what_they_have_in_common_is_told_of_the_worst_only_if_it_is_unusual(oli: Client, fail: Fail) -> None:
    for region in ("us", "us", "us", "eu"):
        fail(well=True, region=region)
    for _ in range(5):
        fail(well=True, region="us")
    for _ in range(details.LEAST):
        fail(region="eu")
    assert Home(oli).rows[0].line == f"orders {details.LEAST} · 100 % have region = eu"


def test_few_have_nothing_in_common(oli: Client, fail: Fail) -> None:
    for _ in range(5):
        fail(well=True, region="us")
    fail(region="eu"), fail(region="eu")
    assert Home(oli).rows[0].line == "orders 2"


def test_mine_are_those_that_i_started_and_the_switch_counts_both(oli: Client, fail: Fail) -> None:
    fail(by="oli"), fail(by="zoe")
    fail(message="the amount is too small", by="zoe")
    fail(message="no kit", attempts=3, delay="40m", by="oli")
    assert Home(oli).switch == "Everything 3 Mine 2"
    page = Home(oli, "?who=mine")
    assert [(row.count, row.state, row.title) for row in page.rows] == [
        ("1", "errored", "charge_card: no answer within 5 s"),
        ("1", "retrying", "charge_card: no kit"),
    ]
    assert page.switch == "Everything 3 Mine 2"
    assert "topic=home&amp;who=mine" in page.html
    assert page.sentence.startswith("2 instances of orders have failed")  # the headline is about everything


def test_nothing_of_mine_says_so(oli: Client, fail: Fail) -> None:
    fail(by="zoe")
    page = Home(oli, "?who=mine")
    assert page.rows == []
    assert "Nothing that you started or may answer needs attention." in page.html


def test_mine_says_how_many_are_searched(oli: Client, fail: Fail) -> None:
    fail(by="oli")
    said = "among the newest 1,000 errored, retrying and paused instances of each workflow"
    assert said in " ".join(Home(oli, "?who=mine").html.split())
    assert said not in " ".join(Home(oli).html.split())


def test_groups_beyond_the_cap_are_counted_with_a_link(
    oli: Client, fail: Fail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group, "SHOWN_ERRORS", 2)
    for word in ("one", "two", "three", "four"):
        fail(message=word)
    page = Home(oli)
    assert len(page.rows) == 2
    assert '<a\n      href="/errors/">2 more groups</a>' in page.html
    assert page.switch.startswith("Everything 4")


def test_the_last_hour_has_bars_if_something_changes_and_words_if_not(oli: Client, fail: Fail) -> None:
    fail(), fail()
    fail(message="the amount is too small")
    first, second = Home(oli).rows
    assert "hour-bars" in first.html
    assert first.hour == "2 new"
    assert (second.hour, "hour-bars" in second.html) == ("1 new", False)


def test_while_the_worst_error_goes_on_its_workflows_can_be_paused(oli: Client, fail: Fail) -> None:
    fail(), fail("renewals")
    fail(message="the amount is too small")
    first, second = Home(oli).rows
    assert first.html.count("button primary") == 1
    address = "/pause-workflows/?workflow=orders&amp;workflow=renewals&amp;next=%2F"
    assert f'<a class="button primary" href="{address}">' in first.html
    assert "Pause 2 workflows…" in first.html
    assert "button primary" not in second.html
    assert oli.get(html.unescape(address)).status_code == 200


def test_the_error_that_goes_on_can_be_paused_also_below_another(oli: Client, fail: Fail) -> None:
    fail(message="the amount is too small", undo=True)
    fail(), fail()
    first, second = Home(oli).rows
    assert "Pause" not in first.html
    assert "Pause 1 workflow…" in second.html
    assert ("button primary" in first.html, "button primary" in second.html) == (True, False)


def test_what_is_paused_is_not_paused_again(oli: Client, fail: Fail) -> None:
    fail(), fail("renewals")
    pauses.pause("orders", by="ana", reason="the provider is down")
    (row,) = Home(oli).rows
    assert "Pause 1 workflow…" in row.html
    assert row.line.endswith("1 of 2 paused")
    pauses.pause("renewals", by="ana", reason="the provider is down")
    (row,) = Home(oli).rows
    assert "Pause" not in row.html
    assert row.html.count("button to-sheet primary") == 1
    assert row.line.endswith("all 2 paused")


def test_who_may_not_pause_sees_why(engine_db: None, fail: Fail) -> None:
    viewer = Client()
    viewer.force_login(factories.person("viewer"))
    fail()
    (row,) = Home(viewer).rows
    assert 'disabled title="Requires the operator role"' in row.html
    assert "/pause-workflows/" not in row.html


def test_once_an_error_has_stopped_it_is_opened_first(
    oli: Client, fail: Fail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failing, "GROWS", timedelta(0))
    fail()
    (row,) = Home(oli).rows
    assert "Pause" not in row.html
    assert 'class="button primary"' in row.html


def test_an_error_of_several_is_retried_and_one_is_opened(oli: Client, fail: Fail) -> None:
    fail(), fail("renewals")
    fail(message="the amount is too small")
    first, second = Home(oli).rows
    assert (first.verb, second.verb) == ("Retry 2…", "Open")
    (address,) = re.findall(r'class="button to-sheet"\s+href="([^"]+)"', first.html)
    asked = oli.get(html.unescape(address)).content.decode()
    assert "Retry 2" in asked
    assert 'name="next" value="/"' in asked


def test_once_its_step_works_again_it_is_retried_first(oli: Client, fail: Fail) -> None:
    fail(), fail()
    (row,) = Home(oli).rows
    assert re.findall(r'class="(button[^"]*)"', row.html) == ["button primary", "button to-sheet"]
    fail(well=True)
    (row,) = Home(oli).rows
    assert re.findall(r'class="(button[^"]*)"', row.html) == ["button", "button to-sheet primary"]


def test_ones_own_are_retried_without_those_of_others(oli: Client, fail: Fail) -> None:
    fail(by="oli"), fail(by="oli"), fail(by="ana")
    (row,) = Home(oli, "?who=mine").rows
    assert row.verb == "Retry 2…"
    (address,) = re.findall(r'class="button to-sheet"\s+href="([^"]+)"', row.html)
    assert "by:oli" in html.unescape(address).replace("+", " ")
    assert "Retry 2" in oli.get(html.unescape(address)).content.decode()


def test_who_may_not_retry_sees_why(engine_db: None, fail: Fail) -> None:
    viewer = Client()
    viewer.force_login(factories.person("viewer"))
    fail(), fail()
    (row,) = Home(viewer).rows
    assert "/bulk/new/" not in row.html
    assert row.html.count('disabled title="Requires the operator role"') == 2
