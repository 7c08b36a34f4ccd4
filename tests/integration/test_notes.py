"""Notes: rows of the audit trail that change nothing of their instance."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, transaction

from engine import (
    BetweenStepsError,
    InstanceNotFoundError,
    InvalidNameError,
    InvalidValueError,
    LimitError,
    WorkflowStep,
    workflow,
)
from engine.models import Audit, Instance
from engine.steer import notes
from engine.values.states import InstanceStatus
from tests.stories import run_to_end
from tests.studio import factories

pytestmark = pytest.mark.django_db


def person(name: str, *, is_active: bool = True) -> object:
    return get_user_model().objects.create_user(name, is_active=is_active)


def row_of(instance: Instance) -> tuple[object, ...]:
    """Return the row of an instance with its version."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT ctid::text, i::text FROM engine_instance i WHERE key = %s", [instance.key])
        return tuple(cursor.fetchone())


@pytest.mark.parametrize("status", [*map(str, InstanceStatus)])
def test_a_note_is_added_in_any_status_and_changes_nothing_of_the_instance(status: str) -> None:
    instance = factories.instance(status)
    before = row_of(instance)
    note = instance.add_note("They called.\nThey will call again.", by="ana")
    assert row_of(instance) == before
    assert note == Audit.objects.latest("key")
    assert (note.verb, note.actor, note.reason) == ("note", "ana", "They called.\nThey will call again.")
    assert (note.before, note.after, note.outcome, note.data) == (status, status, "done", None)
    assert note.at == note.__class__.objects.get(pk=note.pk).at


def test_notes_stand_between_the_acts_in_the_order_of_time() -> None:
    instance = factories.instance("queued", by="")
    instance.add_note("first", by="ana")
    instance.pause(by="bo", reason="second")
    instance.add_note("third", by="cy")
    rows = Audit.objects.filter(instance_key=instance.key).order_by("key")
    assert [(row.verb, row.reason) for row in rows] == [
        ("note", "first"),
        ("pause", "second"),
        ("note", "third"),
    ]


def test_line_ends_are_those_of_unix_and_blanks_around_the_text_are_left_out() -> None:
    assert factories.instance("queued").add_note(" \n a\r\nb\rc \n").reason == "a\nb\nc"


def test_the_longest_note_is_stored_whole() -> None:
    assert factories.instance("queued").add_note("é" * 4000).reason == "é" * 4000


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", InvalidValueError),
        (" \r\n\t ", InvalidValueError),
        (7, InvalidValueError),
        ("a\0b", InvalidValueError),
        ("\ud800", InvalidValueError),
        ("x" * 4001, LimitError),
        ("x" * 1_000_000, LimitError),
    ],
)
def test_what_cannot_be_a_note_is_refused(text: str, error: type[Exception]) -> None:
    instance = factories.instance("queued", by="")
    with pytest.raises(error) as refused:
        instance.add_note(text, by="ana")
    assert refused.value.field == "text"  # type: ignore[attr-defined]
    assert not Audit.objects.exists()


def test_the_name_of_who_notes_is_checked() -> None:
    with pytest.raises(InvalidNameError):
        factories.instance("queued").add_note("x", by=" ")


def test_a_deleted_instance_takes_no_note() -> None:
    instance = factories.instance("complete")
    instance.add_note("kept")
    instance.delete()
    with pytest.raises(InstanceNotFoundError):
        instance.add_note("too late")
    assert [*Audit.objects.filter(verb="note").values_list("reason", flat=True)] == ["kept"]


@pytest.mark.parametrize(
    ("text", "mentions"),
    [
        ("@zoe please call @ana-b, and @zoe again", ["zoe", "ana-b"]),
        ("(@zoe) @zoe. @ana-b's order", ["zoe", "ana-b"]),
        ("write to x@zoe or zoe@example.com; @zoem @Zoe @gone @nobody @ @@", []),
        ("@li@example.com.", ["li@example.com"]),
        ("@dot. and @dot", ["dot.", "dot"]),
        ("@žofie", ["žofie"]),
    ],
)
def test_active_users_that_a_note_names_are_recorded_as_mentions(text: str, mentions: list[str]) -> None:
    for name in ("zoe", "ana-b", "li@example.com", "dot", "dot.", "žofie"):
        person(name)
    person("gone", is_active=False)
    note = factories.instance("queued").add_note(text)
    assert (note.mentions, note.data) == (mentions, {"mentions": mentions} if mentions else None)


def test_of_very_many_mentions_the_first_fifty_are_recorded() -> None:
    for n in range(60):
        person(f"p{n}")
    note = factories.instance("queued").add_note(" ".join(f"@p{n}" for n in range(60)))
    assert note.mentions == [f"p{n}" for n in range(50)]


def test_a_form_that_is_sent_twice_adds_one_note() -> None:
    instance = factories.instance("queued")
    first = notes.add_note(instance, "once", by="ana", form="f")
    assert notes.add_note(instance, "once", by="ana", form="f") == first
    assert notes.add_note(instance, "another", by="ana", form="f") != first
    assert notes.add_note(instance, "once", by="ana", form="g") != first


@pytest.mark.django_db(transaction=True)
def test_two_people_at_once_and_a_worker_that_holds_the_row_do_not_wait_for_each_other() -> None:
    instance = factories.instance("running")

    def add(name: str) -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '10s'")
            for n in range(20):
                instance.add_note(f"{name} {n}", by=name)
        finally:
            connection.close()

    with transaction.atomic(), ThreadPoolExecutor(2) as pool:
        Instance.objects.select_for_update(no_key=True).get(key=instance.key)
        list(pool.map(add, ("ana", "bo")))
    for name in ("ana", "bo"):
        said = Audit.objects.filter(verb="note", actor=name).order_by("key").values_list("reason", flat=True)
        assert [*said] == [f"{name} {n}" for n in range(20)]


@pytest.mark.django_db(transaction=True)
def test_a_form_that_is_sent_twice_at_once_adds_one_note() -> None:
    instance = factories.instance("queued")

    def add(_: int) -> int:
        try:
            return notes.add_note(instance, "once", by="ana", form="f").key
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        keys = set(pool.map(add, range(8)))
    assert [*Audit.objects.filter(verb="note").values_list("key", flat=True)] == [*keys]


@pytest.mark.django_db(transaction=True)
def test_a_handler_adds_notes_in_steps_only(engine_db: None) -> None:
    @workflow("noting")
    async def noting(step: WorkflowStep) -> str:
        instance = await step.do("find", lambda ctx: ctx.instance_id)
        with pytest.raises(BetweenStepsError):
            Instance(workflow="noting", id=instance).add_note("no")

        async def add() -> str:
            found = await Instance.objects.aget(workflow="noting", id=instance)
            return (await found.aadd_note("from a step", by="noting")).reason

        return await step.do("add", add)

    assert run_to_end(noting.start()).result() == "from a step"
