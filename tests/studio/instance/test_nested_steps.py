"""Steps within steps: indented, or folded into a row with counts that is opened a page at a time."""

from __future__ import annotations

import html
import re
import time
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from engine.models import Instance, Step
from studio.instance import queries as instance_queries
from studio.instance.steps import nested as nested_steps
from studio.instance.steps.lines import in_tree_order
from studio.instance.window import opened
from tests.studio import factories

pytestmark = pytest.mark.django_db


def map_of(
    instance: Instance, statuses: list[str], *, items: int | None = None, status: str = "running"
) -> Step:
    """Make a map whose items have these statuses, each with one attempt."""
    options = {"operation": "map", "items": items or len(statuses), "concurrency": 10}
    parent = factories.step(instance, "letters", status, "map", options=options)
    start = parent.started_at
    rows = [
        Step(
            instance_id=instance.key,
            generation=instance.generation,
            seq=parent.seq + n,
            parent=parent.seq,
            kind="do",
            name="letters",
            count=n,
            status=one,
            attempts=1,
            options={"max_attempts": 5},
            started_at=start + timedelta(milliseconds=n),
            finished_at=start + timedelta(milliseconds=n + 1) if one in ("complete", "errored") else None,
            output=n if one == "complete" else None,
            error=factories.FAILURE if one == "errored" else None,
        )
        for n, one in enumerate(statuses, start=1)
    ]
    Step.objects.bulk_create(rows)
    factories.attempts_of(rows)
    return parent


def page_of(client: Client, instance: Instance, query: str = "") -> str:
    answer = client.get(instance.get_absolute_url() + query)
    assert answer.status_code == 200
    return html.unescape(answer.content.decode())


def fragment_of(client: Client, instance: Instance, seq: int, page: int = 1) -> str:
    answer = client.get(f"/_f{instance.get_absolute_url()}steps/{seq}/?page={page}")
    assert answer.status_code == 200
    return html.unescape(answer.content.decode())


def rows_in(text: str) -> list[int]:
    return [int(seq) for seq in re.findall(r'<(?:li|tr) id="s-([0-9]+)"', text)]


def names_in(text: str) -> list[str]:
    return [name.strip() for name in re.findall(r'<span class="muted">[0-9]+</span> ([^<]+)</span>', text)]


def test_a_map_is_one_row_with_its_counts(operator: Client) -> None:
    instance = factories.instance("running")
    factories.step(instance, "fetch")
    map_of(instance, ["complete"] * 6 + ["errored"] + ["running"] * 2 + ["waiting"], items=20)
    page = page_of(operator, instance)
    assert rows_in(page) == [1, 2]
    said = re.sub(r"<[^>]+>", "", page[page.index('<span class="said">') :].split("</span>")[0])
    assert " ".join(said.split()) == "6 of 20 done · 1 failed · 2 running · 1 retrying"
    bars = re.findall(r'<rect class="s-(\w+)" x="([0-9.]+)%" width="([0-9.]+)%" height="8"/>', page)
    assert bars == [
        ("complete", "0.0", "30.0"),
        ("errored", "30.0", "5.0"),
        ("running", "35.0", "10.0"),
        ("retrying", "45.0", "5.0"),
    ]
    assert 'href="?open=2#s-2"' in page_of(operator, instance, "?step=2")


def test_a_map_of_which_nothing_has_begun_has_nothing_to_open(operator: Client) -> None:
    instance = factories.instance("running")
    map_of(instance, [], items=3)
    page = page_of(operator, instance)
    assert "0 of 3 done" in page
    assert 'id="pane"' in page
    assert 'id="g-1"' not in page


def test_what_is_within_is_opened_a_page_at_a_time_those_that_failed_first(operator: Client) -> None:
    instance = factories.instance("running")
    statuses = ["complete"] * 120
    statuses[70], statuses[90], statuses[100] = "errored", "waiting", "running"
    parent = map_of(instance, statuses)
    first = fragment_of(operator, instance, parent.seq)
    names = names_in(first)
    assert names[:4] == ["letters[70]", "letters[90]", "letters[100]", "letters[0]"]
    assert len(names) == nested_steps.PAGE
    assert "1 to 50 of 120" in first
    last = fragment_of(operator, instance, parent.seq, page=3)
    assert names_in(last) == [f"letters[{index}]" for index in (99, *range(101, 120))]
    assert "?open=1.2#s-1" in last
    assert rows_in(fragment_of(operator, instance, parent.seq, page=999)) == rows_in(last)


def test_an_address_opens_what_it_names_without_a_script(operator: Client) -> None:
    instance = factories.instance("running")
    parent = map_of(instance, ["complete"] * 60)
    page = page_of(operator, instance, "?open=1.2")
    assert 'id="pane"' in page
    assert names_in(page) == [f"letters[{index}]" for index in range(50, 60)]
    assert rows_in(page_of(operator, instance, "?open=77,x,1.99999,-3")) == [parent.seq]


def test_opened_steps_are_read_from_the_address() -> None:
    assert opened("5,9.2,x,,1.12345,99999999999") == {5: 1, 9: 2}


def test_no_such_step_is_a_404(operator: Client) -> None:
    instance = factories.instance("running")
    for seq in ("1", "999999999", "9999999999", "x"):
        assert operator.get(f"/_f{instance.get_absolute_url()}steps/{seq}/").status_code == 404


def test_nested_steps_stand_under_their_parent_with_lines_that_lead_to_them(operator: Client) -> None:
    instance = factories.instance("running")
    factories.step(instance, "outer", "running")
    factories.step(instance, "beside", "running")
    factories.step(instance, "first", parent=1, delivery=None)
    factories.step(instance, "deep", parent=3, delivery=None)
    factories.step(instance, "second", parent=1, delivery=None)
    page = page_of(operator, instance)
    assert rows_in(page) == [1, 3, 4, 5, 2]
    trees = [re.findall(r'<i class="(\w+)">', row) for row in re.split(r'<tr id="s-\d+" ', page)[1:]]
    assert trees == [[], ["branch"], ["through", "last"], ["last"], []]


def test_many_steps_within_one_are_folded_too(operator: Client) -> None:
    instance = factories.instance("running")
    factories.step(instance, "outer", "running")
    for _ in range(nested_steps.INLINE + 1):
        factories.step(instance, "nested", parent=1, delivery=None)
    page = page_of(operator, instance)
    assert rows_in(page) == [1]
    assert "21 of 21 done" in page
    assert len(rows_in(fragment_of(operator, instance, 1))) == 21


def test_steps_within_an_item_are_shown_with_it(operator: Client) -> None:
    instance = factories.instance("running")
    parent = map_of(instance, ["running"])
    factories.step(instance, "nested", parent=2, delivery=None)
    assert names_in(fragment_of(operator, instance, parent.seq)) == ["letters[0]", "nested"]


def test_lines_that_lead_to_steps() -> None:
    steps = [Step(seq=seq, parent=parent) for seq, parent in ((1, 0), (2, 1), (3, 2), (4, 1), (5, 9))]
    assert [(step.seq, lines) for step, lines in in_tree_order(steps)] == [
        (1, ()),
        (2, ("branch",)),
        (3, ("through", "last")),
        (4, ("last",)),
        (5, ()),
    ]


def test_a_thousand_items_cost_no_more_questions_and_are_drawn_fast(
    operator: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    instance = factories.instance("running")
    parent = map_of(instance, ["complete"] * 990 + ["errored"] * 2 + ["running"] * 8)
    with django_assert_max_num_queries(23):
        assert rows_in(page_of(operator, instance)) == [1]
    with django_assert_max_num_queries(12):
        fragment_of(operator, instance, parent.seq)
    few = factories.instance("running")
    map_of(few, ["complete"] * nested_steps.PAGE)
    for address in ("{}", "/_f{}steps/1/"):
        many_s, few_s = (fastest(operator, address.format(one.get_absolute_url())) for one in (instance, few))
        assert many_s < 4 * few_s


def fastest(client: Client, address: str) -> float:
    """Return the seconds that the quickest of some answers took: the machine may be busy."""
    taken = []
    for _ in range(5):
        began = time.perf_counter()
        client.get(address)
        taken.append(time.perf_counter() - began)
    return min(taken)


def test_an_error_of_an_item_leads_to_it(operator: Client) -> None:
    instance = factories.instance("errored", error={**factories.FAILURE, "step": "letters[1]", "attempts": 1})
    map_of(instance, ["complete", "errored", "complete"], status="errored")
    page = page_of(operator, instance)
    assert 'href="?upto=1&open=1#s-3-a1">step 3 <code>letters[1]</code>' in page
    found = instance_queries.of(instance.workflow, instance.id).origin
    assert found is not None
    assert (found.step.seq, found.name, found.is_shown) == (3, "letters[1]", False)


def test_parent_and_child_lead_to_each_other(operator: Client) -> None:
    parent = factories.instance("waiting", waiting_for="child")
    child = factories.child(parent, name="pay back", workflow="refund", id="r-1")
    assert 'href="/workflows/refund/instances/r-1/"' in page_of(operator, parent)
    assert f'href="{parent.get_absolute_url()}#s-1"' in page_of(operator, child)


def test_branches_of_a_parallel_are_folded_and_lead_to_their_instances(operator: Client) -> None:
    instance = factories.instance("waiting", waiting_for="child")
    factories.step(instance, "both", "waiting", "parallel", options={"branches": 3})
    for n in (1, 2):
        options = {"operation": "parallel", "workflow": "refund", "id": f"r-{n}"}
        factories.step(
            instance, "both", "waiting", "child", parent=1, count=n, options=options, delivery=None
        )
    page = " ".join(page_of(operator, instance).split())
    assert '0 of 3 done · <b class="s-waiting">2 waiting</b>' in page
    assert "/workflows/refund/instances/r-2/" in fragment_of(operator, instance, 1)


def test_branches_that_a_failed_parallel_left_are_not_said_to_be_undone(operator: Client) -> None:
    """It does not know their outcome: they may be complete by now."""
    error = {"type": "StepError", "message": "A child failed.", "step": "all"}
    instance = factories.instance("errored", error=error)
    options = {"branches": 3, "on_failure": "leave"}
    factories.step(instance, "all", "errored", "parallel", options=options)
    for n, status in enumerate(("errored", "cancelled", "cancelled"), start=1):
        of = {"operation": "parallel", "workflow": "refund", "id": f"r-{n}"}
        factories.step(instance, "all", status, "child", parent=1, count=n, options=of, delivery=None)
    page = " ".join(re.sub(r"<[^>]+>", "", page_of(operator, instance, "?step=all-1")).split())
    assert "1 failed · 2 not awaited" in page
    assert "of 3 done" not in page
    assert "other branches continue" in page
    inside = fragment_of(operator, instance, 1)
    assert inside.count('<span class="visually-hidden">not awaited</span>') == 2


def test_branches_that_a_parallel_terminates_are_cancelled(operator: Client) -> None:
    instance = factories.instance("running")
    options = {"branches": 2, "on_failure": "terminate"}
    factories.step(instance, "all", "errored", "parallel", options=options)
    for n, status in enumerate(("errored", "cancelled"), start=1):
        of = {"operation": "parallel", "workflow": "refund", "id": f"r-{n}"}
        factories.step(instance, "all", status, "child", parent=1, count=n, options=of, delivery=None)
    page = " ".join(re.sub(r"<[^>]+>", "", page_of(operator, instance)).split())
    assert "0 of 2 done · 1 failed · 1 cancelled" in page


def test_the_why_line_says_how_many_branches_are_left(operator: Client) -> None:
    instance = factories.instance("waiting", waiting_for="child")
    factories.step(instance, "both", "waiting", "parallel", options={"branches": 2})
    for n, status in enumerate(("complete", "waiting"), start=1):
        of = {"operation": "parallel", "workflow": "refund", "id": f"r-{n}"}
        factories.step(instance, "both", status, "child", parent=1, count=n, options=of, delivery=None)
    page = page_of(operator, instance)
    why = re.sub(r"<[^>]+>", "", page[page.index('id="why"') : page.index('id="actions"')])
    assert "Waits for 1 of 2 children at step 1 both." in why
    assert "also open" not in why
    assert "for 1 of 2 children" in operator.get("/instances/").content.decode()


def test_the_why_line_tells_of_items_by_their_index(operator: Client) -> None:
    instance = factories.instance("running")
    map_of(instance, ["complete", "waiting"])
    wake_at = timezone.now() + timedelta(hours=1)
    Step.objects.filter(seq=3).update(wake_at=wake_at)
    parked = {"status": "waiting", "waiting_for": "retry", "wake_at": wake_at, "owner": None}
    Instance.objects.filter(key=instance.key).update(**parked)
    page = page_of(operator, instance)
    why = page[page.index('id="why"') : page.index('id="actions"')]
    assert "Step 3 <code>letters[1]</code>" in why
    assert "also open" not in why
