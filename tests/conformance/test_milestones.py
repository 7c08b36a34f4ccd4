"""Milestones are identified by their message."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from engine import WorkflowStep, workflow, workflows
from engine.models import Instance, Step
from engine.replay.step import workflow_step
from tests.records import steps
from tests.stories import run_to_end, running_shift, wait_for

LONG = "x" * 300


def said(instance: Instance) -> list[Any]:
    """Return the messages of the milestones, in the order in which they were reached."""
    rows = Step.objects.filter(instance=instance, kind="progress").order_by("delivery")
    return [row.output["message"] for row in rows]


@contextmanager
def older_engine(is_there: bool) -> Iterator[None]:
    """Record milestones as earlier versions did: all under one name."""
    with pytest.MonkeyPatch.context() as patch:
        if is_there:
            patch.setattr(workflow_step, "milestone_name", lambda message: "progress")
        yield


def deploy(*messages: str, parks_after: int, identity: str = "occurrence") -> Any:
    """Declare the workflow again: it reports these messages, and waits after some of them."""
    workflows._workflows.pop("story", None)

    @workflow(name="story", step_identity=identity)  # type: ignore[arg-type]
    async def story(step: WorkflowStep) -> None:
        for number, message in enumerate(messages):
            if number == parks_after:
                await step.wait_for_event("go")
            await step.progress(message, number)

    return story


def run_until_it_waits(story: Any, is_old: bool) -> Instance:
    instance: Instance = story.start()
    with older_engine(is_old), running_shift():
        wait_for(instance, "waiting")
    return instance


def go_on(instance: Instance) -> Instance:
    instance.send_event("go")
    return run_to_end(instance)


@pytest.mark.parametrize("is_old", [False, True], ids=["", "recorded under one name"])
@pytest.mark.parametrize("identity", ["occurrence", "name"])
def test_each_is_recorded_once_whatever_the_identity_of_steps_is(identity: str, is_old: bool) -> None:
    """A second call of the same kind and name returns the first's result: these have other names"""
    messages = ["a", "b", LONG + "1", LONG + "2", "progress", "", " ", "a\nb", "a b", "a\x07b", "reprise:x"]
    instance = run_until_it_waits(
        deploy(*messages, "last", parks_after=len(messages), identity=identity), is_old
    )
    assert said(instance) == (messages[:1] if is_old and identity == "name" else messages)
    go_on(instance)
    assert (instance.status, said(instance), instance.unreached) == ("complete", [*messages, "last"], [])


@pytest.mark.parametrize("is_old", [False, True], ids=["", "recorded under one name"])
@pytest.mark.parametrize(("identity", "expected"), [("occurrence", 3), ("name", 1)])
def test_what_says_the_same_is_the_same_as_steps_of_one_name_are(
    identity: str, expected: int, is_old: bool
) -> None:
    instance = run_until_it_waits(deploy("again", "again", "again", parks_after=2, identity=identity), is_old)
    go_on(instance)
    assert (instance.status, said(instance)) == ("complete", ["again"] * expected)


@pytest.mark.parametrize("is_old", [False, True], ids=["", "recorded under one name"])
def test_new_code_may_insert_reorder_and_drop_them(is_old: bool) -> None:
    """Guarantee 3"""
    instance = run_until_it_waits(deploy("first", "dropped", "last", parks_after=2), is_old)
    deploy("inserted", "first", "last", parks_after=2)
    go_on(instance)
    assert instance.status == "complete"
    assert said(instance) == ["first", "dropped", "inserted", "last"]
    [dropped] = instance.unreached
    assert Step.objects.get(instance=instance, seq=dropped).output["message"] == "dropped"


def test_a_page_shows_what_was_said_also_of_those_that_have_one_name(client: Client) -> None:
    """Neither the page nor the command line shows "progress #2"."""
    messages = ("Half of it", "Nearly all of it")
    instance = run_until_it_waits(deploy(*messages, "end", parks_after=2), is_old=True)
    client.force_login(User.objects.create_superuser("ada"))
    page = client.get(instance.get_absolute_url()).content.decode()
    told = StringIO()
    call_command("workflow", "show", str(instance), stdout=told)
    for text in (page, told.getvalue()):
        assert all(message in text for message in messages)
        assert "progress #2" not in text


def test_their_message_is_their_name_where_it_can_be_one() -> None:
    instance = run_to_end(deploy("Half of it is done", LONG, "progress", parks_after=9).start())
    [first, second, third] = [name for _, name, _, _ in steps(instance)]
    assert first == "Half of it is done"
    assert second.startswith("x" * 200 + " (")
    assert third.startswith("progress (")
