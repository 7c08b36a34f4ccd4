"""The pause of a workflow: what is recorded, what is released, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from engine import InvalidValueError, LimitError, UnknownWorkflowError, pauses
from engine.models import Audit, Instance, PauseRow
from engine.pauses import Resumed
from tests.integration.rows import row_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _instances() -> None:
    """Make five instances, which became due in the order of their ids, and one of another workflow."""
    for number in range(5):
        due("one", f"i{number}", seconds=50 - number)
    due("other", "o", seconds=60)


def due(workflow: str, id: str, *, seconds: float, **values: Any) -> Instance:
    """Write an instance that has been due for so long."""
    return row_of(workflow=workflow, id=id, wake_at=timezone.now() - timedelta(seconds=seconds), **values)


def released() -> list[str]:
    """Return the ids of what the pause of its workflow does not hold."""
    row = PauseRow.objects.get(workflow="one")
    return [*Instance.objects.filter(released_in=row.key).order_by("id").values_list("id", flat=True)]


def trail() -> list[tuple[Any, ...]]:
    rows = Audit.objects.order_by("key")
    return [*rows.values_list("verb", "workflow", "actor", "before", "after", "reason", "data")]


def test_a_pause_says_who_since_when_and_why_and_a_second_one_changes_nothing() -> None:
    found = pauses.pause("one", by="ana", reason="The bank is down.")
    assert (found.workflow, found.paused_by, found.reason) == ("one", "ana", "The bank is down.")
    assert found.released == 0
    assert timezone.now() - found.paused_at < timedelta(minutes=1)
    assert pauses.pause("one", by="ben", reason="Me, too.") == found
    assert pauses.paused() == [found] == pauses.paused(["one", "other"])
    assert pauses.paused(["other"]) == []
    assert trail() == [("workflow-pause", "one", "ana", "active", "paused", "The bank is down.", None)]


def test_a_program_need_not_say_who_it_is() -> None:
    assert (pauses.pause("one").paused_by, pauses.pause("one").reason) == ("", "")


def test_a_resume_ends_the_pause_and_says_how_many_were_held() -> None:
    pauses.pause("one")
    assert pauses.resume("one", by="ben", reason="It is up.") == Resumed(
        "one", released=5, held=0, is_paused=False
    )
    assert pauses.paused() == []
    assert trail()[1:] == [
        ("workflow-resume", "one", "ben", "paused", "active", "It is up.", {"released": 5})
    ]


def test_a_workflow_that_is_not_paused_is_not_resumed() -> None:
    for count in (None, 3):
        assert pauses.resume("one", count=count) == Resumed("one", released=0, held=0, is_paused=False)
    assert trail() == []


def test_with_a_count_the_oldest_are_released_and_the_workflow_stays_paused() -> None:
    pauses.pause("one")
    assert pauses.resume("one", count=2, by="ben") == Resumed("one", released=2, held=3, is_paused=True)
    assert released() == ["i0", "i1"]
    assert pauses.resume("one", count=1) == Resumed("one", released=1, held=2, is_paused=True)
    assert released() == ["i0", "i1", "i2"]
    assert pauses.paused()[0].released == 3
    assert trail()[1:] == [
        ("workflow-resume", "one", "ben", "paused", "paused", "", {"count": 2, "released": 2}),
        ("workflow-resume", "one", "", "paused", "paused", "", {"count": 1, "released": 1}),
    ]
    assert pauses.resume("one", count=9) == Resumed("one", released=2, held=0, is_paused=True)
    assert pauses.resume("one", count=9) == Resumed("one", released=0, held=0, is_paused=True)
    assert len(trail()) == 4


def test_what_is_not_due_is_not_released() -> None:
    row_of(workflow="one", id="later", status="waiting", waiting_for="sleep", wake_at=soon())
    pauses.pause("one")
    assert pauses.resume("one", count=9).released == 5
    assert "later" not in released()


def test_a_later_pause_holds_again_what_an_earlier_one_had_released() -> None:
    pauses.pause("one")
    pauses.resume("one", count=2)
    pauses.resume("one")
    pauses.pause("one")
    assert released() == []
    assert pauses.resume("one", count=1) == Resumed("one", released=1, held=4, is_paused=True)


@pytest.mark.parametrize("act", [pauses.pause, pauses.resume])
def test_an_unknown_workflow_is_refused(act: Callable[[str], object]) -> None:
    for name in ("on", "", "one\0", "x" * 65):
        with pytest.raises(UnknownWorkflowError, match="There is no workflow"):
            act(name)
    assert trail() == []


def test_a_workflow_that_is_nowhere_but_in_its_pause_can_be_resumed() -> None:
    pauses.pause("one")
    Instance.objects.filter(workflow="one").delete()
    assert pauses.resume("one") == Resumed("one", released=0, held=0, is_paused=False)


@pytest.mark.parametrize("count", [0, -1, 1_000_001, True, 1.0, "3"])
def test_a_count_that_makes_no_sense_is_refused_and_named(count: Any) -> None:
    pauses.pause("one")
    with pytest.raises(InvalidValueError) as caught:
        pauses.resume("one", count=count)
    assert str(caught.value) == (
        f"The count is refused. At $: It is {count!r}, but must be a whole number from 1 to 1,000,000."
    )
    assert caught.value.field == "count"
    assert released() == []


def test_a_reason_that_cannot_be_stored_is_refused() -> None:
    with pytest.raises(LimitError):
        pauses.pause("one", reason="x" * 2_001)
    with pytest.raises(InvalidValueError):
        pauses.pause("one", reason="\0")
    assert pauses.paused() == []


def test_what_is_rolled_back_leaves_no_pause() -> None:
    with transaction.atomic():
        pauses.pause("one")
        transaction.set_rollback(True)
    assert pauses.paused() == []
    assert trail() == []


def soon() -> Any:
    return timezone.now() + timedelta(hours=1)
