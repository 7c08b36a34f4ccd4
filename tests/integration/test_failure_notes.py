"""Notes on groups of failures."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, transaction

from engine import FailureNotFoundError, InvalidValueError, LimitError, WorkflowStep, failures, workflow
from engine.models import Audit
from engine.steer import failure_notes
from tests.stories import run_to_end

pytestmark = [pytest.mark.usefixtures("engine_db", "own_registry")]


def failed(name: str = "order") -> failures.FailureGroup:
    """Return the group of a workflow of this name, after a failure of its only step."""

    def charge() -> None:
        raise ConnectionError("no answer")

    @workflow(name=name)
    async def order(step: WorkflowStep) -> None:
        await step.do("charge", charge, max_attempts=1)

    run_to_end(order.start())
    (found,) = failures.groups(workflow=name).groups
    return found


def test_a_note_is_a_row_of_the_audit_trail_and_changes_nothing_of_the_group() -> None:
    group = failed()
    get_user_model().objects.create_user("ben")
    row = failures.add_note(group.fingerprint, " Looking again at 03:45.\r\n@ben @nobody ", by="ana")
    assert (row.verb, row.actor, row.workflow, row.instance_id, row.is_note) == (
        "error-note",
        "ana",
        "order",
        "",
        True,
    )
    assert (row.reason, row.mentions) == ("Looking again at 03:45.\n@ben @nobody", ["ben"])
    assert failures.group(group.fingerprint) == group


def test_what_was_said_and_decided_is_told_with_the_newest_first() -> None:
    group, other = failed(), failed("refund")
    failures.add_note(other.fingerprint, "of another group")
    failures.add_note(group.fingerprint, "first", by="ana")
    failures.ignore(group.fingerprint, by="ben", reason="known", count=3)
    failures.reopen(group.fingerprint, by="ana")
    failures.add_note(group.fingerprint, "last", by="ana")
    told = failures.told([group.fingerprint])
    assert [(row.verb, row.reason) for row in told] == [
        ("error-note", "last"),
        ("error-reopen", ""),
        ("error-ignore", "known"),
        ("error-note", "first"),
    ]
    assert [row.reason for row in failures.told([group.fingerprint], limit=1)] == ["last"]
    assert failures.told(["0123456789abcdef"]) == []


def test_what_was_said_of_several_groups_at_once_is_told_once() -> None:
    both = [failed(name).fingerprint for name in ("order", "refund")]
    for text in ("one", "two"):
        with transaction.atomic():
            for fingerprint in both:
                failures.add_note(fingerprint, text, by="ana")
    assert Audit.objects.filter(verb="error-note").count() == 4
    assert [row.reason for row in failures.told(both)] == ["two", "one"]
    assert [row.reason for row in failures.told(both, limit=1)] == ["two"]


def test_a_form_that_is_sent_twice_is_one_note() -> None:
    group = failed()
    rows = [failure_notes.add_note(group.fingerprint, "once", by="ana", form="f-1") for _ in range(2)]
    assert rows[0].key == rows[1].key
    failure_notes.add_note(group.fingerprint, "another", by="ana", form="f-1")
    failure_notes.add_note(group.fingerprint, "once", by="ana", form="f-2")
    assert [row.reason for row in failures.told([group.fingerprint])] == ["once", "another", "once"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", InvalidValueError),
        (" \n", InvalidValueError),
        ("\0", InvalidValueError),
        ("x" * 4_001, LimitError),
    ],
)
def test_a_note_that_cannot_be_stored_is_refused(text: str, error: type[Exception]) -> None:
    group = failed()
    with pytest.raises(error):
        failures.add_note(group.fingerprint, text)
    with pytest.raises(FailureNotFoundError):
        failures.add_note("0123456789abcdef", "nothing fails like this")
    assert not Audit.objects.filter(verb="error-note").exists()


def test_notes_are_found_by_their_index() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        found = Audit.objects.about_errors(["0123456789abcdef"]).order_by("-key")
        plan = found.explain()
    assert "engine_audit_error" in plan, plan
