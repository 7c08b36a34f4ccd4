"""The page of one instance, in every state."""

from __future__ import annotations

import html
import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.templatetags.static import static
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from engine.models import Instance, Step
from engine.status.sentences.bidi import isolated
from engine.steer import restart
from studio.instance import queries as instance_queries
from studio.instance.window import SHOWN, WINDOW
from tests.studio import factories
from tests.studio.instance.reading import choices, labels

pytestmark = pytest.mark.django_db


def page_of(client: Client, instance: Instance, query: str = "") -> str:
    answer = client.get(instance.get_absolute_url() + query)
    assert answer.status_code == 200
    return answer.content.decode()


ANOTHER = "Start another like it…"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("queued", ["Pause", "Restart…", "Send event…", ANOTHER, "Terminate…"]),
        ("running", ["Pause", "Restart…", "Send event…", ANOTHER, "Terminate…"]),
        ("waiting", ["Send event…", "Pause", "Restart…", ANOTHER, "Terminate…"]),
        ("waiting_for_pause", ["Keep running", "Restart…", "Send event…", ANOTHER, "Terminate…"]),
        ("paused", ["Resume", "Restart…", "Send event…", ANOTHER, "Terminate…"]),
        ("complete", [ANOTHER, "Restart…", "Delete…"]),
        ("errored", ["Retry the step…", "Restart…", ANOTHER, "Delete…"]),
        ("terminated", [ANOTHER, "Restart…", "Delete…"]),
    ],
)
def test_only_what_the_status_allows_is_offered(operator: Client, status: str, expected: list[str]) -> None:
    page = page_of(operator, factories.instance(status))
    assert labels(page) == expected
    assert (
        len(set(re.findall(r'<p id="(does-[^"]*)" class="muted small">[^<]+</p>', page))) == len(expected) - 1
    )


def test_what_a_viewer_may_not_do_is_disabled_and_says_why(viewer: Client) -> None:
    for status, number in (("running", 5), ("errored", 4)):
        offered = choices(page_of(viewer, factories.instance(status)))
        assert len(offered) == number
        assert all('disabled title="Requires the operator role"' in one for one in offered)


def test_an_unknown_tab_shows_the_steps_and_is_named(operator: Client) -> None:
    instance = factories.instance("running")
    page = operator.get(f"{instance.get_absolute_url()}?tab=nope&x=1").content.decode()
    assert re.findall(r"<code><bdi>([^<]*)</bdi></code>", page) == ["tab=nope", "x=1"]
    tabs = page[page.index('id="tabs"') :]
    current = re.search(r'<a href="([^"]*)" aria-current="page">\s*Steps <span class="num">0</span>', tabs)
    assert current is not None
    assert current[1] == instance.get_absolute_url()


def test_the_tab_tells_the_state(operator: Client) -> None:
    page = page_of(operator, factories.instance("errored", id="order-1"))
    assert 'data-tab-title="order-1 · errored · orders"' in page
    assert f'data-tab-icon="{static("studio/icons/errored.svg")}"' in page


@pytest.mark.parametrize(
    ("status", "is_ended"),
    [("running", False), ("paused", False), ("complete", True), ("errored", True), ("terminated", True)],
)
def test_open_dialogs_learn_that_the_instance_has_ended(
    operator: Client, status: str, is_ended: bool
) -> None:
    instance = factories.instance(status)
    frame = operator.get(f"/_f/live/?topic=instance:{instance.key}").content.decode()
    assert ("data-ended" in frame) is is_ended


def test_the_tab_says_pausing_as_the_page_does(operator: Client) -> None:
    page = page_of(operator, factories.instance("waiting_for_pause", id="order-1"))
    assert 'data-tab-title="order-1 · pausing · orders"' in page


@pytest.mark.parametrize(
    ("status", "said"),
    [("queued", "No step has started yet."), ("terminated", "It ended without running a step.")],
)
def test_an_instance_without_steps_says_so(operator: Client, status: str, said: str) -> None:
    assert page_of(operator, factories.instance(status)).count(said) == 1


def test_dialogs_are_closed_not_gone_back_from(operator: Client) -> None:
    page = page_of(operator, factories.instance("running"))
    closing = re.findall(r"<button[^>]*data-close>([^<]*)</button>", page)
    assert set(closing) == {"Close"}


def test_all_attempts_are_shown_newest_first_with_their_gaps_and_the_next(operator: Client) -> None:
    """HC-14"""
    page = page_of(operator, factories.retrying())
    step = page[page.index('id="pane"') :]
    order = [
        step.index(mark)
        for mark in (
            "next attempt",
            'id="s-2-a3"',
            "3 times the same",
            ">39 s</time>",
            'id="s-2-a2"',
            ">19 s</time>",
            'id="s-2-a1"',
        )
    ]
    assert order == sorted(order)
    assert 'data-kind="until"' in step
    assert '<span class="muted">3 of 5</span>' in step


def test_an_attempt_shows_worker_error_and_traceback_with_own_frames(operator: Client) -> None:
    page = page_of(operator, factories.retrying())
    assert "worker-2" in page
    assert "<strong>TimeoutError</strong>: no answer from the card service after 5 s" in page
    assert "Traceback · 1 app frame" in page
    assert re.search(r'<span class="lib">  File &quot;/srv/venv/lib/python3.11/site-packages/httpx', page)


def test_the_error_of_an_instance_is_where_its_step_raised(operator: Client) -> None:
    handlers = {"traceback": "StepError, as the handler got it", "step": "charge_card", "attempts": 1}
    instance = factories.instance("errored", error={**factories.FAILURE, **handlers})
    first = factories.step(instance, "charge_card", "errored")
    factories.attempt(first, "errored")
    other = factories.step(
        instance, "charge_card", "errored", count=2, error={"type": "Other", "message": "x"}
    )
    factories.attempt(other, "errored")
    page = page_of(operator, instance)
    result = page[page.index('id="result"') :]
    result = " ".join(result[: result.index("</tr>")].split())
    assert '<a href="#s-1-a1">step 1 <code>charge_card</code>, attempt 1</a>' in result
    pane = page[page.index('id="pane"') : page.index('<tr id="s-2"')]
    assert "/srv/shop/provider.py" in pane
    assert "as the handler got it" not in page


def test_the_error_links_to_its_step_on_the_page_that_has_it(operator: Client) -> None:
    instance = factories.instance("errored")
    factories.step(instance, "load")
    factories.attempt(factories.step(instance, "charge_card", "errored"), "errored")
    page = operator.get(f"{instance.get_absolute_url()}?upto=1").content.decode()
    assert '<a href="?upto=2#s-2-a1">step 2' in page


def test_attempts_that_died_with_a_worker_are_extra(operator: Client) -> None:
    instance = factories.instance("running")
    step = factories.step(instance, "reserve", "running", lost=1)
    factories.attempt(step, "lost")
    factories.attempt(step, "running")
    page = page_of(operator, instance)
    assert '<span class="muted">1 of 5</span>' in page
    assert "1 lost with a worker, not counted" in page
    assert "runs on worker-2 for <time" in page
    assert "attempt 1 of 5, not counting 1 lost." in page
    assert "1 attempt when a worker died" in page


def test_an_attempt_that_was_drained_does_not_count(operator: Client) -> None:
    instance = factories.instance("waiting", waiting_for="retry", wake_at=factories.ago(hours=-1))
    step = factories.step(instance, "reserve", "waiting", wake_at=instance.wake_at)
    for status in ("cancelled", "lost", "errored"):
        factories.attempt(step, status)
    page = page_of(operator, instance)
    assert '<span class="muted">1 of 5</span>' in page
    assert "failed once" in page
    assert "(attempt 2 of 5, not counting 1 lost)." in page
    assert "attempt 2 of 5, not counting 1 lost" in operator.get("/instances/").content.decode()


def test_a_differing_error_is_told(operator: Client) -> None:
    instance = factories.instance("running")
    step = factories.step(instance, "reserve", "running")
    factories.attempt(step, "errored", error={"type": "ConnectionReset", "message": "x"})
    factories.attempt(step, "errored")
    assert "differs from 1" in page_of(operator, instance)


def test_children_stand_indented_under_their_parent(operator: Client) -> None:
    instance = factories.instance("running")
    factories.step(instance, "parent")
    factories.step(instance, "sibling")
    factories.step(instance, "child", parent=1)
    found = instance_queries.of_key(instance.key)
    assert [(str(line.step), line.depth) for line in found.lines] == [
        ("parent", 0),
        ("child", 1),
        ("sibling", 0),
    ]
    assert re.search(r'<tr id="s-3" class="row s-complete depth-1"', page_of(operator, instance))


def test_the_row_of_a_request_says_who_answered_and_its_facts_before_the_question(operator: Client) -> None:
    instance = factories.instance("waiting")
    step = factories.request(instance, "Refund?", status="complete", output={"refund": True})
    given = {"value": {"refund": True}, "comment": "fine"}
    taken = {"state": "consumed", "consumed_by": step.seq, "consumed_generation": 1, "sent_by": "ada"}
    factories.event(instance, f"reprise:request:1:{step.seq}", given, **taken)
    page = " ".join(page_of(operator, instance, "?step=decide-1").split())
    assert f'<td role="cell" class="preview"> {isolated("ada")}: {{ &quot;refund&quot;: true }}' in page
    assert page.index("<dt>Answered</dt>") < page.index("<dt>Asked</dt>")


def test_a_wait_has_the_event_it_took(operator: Client) -> None:
    instance = factories.instance("waiting")
    factories.step(instance, "approval", kind="event", event_types=["order-approved"])
    event = factories.event(
        instance, payload={"ok": True}, state="consumed", consumed_by=1, consumed_generation=1, sent_by="ana"
    )
    factories.event(instance, "later")
    page = page_of(operator, instance, "?step=approval-1")
    assert "<code>order-approved</code> from ana" in " ".join(page.split())
    assert f"/payload/event-{event.key}/" in page
    assert '<td role="cell" class="preview"> { &quot;ok&quot;: true }' in " ".join(page.split())
    activity = " ".join(page_of(operator, instance, "?tab=activity").split())
    assert "· received by" in activity
    assert f"/payload/event-{event.key}/" in activity
    assert "not received yet" in activity


def test_what_the_stream_has_is_not_listed_below_the_steps_as_well(operator: Client) -> None:
    instance = factories.instance("waiting")
    factories.step(instance, "reserve")
    factories.event(instance, "later")
    factories.log(instance, "asked the bank", step_seq=1, attempt=1)
    factories.deed(instance, "pause", "zoe", "wait for the bank", outcome="denied")
    page, activity = page_of(operator, instance), page_of(operator, instance, "?tab=activity")
    for said in ("later</", "asked the bank", "wait for the bank"):
        assert said not in page
        assert said in activity
    assert "asked the bank" in page_of(operator, instance, "?step=1")


def test_the_event_form_names_what_is_waited_for(operator: Client) -> None:
    instance = factories.instance("waiting")
    factories.step(
        instance,
        "approval",
        "waiting",
        "event",
        event_types=["approved", "refused"],
        started_at=factories.ago(minutes=1),
    )
    page = " ".join(page_of(operator, instance).split())
    assert (
        'id="event-type" name="type" required maxlength="100" autocomplete="off" list="wanted-events" value="approved"'
        in page
    )
    assert "It is waiting for <code>approved</code> or <code>refused</code>." in page


def test_the_event_form_shows_what_a_declared_event_takes_and_starts_from_an_example(
    operator: Client,
) -> None:
    instance = factories.instance("waiting")
    factories.step(instance, "order-approved", "waiting", "event", started_at=factories.ago(minutes=1))
    page = page_of(operator, instance)
    form = page[page.index('id="event-title"') :]
    form = form[: form.index("</form>")]
    assert "<code>approved</code>" in form
    assert "boolean" in form
    typed = re.search(r"<textarea[^>]*>([^<]*)</textarea>", form)
    assert typed is not None
    assert json.loads(html.unescape(typed[1]))["approved"] is False
    assert "data-optional hidden" in form


def test_the_payload_of_an_event_nobody_declared_may_stay_empty(operator: Client) -> None:
    instance = factories.instance("waiting")
    factories.step(instance, "paid", "waiting", "event", started_at=factories.ago(minutes=1))
    page = page_of(operator, instance)
    assert "Payload (JSON<span data-optional>, optional</span>)" in page
    assert "data-event=" not in page


@pytest.mark.parametrize("kind", ["do", "sleep", "event"])
def test_the_times_of_a_paused_instance_stand_still(operator: Client, kind: str) -> None:
    paused_at = factories.ago(minutes=30)
    instance = factories.instance("paused", paused_at=paused_at, created_at=factories.ago(minutes=40))
    wake_at = paused_at + timedelta(hours=1, minutes=59, seconds=1)
    made = factories.step(instance, "x", "waiting", kind, wake_at=wake_at)
    if kind == "do":
        factories.attempt(made, "errored")
    page = page_of(operator, instance)
    assert 'data-kind="until"' not in page
    assert "1 h 59 m left when resumed" in page
    assert ("next attempt 1 h 59 m after it is resumed" in page) == (kind == "do")


def test_a_date_comes_also_while_an_instance_is_paused(operator: Client) -> None:
    instance = factories.instance("paused")
    wake_at = timezone.now() + timedelta(hours=1)
    factories.step(instance, "x", "waiting", "sleep", wake_at=wake_at, wake_is_fixed=True)
    page = page_of(operator, instance)
    assert 'data-kind="until"' in page
    assert "left when resumed" not in page


def test_log_lines_stand_with_their_step(operator: Client) -> None:
    instance = factories.instance("running")
    factories.step(instance, "reserve")
    factories.log(
        instance, "stock is low", level="warning", step_seq=1, attempt=1, fields={"left": 3, "items": ["a"]}
    )
    page = page_of(operator, instance, "?step=1")
    assert page.count("stock is low") == 1
    assert '<span class="muted">left=</span>3' in page
    assert '<span class="muted">items=</span>' in page_of(operator, instance, "?tab=activity")


def test_panes_are_asked_for_below_the_prefix_of_the_studio(operator: Client, settings: Any) -> None:
    factories.instance("running", workflow="orders", id="order-1")
    settings.ROOT_URLCONF = "tests.studio.instance.below"
    page = operator.get("/ops/workflows/orders/instances/order-1/").content.decode()
    assert 'data-panes="/ops/_f/workflows/orders/instances/order-1/steps/"' in page


def test_a_sensitive_output_is_masked_everywhere(operator: Client) -> None:
    instance = factories.instance("running")
    factories.step(instance, "token", output={"token": "s3cr3t"}, sensitive=True)
    page = page_of(operator, instance, "?step=token-1")
    assert "s3cr3t" not in page
    assert "Sensitive: only the workflow can read it." in page
    assert operator.get(f"{instance.get_absolute_url()}payload/step-1/").status_code == 404
    assert "s3cr3t" not in operator.get(f"/_f/live/?topic=instance:{instance.key}").content.decode()


def test_a_large_output_shows_its_beginning_and_a_download(operator: Client) -> None:
    value = {"rows": ["x" * 100] * 2_000}
    instance = factories.instance("complete", output=value)
    factories.step(instance, "load", output=value)
    for query in ("?step=result", "?step=load-1"):
        page = page_of(operator, instance, query)
        assert "This is the start of" in page
        assert ("… 1,900 more" in page) == (query == "?step=result")
        assert len(page) < 120_000
    answer = operator.get(f"{instance.get_absolute_url()}payload/output/")
    assert json.loads(answer.content) == value
    assert json.loads(operator.get(f"{instance.get_absolute_url()}payload/step-1/").content) == value


@pytest.mark.parametrize(
    "what",
    [
        "nothing",
        "step-0",
        "step-99999999999999999999",
        "step-3000000000",
        "event-1",
        "step-1x",
        "params-",
        "error",
    ],
)
def test_a_value_that_is_not_there_is_not_found(operator: Client, what: str) -> None:
    instance = factories.instance("running")
    assert operator.get(f"{instance.get_absolute_url()}payload/{what}/").status_code == 404


def test_the_payload_of_another_instances_event_is_not_found(operator: Client) -> None:
    mine, other = factories.instance(), factories.instance()
    event = factories.event(other, payload={"x": 1})
    assert operator.get(f"{mine.get_absolute_url()}payload/event-{event.key}/").status_code == 404
    assert operator.get(f"{other.get_absolute_url()}payload/event-{event.key}/").status_code == 200


def test_a_value_that_cannot_be_read_does_not_break_the_page(operator: Client) -> None:
    """A number of 4,301 digits that came in some other way."""
    from django.db import connection

    instance = factories.instance("running")
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO engine_event (instance_id, type, payload, received_at)"
            " VALUES (%s, 'odd', %s::json, clock_timestamp())",
            [instance.key, "1" * 4_301],
        )
    assert "1 event kept" in page_of(operator, instance)
    assert "11111…" in page_of(operator, instance, "?tab=activity")


def test_hundreds_of_steps_cost_no_more_questions_than_one(
    operator: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    instance = factories.instance("running")
    start = timezone.now()
    steps = [
        Step(
            instance_id=instance.key,
            generation=1,
            seq=n,
            delivery=n,
            attempts=1,
            kind="do",
            name=f"step-{n}",
            count=1,
            status="complete",
            started_at=start + timedelta(milliseconds=n),
            finished_at=start + timedelta(milliseconds=n + 1),
            output=n,
        )
        for n in range(1, SHOWN + 21)
    ]
    Step.objects.bulk_create(steps)
    factories.attempts_of(steps)
    with django_assert_max_num_queries(25):
        page = page_of(operator, instance)
    assert f"{WINDOW} of {SHOWN + 20} steps" in page
    assert page.count(f'<a href="?upto={WINDOW}">first</a>') == 1
    shown = [int(seq) for seq in re.findall(r'<tr id="s-(\d+)"', page)]
    assert shown == list(range(SHOWN + 21 - WINDOW, SHOWN + 21))
    earlier = page_of(operator, instance, "?upto=20")
    assert 'id="s-1"' in earlier
    assert 'id="s-21"' not in earlier
    assert f"topic=instance:{instance.key}&amp;upto=20" in earlier
    # One that is not among the newest is shown with its neighbours, and its pane.
    pane = page_of(operator, instance, "?step=step-7-1")
    assert '<h2 id="pane-title" class="mono">step-7</h2>' in pane
    assert 'id="s-57"' in pane


def test_steps_are_found_by_name_and_by_what_happened_to_them(operator: Client) -> None:
    instance = factories.instance("running")
    factories.step(instance, "reserve")
    retried = factories.step(instance, "charge")
    for status in ("errored", "complete"):
        factories.attempt(retried, status)
    factories.step(instance, "notify", "errored")
    for query, found in (("find=SERVE", ["1"]), ("only=retried", ["2"]), ("only=failed", ["3"])):
        page = page_of(operator, instance, f"?{query}")
        assert re.findall(r'<tr id="s-(\d+)"', page) == found
        assert f"topic=instance:{instance.key}&amp;{query}" in page


def test_the_table_keeps_its_roles_where_it_is_laid_out_as_something_else(operator: Client) -> None:
    """On a narrow page, its rows are blocks and grids: a browser no longer derives the roles from the elements."""
    page = page_of(operator, factories.retrying(), "?step=charge_card-1")
    table = page[page.index("<table") : page.index("</table>")]
    roles = {"table": "table", "thead": "rowgroup", "tbody": "rowgroup", "tr": "row", "td": "cell"}
    found = re.findall(r"<(table|thead|tbody|tr|td|th)\b([^>]*)>", table)
    assert {name for name, _ in found} == {*roles, "th"}
    for name, rest in found:
        role = roles.get(name) or ("rowheader" if 'scope="row"' in rest else "columnheader")
        assert f'role="{role}"' in rest, f"<{name}{rest}>"


def test_the_first_and_the_last_row_have_what_came_in_and_out(operator: Client) -> None:
    instance = factories.instance("complete", params={"customer": "c-2210"}, output={"paid": True})
    factories.event(instance, "later")
    start = page_of(operator, instance, "?step=start")
    assert "1 not received yet" in start
    assert 'data-copy="{&quot;customer' in " ".join(start.split()).replace("{ &quot;", "{&quot;")
    assert "/payload/output/" in page_of(operator, instance, "?step=result")
    assert 'id="pane"' not in page_of(operator, instance)


def test_a_pane_is_a_fragment_of_its_own_and_the_same_as_in_the_page(operator: Client) -> None:
    instance = factories.retrying()
    fragment = operator.get(f"/_f{instance.get_absolute_url()}steps/2/pane/").content.decode()
    assert 'id="s-2-a3"' in fragment
    for what, status in (("99", 204), ("start", 200), ("result", 200)):
        answer = operator.get(f"/_f{instance.get_absolute_url()}steps/{what}/pane/")
        assert answer.status_code == status


def test_the_why_line_knows_of_open_steps_that_the_page_does_not_show(operator: Client) -> None:
    instance = factories.instance("waiting")
    for n in range(3):
        factories.step(instance, f"step-{n}")
    factories.step(instance, "approval", "waiting", "event", started_at=factories.ago(minutes=1))
    page = operator.get(f"{instance.get_absolute_url()}?upto=2").content.decode()
    assert "Waits for event <code>approval</code> at step 4" in page
    assert 'id="s-4"' not in page


def test_an_earlier_generation_is_not_mixed_in(operator: Client) -> None:
    instance = factories.instance("running")
    factories.step(instance, "from-before")
    restart.restart(instance)
    assert "from-before" not in page_of(operator, instance)


def test_who_did_what_is_told(operator: Client) -> None:
    instance = factories.instance("paused")
    factories.deed(instance, "pause", "li", "provider down")
    page = page_of(operator, instance)
    assert re.search(r"Paused by li <time [^>]*>[^<]*</time>: “provider down”", page)


@pytest.mark.parametrize(
    "status",
    ["queued", "running", "waiting", "waiting_for_pause", "paused", "complete", "errored", "terminated"],
)
def test_every_state_has_a_page_and_every_id_on_it_is_unique(operator: Client, status: str) -> None:
    """A patch finds its place by its id: twice the same, and state moves to the wrong element."""
    instance = factories.instance(status, fence=2)
    first = factories.step(instance, "reserve")
    factories.attempt(first)
    factories.step(instance, "charge", "errored")
    factories.event(instance, "later", payload=1)
    factories.log(instance, "x", step_seq=1, attempt=1)
    factories.deed(instance, "pause")
    ids = re.findall(r'\sid="([^"]*)"', page_of(operator, instance))
    assert "" not in ids
    assert sorted(ids) == sorted(set(ids))


@pytest.mark.parametrize(("message", "is_repeated"), [("no seat left", False), ("no seat\nleft", True)])
def test_an_error_that_the_sentence_above_has_is_not_repeated(
    operator: Client, message: str, is_repeated: bool
) -> None:
    instance = factories.instance("errored", error={**factories.FAILURE, "message": message})
    page = page_of(operator, instance)
    result = page[page.index('id="result"') :]
    result = result[: result.index("</section>")]
    assert ("<strong>TimeoutError</strong>" in result) == is_repeated
    assert "Traceback" in result
    assert "no seat" in page[page.index('id="why"') : page.index('id="actions"')]
