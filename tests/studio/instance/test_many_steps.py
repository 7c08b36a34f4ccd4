"""An instance with many steps is read in parts, also when somebody looks for some of them."""

from __future__ import annotations

import html
import re
from datetime import timedelta

import pytest
from django.test import Client

from engine.models import Instance, Step
from studio.instance.steps.minimap import PARTS
from studio.instance.window import SHOWN, WINDOW
from tests.studio import factories

pytestmark = pytest.mark.django_db

HALF = SHOWN + 20  # steps of each of two names


@pytest.fixture
def long() -> Instance:
    """Make an instance of many steps. Every other one is a `charge`, and of those every one is retried."""
    return made_long()


def made_long(*, failed: int = 0, slow: int = 0) -> Instance:
    """Make one in which the steps of these numbers failed, or took two minutes."""
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
            status="errored" if n == failed else "complete",
            attempts=2 if n % 2 else 1,
            started_at=now,
            finished_at=now + timedelta(minutes=2 if n == slow else 0),
            output=None if n == failed else n,
            error=factories.FAILURE if n == failed else None,
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


def places(page: str) -> list[tuple[str, float]]:
    """Return the marks of the map with their places in percent."""
    found = re.findall(r'<(?:rect|circle) class="(failed|slow)" c?x="([0-9.]+)%"', page)
    return [(mark, float(x)) for mark, x in found]


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


def test_a_map_of_all_steps_marks_the_failed_and_the_slow_and_leads_to_them(viewer: Client) -> None:
    long = made_long(failed=200, slow=2 * HALF)
    page = page_of(viewer, long)
    assert [(mark, int(x * 2 * HALF / 100) // 4) for mark, x in places(page)] == [
        ("failed", 49),
        ("slow", 109),
    ]
    start = page.index('id="minimap"')
    links = re.findall(r'<a href="([^"]*)"([^>]*)', page[start : page.index("</nav>", start)])
    assert len(links) == PARTS
    assert [href for href, _ in links if "step=" in href] == ["?step=200#s-200"]
    assert [href for href, rest in links if "aria-current" in rest] == [f"?upto={2 * HALF}"]
    assert sum("some slow" in rest for _, rest in links) == 1
    assert 200 in shown(page_of(viewer, long, "?step=200"))


def test_there_is_no_map_of_steps_that_are_all_shown_or_looked_for(viewer: Client, long: Instance) -> None:
    few = factories.instance("running")
    factories.step(few, "reserve")
    assert 'id="minimap"' not in page_of(viewer, few)
    assert 'id="minimap"' not in page_of(viewer, long, "?find=charge")
    assert places(page_of(viewer, long)) == []


def test_what_matches_nothing_leads_back_to_all(viewer: Client, long: Instance) -> None:
    page = page_of(viewer, long, "?find=nope&only=slow")
    assert shown(page) == []
    assert note(page) == f"No step matches. Show all {2 * HALF}"
