"""Everything that happened to an instance is in one stream, newest first."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from engine.models import Attempt, Instance, Log, Step
from engine.steer import requests
from studio.instance.activity.count import MOST, count_entries
from studio.instance.activity.stream import LIVE, PAGE
from studio.live.topics import view_of
from tests.studio import factories
from tests.studio.instance.test_generations import restarted

pytestmark = pytest.mark.django_db


def page_of(client: Client, instance: Instance, query: str = "") -> str:
    answer = client.get(f"{instance.get_absolute_url()}?tab=activity{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def entries(page: str) -> list[str]:
    """Return the texts of the entries, without their times."""
    found = re.findall(r'<li id="y-[^"]*" class="of-.*?</li>', page, re.DOTALL)
    plain = (re.sub(r"<time.*?</time>|<svg.*?</svg>|<[^>]*>", "", one) for one in found)
    return [html.unescape(" ".join(one.split())) for one in plain]


def ids(page: str) -> list[str]:
    return re.findall(r'<li id="(y-[^"]*)" class="of-', page)


def busy() -> Instance:
    """Make an instance to which something of each kind happened."""
    instance = factories.instance("running", created_at=factories.ago(hours=1))
    step = factories.step(instance, "charge", started_at=factories.ago(minutes=50))
    factories.attempt(step, "errored", started_at=factories.ago(minutes=50))
    factories.attempt(step, started_at=factories.ago(minutes=40))
    factories.log(instance, "asked the bank", step_seq=1, attempt=2, at=factories.ago(minutes=30))
    factories.event(instance, "paid", {"cents": 1240}, sent_by="shop", received_at=factories.ago(minutes=20))
    factories.deed(instance, "pause", "zoe", "wait for the bank", at=factories.ago(minutes=10))
    factories.deed(instance, "note", "ana", "They have called.", at=factories.ago(minutes=5))
    return instance


def test_what_happened_is_in_one_stream_newest_first(viewer: Client) -> None:
    assert entries(page_of(viewer, busy())) == [
        "ana noted They have called.",
        "zoe paused: “wait for the bank”",
        'shop sent event paid · not received yet {"cents": 1240}',
        "info asked the bank charge",
        "charge attempt 2 succeeded after on worker-2",
        "charge attempt 1 failed after on worker-2 TimeoutError: no answer from the card service after 5 s",
    ]


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("&kind=notes", ["notes"]),
        ("&kind=attempts", ["attempts", "attempts"]),
        ("&kind=events,logs", ["events", "logs"]),
        ("&by=zoe", ["actions"]),
        ("&by=shop", ["events"]),
        ("&by=zoe&kind=notes", []),
    ],
)
def test_the_address_has_the_filter(viewer: Client, query: str, kinds: list[str]) -> None:
    page = page_of(viewer, busy(), query)
    assert re.findall(r'<li id="y-[^"]*" class="of-(\w+)"', page) == kinds


def test_a_filter_without_a_match_leads_back(viewer: Client) -> None:
    page = page_of(viewer, busy(), "&by=nobody")
    assert "No matches" in page
    assert 'href="?tab=activity"' in page


def test_an_unknown_kind_is_named(viewer: Client) -> None:
    assert "<bdi>kind=nope</bdi>" in page_of(viewer, busy(), "&kind=nope")


def test_each_attempt_leads_to_itself(viewer: Client) -> None:
    page = page_of(viewer, busy(), "&kind=attempts")
    assert re.findall(r'href="[^"]*(#s-[^"]*)"', page) == ["#s-1-a2", "#s-1-a1"]


def test_a_vote_says_what_was_decided(viewer: Client) -> None:
    instance = factories.instance("waiting")
    factories.request(instance, schema={"type": "boolean"}, name="credit-limit")
    requests.answer(instance, "credit-limit", True, by=factories.person("approver", "tom"), comment="fine")
    assert entries(page_of(viewer, instance, "&kind=votes")) == ["tom approved credit-limit “fine”"]
    assert entries(page_of(viewer, instance, "&kind=events")) == []  # it is there once


def test_what_was_sent_is_shown_once(operator: Client) -> None:
    instance = factories.instance("waiting")
    instance.send_event("paid", {"cents": 1}, by="shop")
    assert len(entries(page_of(operator, instance))) == 1


def test_markup_and_secrets_are_inert_and_hidden(viewer: Client) -> None:
    instance = factories.instance()
    factories.event(instance, "paid", {"pin": {"$reprise-secret": "gAAAAA-token"}, "x": "<b>bold</b>"})
    factories.deed(instance, "note", "<i>ana</i>", "<script>1</script>")
    page = page_of(viewer, instance)
    assert "gAAAAA" not in page
    assert "••••••" in page
    assert not re.search(r"<b>bold|<i>ana|<script>1", page)


def test_the_pages_have_every_entry_once(viewer: Client) -> None:
    """Also those of the same moment, and while new ones arrive."""
    instance = factories.instance("running")
    now = factories.ago(minutes=1)
    for n in range(70):
        factories.log(instance, f"line {n}", at=now)
        factories.deed(instance, "note", "ana", f"note {n}", at=now - timedelta(seconds=n % 3))
    step = factories.step(instance, "charge", started_at=now, options={"max_attempts": 40, "delay": 1})
    for n in range(30):
        factories.attempt(step, "complete" if n == 29 else "errored", started_at=now)
    found, query = list[str](), ""
    while True:
        page = page_of(viewer, instance, query)
        found += ids(page)
        older = re.search(r'href="\?tab=activity&amp;before=([0-9-]+)" rel="next"', page)
        if older is None:
            break
        query = f"&before={older[1]}"
        factories.deed(instance, "note", "ana", "new")
    assert len(found) == len(set(found)) == 170


def test_what_follows_a_page_has_its_entries_and_the_new_ones(viewer: Client) -> None:
    """However many arrive, none of the page is missing, so that nothing on it seems to be gone."""
    instance = factories.instance("running")
    for n in range(60):
        factories.log(instance, f"line {n}", at=factories.ago(minutes=70 - n))
    page = page_of(viewer, instance)
    topic = html.unescape(re.findall(r"topic=(instance:[^\"]*)", page)[0])
    for n in range(20):
        factories.deed(instance, "note", "ana", f"note {n}")
    drawing = view_of(f"topic={topic}").draw(factories.person("viewer"))
    followed = drawing.pieces["activity"].html
    assert ids(followed)[20:] == ids(page)
    assert "activity-filter" not in drawing.pieces


def followed(page: str) -> str:
    """Return the stream as the socket of a page now has it."""
    topic = html.unescape(re.findall(r"topic=(instance:[^\"]*)", page)[0])
    return view_of(f"topic={topic}").draw(factories.person("viewer")).pieces["activity"].html


def test_no_entry_is_lost_when_more_are_new_than_are_sent(viewer: Client) -> None:
    """Those of the page are there, also an attempt that has ended since; what is left out has a link."""
    instance = factories.instance("running", created_at=factories.ago(hours=3))
    attempt = factories.attempt(
        factories.step(instance, "charge", "running", started_at=factories.ago(minutes=75)),
        "running",
        started_at=factories.ago(minutes=75),
    )
    for n in range(10):
        factories.log(instance, f"line {n}", at=factories.ago(minutes=70 - n))
    page = page_of(viewer, instance)
    ended = {"status": "complete", "finished_at": factories.ago(minutes=30)}
    Attempt.objects.filter(pk=attempt.pk).update(**ended)
    Step.objects.filter(name="charge").update(delivery=1, output="paid", **ended)
    for n in range(300):
        factories.log(instance, f"new {n}", at=factories.ago(seconds=900 - n))
    now = followed(page)
    assert {*ids(page)} <= {*ids(now)}
    assert len(ids(now)) == len({*ids(now)}) == LIVE - PAGE + len(ids(page))
    gap = re.search(r'<li id="y-gap" class="gap"><a href="([^"]*)"', now)
    assert gap is not None
    between = page_of(viewer, instance, html.unescape(gap[1]).removeprefix("?tab=activity"))
    assert not {*ids(between)} & {*ids(now)}
    assert "new 199" in between


def test_an_attempt_that_runs_says_so(viewer: Client) -> None:
    instance = factories.instance("running")
    factories.attempt(factories.step(instance, "charge", "running"), "running")
    assert entries(page_of(viewer, instance)) == ["charge attempt 1 is running on worker-2"]


@pytest.mark.parametrize("before", ["", "nope", "1-2", "9" * 18, "-".join(["9" * 18] * 9), "-".join("0" * 9)])
def test_no_position_breaks_the_page(viewer: Client, before: str) -> None:
    page_of(viewer, busy(), f"&before={before}")


def test_it_has_all_generations(viewer: Client) -> None:
    page = page_of(viewer, restarted(), "&kind=attempts")
    assert any("in generation 1" in entry for entry in entries(page))


@pytest.mark.parametrize(("logs", "said"), [(3, "3"), (98, "98"), (300, "99+")])
def test_the_tab_counts_as_far_as_it_is_cheap(viewer: Client, logs: int, said: str) -> None:
    instance = factories.instance()
    Log.objects.bulk_create(
        Log(instance_id=instance.key, generation=1, level="info", message="x", at=factories.ago(minutes=1))
        for _ in range(logs)
    )
    page = viewer.get(instance.get_absolute_url()).content.decode()
    assert re.search(rf'Activity\s*<span class="num">{re.escape(said)}</span>', page)


def test_the_audit_trail_is_not_read_where_the_rest_fills_the_count() -> None:
    instance = factories.instance()
    for n in range(MOST):
        factories.log(instance, f"line {n}")
    with CaptureQueriesContext(connection) as asked:
        assert count_entries(instance) == MOST - 1
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, COSTS OFF) {asked[-1]['sql']}")
        plan = [line for (line,) in cursor.fetchall()]
    assert any("never executed" in line for line in plan)
    assert [line for line in plan if "on engine_audit" in line and "never executed" not in line] == []


def test_only_those_who_may_act_get_the_field_for_a_note(viewer: Client, operator: Client) -> None:
    instance = busy()
    assert 'id="note-form"' in page_of(operator, instance)
    assert 'id="note-form"' not in page_of(viewer, instance)


def test_nothing_of_other_instances_is_in_it(viewer: Client) -> None:
    busy()
    assert "No activity yet" in page_of(viewer, factories.instance())


def test_many_entries_take_a_few_queries(
    viewer: Client, django_assert_max_num_queries: Callable[..., object]
) -> None:
    instance = busy()
    for n in range(60):
        factories.attempt(factories.step(instance, f"step-{n}", started_at=factories.ago(minutes=9 - n / 10)))
    with django_assert_max_num_queries(45):
        page_of(viewer, instance)
