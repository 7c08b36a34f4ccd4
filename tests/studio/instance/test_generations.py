"""Every generation of an instance stays readable, complete and unchanged (guarantee 14)."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from engine.models import Instance
from engine.steer import restart
from tests.studio import factories

pytestmark = pytest.mark.django_db
BROKEN = {
    "type": "CardError",
    "message": "the card was refused",
    "details": {},
    "traceback": "",
    "step": "charge",
}


def restarted(status: str = "running", **given: Any) -> Instance:
    """Make an instance in its second generation: it keeps two steps of the first one, which failed at the third."""
    instance = factories.instance("errored", id="order-1", error=BROKEN)
    factories.attempt(factories.step(instance, "reserve", started_at=factories.ago(days=3)))
    wait = factories.step(
        instance,
        "approved",
        kind="event",
        started_at=factories.ago(days=3),
        output=payload("approved", "first"),
    )
    factories.event(instance, "approved", {"by": "first"}, **taken(wait))
    charge = factories.step(instance, "charge", "errored", error=BROKEN)
    factories.attempt(charge, "errored", error=BROKEN)
    factories.log(instance, "said in the first", step_seq=1)
    restart.restart(instance, "charge", by="ana", reason="the card is good")
    factories.attempt(factories.step(instance, "charge", seq=3, output={"charged": "again"}), number=1)
    factories.log(instance, "said in the second", step_seq=3)
    put(instance, status, **given)
    return instance


def put(instance: Instance, status: str, **given: Any) -> None:
    """Bring it into a status, with what belongs to that."""
    like = factories.instance(status)
    names = (
        "status",
        "wake_at",
        "owner",
        "started_at",
        "finished_at",
        "output",
        "error",
        "waiting_for",
        "paused_at",
    )
    fields = {name: getattr(like, name) for name in names} | given
    Instance.objects.filter(key=like.key).delete()
    Instance.objects.filter(key=instance.key).update(**fields)
    instance.refresh()


def payload(type: str, by: str) -> dict[str, Any]:
    """Return what a wait records of an event."""
    return {"type": type, "payload": {"by": by}}


def taken(step: Any) -> dict[str, Any]:
    return {"state": "consumed", "consumed_by": step.seq, "consumed_generation": step.generation}


def page_of(client: Client, instance: Instance, query: str = "") -> str:
    answer = client.get(instance.get_absolute_url() + query)
    assert answer.status_code == 200
    return answer.content.decode()


def step_of(client: Client, instance: Instance, seq: int, query: str = "") -> str:
    """Return the row of a step, with its pane."""
    page = page_of(client, instance, f"?step={seq}{query}")
    return re.split(r'<tr id="(?:s-\d+|result)" class="row', page)[seq]


def test_one_that_was_never_restarted_says_nothing_of_generations(viewer: Client) -> None:
    page = page_of(viewer, factories.instance())
    assert 'id="generations" class="generations" hidden>' in page
    assert "Generation" not in page


def test_the_page_tells_how_its_generation_began(viewer: Client) -> None:
    page = page_of(viewer, restarted())
    assert "Restarted by ana " in page
    assert "from step <code>charge</code> (2 steps kept): “the card is good”" in page
    assert 'href="?generation=1"' in page
    assert 'data-generation="2"' in page


def test_how_long_it_took_is_said_of_the_generation_alone(viewer: Client) -> None:
    """One that keeps steps has the start of the first."""
    ended = timezone.now() + timedelta(minutes=10)
    page = page_of(viewer, restarted("complete", started_at=factories.ago(days=3), finished_at=ended))
    assert re.search(r"Completed in <time [^>]*>\d m \d+ s</time>", page)


def test_a_list_and_a_page_say_the_same_of_how_long_it_took(viewer: Client) -> None:
    """A restart that keeps steps keeps the time at which the first of them began."""
    ended = timezone.now() + timedelta(minutes=10)
    instance = restarted("complete", started_at=factories.ago(days=3), finished_at=ended)
    page = page_of(viewer, instance)
    said = re.search(r"Completed in <time [^>]*>([^<]+)</time> with", page)
    assert said is not None
    head = re.search(r'<span class="muted"><time [^>]*>([^<]+)</time></span>\s*<div class="end', page)
    assert head is not None
    list_page = viewer.get("/instances/").content.decode()
    row = re.search(r'<td class="span">\s*<time [^>]*>([^<]+)</time>\s*</td>', list_page)
    assert row is not None
    assert [head[1], row[1]] == [said[1], said[1]]


def test_a_list_and_a_page_count_from_the_same_moment(viewer: Client) -> None:
    instance = restarted("running", started_at=factories.ago(days=3))
    since = re.findall(r'data-kind="since" datetime="([^"]+)"', page_of(viewer, instance))
    assert since[0] in viewer.get("/instances/").content.decode()
    assert timezone.now() - datetime.fromisoformat(since[0]) < timedelta(minutes=1)


def test_what_was_kept_is_marked_and_has_the_attempts_with_which_it_ran(viewer: Client) -> None:
    instance = restarted()
    page = page_of(viewer, instance)
    first = step_of(viewer, instance, 1)
    assert "kept from generation 1" in first
    assert 'id="s-1-a1"' in first
    assert 'href="?generation=1#s-1"' in first
    assert "kept from" not in step_of(viewer, instance, 3)
    assert page.count('class="kept"') == 4  # two steps, each in its lane and in words
    assert (
        "// " not in page[page.index('id="timeline"') : page.index('id="steps"')]
    )  # three days are not drawn


def test_an_event_stands_at_the_wait_that_took_it_and_at_no_other_of_its_number(viewer: Client) -> None:
    instance = restarted()
    assert "Received" in step_of(viewer, instance, 2)  # kept with what it took
    assert "generation=1&amp;upto=2#s-2" in page_of(viewer, instance, "?tab=activity&kind=events")
    fresh = factories.step(instance, "other", kind="event", seq=4, output=payload("other", "second"))
    late = factories.event(instance, "other", {"by": "second"}, **taken(fresh))
    assert f"payload/event-{late.key}/" in step_of(viewer, instance, 4)
    restart.restart(instance)
    assert f"payload/event-{late.key}/" not in page_of(viewer, instance, "?generation=1")
    assert f"payload/event-{late.key}/" in step_of(viewer, instance, 4, "&generation=2")


def test_an_earlier_one_is_whole_and_only_to_be_read(operator: Client) -> None:
    instance = restarted("complete", output={"generation": "two"})
    page = page_of(operator, instance, "?generation=1&step=3")
    assert "said in the first" in page_of(operator, instance, "?generation=1&step=1")
    assert "This is generation 1 as it ended. It is read-only." in page
    assert "the card was refused" in page
    assert "said in the second" not in page
    assert "charged" not in page
    assert 'id="s-3-a1"' in page
    assert "Restart from here" not in page
    assert '<div id="actions" class="steer" hidden>' in page
    assert "<dialog id=" not in page.replace('<dialog id="keys"', "")
    assert "hx-ws:connect" not in page
    now = page_of(operator, instance)
    assert "the card was refused" not in now
    assert now.count("Restart from here") == 0


def test_one_that_was_open_says_that_the_restart_ended_it(viewer: Client) -> None:
    instance = restarted("waiting")
    restart.restart(instance, by="li")
    page = page_of(viewer, instance, "?generation=2")
    assert "It was waiting when generation 3 began, which ended it." in page
    assert "Restarted by li" in page
    assert "from the start" in page


def test_who_terminated_one_is_not_said_of_another(viewer: Client) -> None:
    instance = restarted("paused")
    instance.terminate(by="li", reason="enough")
    assert "Terminated by li" in page_of(viewer, instance)
    restart.restart(instance, by="ana")
    put(instance, "terminated", error={"type": "WorkflowFailed", "message": "no"})
    assert "The workflow ended itself: no." in page_of(viewer, instance)
    assert "Terminated by li" in page_of(viewer, instance, "?generation=2")
    assert "Terminated by" not in page_of(viewer, instance, "?generation=1")


def test_the_address_of_a_value_shows_the_same_for_good(viewer: Client) -> None:
    instance = restarted("complete", output={"generation": "two"})
    where = f"{instance.get_absolute_url()}payload"
    first = factories.step(instance, "early", generation=1, seq=9, output={"of": 1})
    factories.step(instance, "late", generation=2, seq=9, output={"of": 2})
    assert viewer.get(f"{where}/step-{first.seq}/").content == b'{"of":1}'
    assert viewer.get(f"{where}/step-{first.seq}-g2/").content == b'{"of":2}'
    assert viewer.get(f"{where}/output/").content == b'{"generation":"two"}'
    assert b"CardError" in viewer.get(f"{where}/error-g1/").content
    assert viewer.get(f"{where}/error-g2/").status_code == 404
    assert "/payload/step-9-g2/" in page_of(viewer, instance, "?step=9")
    assert "/payload/step-9/" in page_of(viewer, instance, "?generation=1&step=9")


def test_what_is_folded_is_of_the_generation_that_is_shown(viewer: Client) -> None:
    instance = restarted()
    for generation, name in ((1, "item-of-first"), (2, "item-of-second")):
        factories.step(instance, "all", kind="map", seq=10, generation=generation, options={"items": 1})
        factories.step(instance, name, seq=11, parent=10, generation=generation)
    where = f"/_f{instance.get_absolute_url()}steps/10/"
    assert "item-of-second" in viewer.get(where).content.decode()
    first = viewer.get(f"{where}?generation=1").content.decode()
    assert "item-of-first" in first
    assert "steps/10/?generation=1&amp;page=1" in first or "steps/10/?generation=1&page=1" in first
    page = page_of(viewer, instance, "?generation=1&open=10")
    assert "item-of-first" in page
    assert "item-of-second" not in page


def test_the_children_of_a_kept_step_are_shown(viewer: Client) -> None:
    instance = factories.instance("running")
    factories.child(instance, "complete", name="kept", id="kept-child")
    factories.child(instance, "complete", name="left", id="left-child")
    restart.restart(instance, "left", kind="child", by="ana")
    page = page_of(viewer, instance)
    assert "kept-child" in page
    assert "left-child" not in page
    child = page_of(viewer, Instance.objects.get(id="left-child"))
    assert f"{instance.get_absolute_url()}?generation=1#s-2" in child


@pytest.mark.parametrize(
    "query", ["?generation=3", "?generation=0", "?generation=99999999999", "?generation=2&x=1"]
)
def test_what_is_no_earlier_one_is_not_found_and_the_newest_is_the_present(
    viewer: Client, query: str
) -> None:
    instance = restarted()
    answer = viewer.get(instance.get_absolute_url() + query)
    assert answer.status_code == (200 if "=2" in query else 404)
    assert "only to be read" not in answer.content.decode()


def test_nonsense_shows_the_present(viewer: Client) -> None:
    assert "hx-ws:connect" in page_of(viewer, restarted(), "?generation=first")


def test_thirty_of_them_cost_as_many_questions_as_two(
    viewer: Client, django_assert_max_num_queries: Any
) -> None:
    instance = restarted()
    for _ in range(29):
        restart.restart(instance)
    with django_assert_max_num_queries(32):
        page = page_of(viewer, instance)
    assert page.count('href="?generation=') >= 30


def test_rollbacks_stand_on_the_timeline(viewer: Client) -> None:
    instance = factories.instance("errored", rollback="complete")
    undoable = {"max_attempts": 5, "rollback": {"max_attempts": 2}}
    step = factories.step(instance, "charge", options=undoable, rollback="complete")
    factories.attempt(step)
    factories.attempt(step, phase="rollback", number=1, started_at=factories.ago(seconds=30))
    page = page_of(viewer, instance)
    assert page.count('<rect class="undo"') == 1
    assert "rollback attempt 1: complete" in page


def test_an_answered_request_leads_to_the_generation_that_asked(operator: Client) -> None:
    instance = factories.instance("waiting", id="order-1")
    asked = factories.request(instance)
    ref = f"{instance.key}-1-{asked.seq}"
    restart.restart(instance)
    page = operator.get("/approvals/", {"box": "done", "r": ref}).content.decode()
    assert f'href="{instance.get_absolute_url()}?generation=1#s-{asked.seq}"' in page
