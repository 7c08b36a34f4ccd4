"""An instance with many steps is read in parts, also when somebody looks for some of them."""

from __future__ import annotations

import html
import re

import pytest
from django.test import Client

from engine.models import Instance, Step
from studio.instance.window import SHOWN, WINDOW
from tests.studio import factories

pytestmark = pytest.mark.django_db

HALF = SHOWN + 20  # steps of each of two names


@pytest.fixture
def long() -> Instance:
    """Make an instance of many steps. Every other one is a `charge`, and of those every one is retried."""
    instance = factories.instance("running")
    now = factories.ago(minutes=9)
    steps = [
        Step(
            instance_id=instance.key,
            generation=1,
            seq=n,
            delivery=n,
            kind="do",
            name="charge" if n % 2 else "ship",
            count=(n + 1) // 2,
            status="complete",
            attempts=2 if n % 2 else 1,
            started_at=now,
            finished_at=now,
            output=n,
        )
        for n in range(1, 2 * HALF + 1)
    ]
    Step.objects.bulk_create(steps)
    factories.attempts_of(steps)
    return instance


def page_of(client: Client, instance: Instance, query: str = "") -> str:
    answer = client.get(f"{instance.get_absolute_url()}{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def shown(page: str) -> list[int]:
    return [int(seq) for seq in re.findall(r'<tr id="s-(\d+)"', page)]


def note(page: str) -> str:
    found = re.search(r'id="steps-note".*?</p>', page, re.DOTALL)
    return "" if found is None else " ".join(re.sub(r"<[^>]*>", "", found[0].partition(">")[2]).split())


def link(page: str, word: str) -> str:
    found = re.search(rf'<a href="([^"]*)"[^>]*>{word}</a>', page)
    assert found is not None, word
    return html.unescape(found[1])


def test_steps_that_somebody_looks_for_are_shown_in_parts(viewer: Client, long: Instance) -> None:
    page = page_of(viewer, long, "?find=charge&only=retried")
    numbers = list(range(1, 2 * HALF, 2))
    assert shown(page) == numbers[-WINDOW:]
    assert note(page) == f"{WINDOW} of {HALF} matching steps: first · earlier · newest · all {2 * HALF}"
    earlier = page_of(viewer, long, link(page, "earlier"))
    assert shown(earlier) == numbers[-2 * WINDOW : -WINDOW]
    assert shown(page_of(viewer, long, link(earlier, "later"))) == numbers[-WINDOW:]
    first = page_of(viewer, long, link(earlier, "first"))
    assert shown(first) == numbers[:WINDOW]
    assert shown(page_of(viewer, long, link(first, "newest"))) == numbers[-WINDOW:]
    assert "earlier</a>" not in first


def test_parts_follow_each_other_both_ways(viewer: Client, long: Instance) -> None:
    first = page_of(viewer, long, link(page_of(viewer, long), "first"))
    assert shown(first) == list(range(1, WINDOW + 1))
    assert shown(page_of(viewer, long, link(first, "later"))) == list(range(WINDOW + 1, 2 * WINDOW + 1))


def test_a_kind_of_steps_and_a_name_are_looked_for_together(viewer: Client, long: Instance) -> None:
    page = page_of(viewer, long, "?find=charge&unfold=1")
    assert link(page, "retried") == "?find=charge&only=retried&unfold=1"
    chosen = page_of(viewer, long, link(page, "retried"))
    assert link(chosen, "retried") == "?find=charge&unfold=1"
    form = chosen[chosen.index('role="search"') :]
    assert '<input type="hidden" name="only" value="retried">' in form
    assert '<input type="hidden" name="unfold" value="1">' in form


def test_what_matches_nothing_leads_back_to_all(viewer: Client, long: Instance) -> None:
    page = page_of(viewer, long, "?find=nope&only=slow")
    assert shown(page) == []
    assert note(page) == f"No step matches. Show all {2 * HALF}"
