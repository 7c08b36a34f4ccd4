"""What differs between two runs is said in a sentence, and shown side by side."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.expressions import RawSQL
from django.test import Client

from engine.models import Instance
from tests.studio import factories
from tests.studio.instance.test_generations import restarted

pytestmark = pytest.mark.django_db


def page_of(client: Client, instance: Instance, query: str = "") -> str:
    answer = client.get(f"{instance.get_absolute_url()}?tab=compare{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def text_of(markup: str) -> str:
    return html.unescape(" ".join(re.sub(r"<svg.*?</svg>|<[^>]*>", "", markup).split()))


def verdict(page: str) -> str:
    found = re.search(r'id="verdict">(.*?)</p>', page, re.DOTALL)
    assert found is not None
    return text_of(found[1])


def problem(page: str) -> str:
    found = re.search(r'role="alert">(.*?)</div>', page, re.DOTALL)
    assert found is not None
    return text_of(found[1]).replace("\u2068", "").replace("\u2069", "")


def rows(page: str, table: str) -> list[list[str]]:
    """Return the cells of a table's rows."""
    found = re.search(rf'class="sides {table}">.*?<tbody>(.*?)</tbody>', page, re.DOTALL)
    lines = re.findall(r"<tr[^>]*>(.*?)</tr>", found[1], re.DOTALL) if found else []
    return [
        [text_of(cell) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", line, re.DOTALL)]
        for line in lines
    ]


def run(
    params: Any = None,
    *,
    status: str = "complete",
    steps: dict[str, float] | None = None,
    **given: Any,
) -> Instance:
    """Make a run whose steps took so many seconds."""
    took = {"reserve": 0.4, "charge": 0.6} if steps is None else steps
    begun = factories.ago(hours=1)
    instance = factories.instance(
        status,
        params={"amount": 10} if params is None else params,
        created_at=begun,
        started_at=begun,
        **({"finished_at": begun + timedelta(seconds=sum(took.values()))} if status == "complete" else {}),
        **given,
    )
    for name, seconds in took.items():
        ended = begun + timedelta(seconds=seconds)
        step = factories.step(instance, name, started_at=begun, finished_at=ended, output={"ok": 1})
        factories.attempt(step, started_at=begun, finished_at=ended)
        begun = ended
    return instance


def test_a_sentence_says_what_changed_since_the_last_complete_run(viewer: Client) -> None:
    before = run()
    page = page_of(viewer, run({"amount": 12}, steps={"reserve": 0.4, "charge": 12}))
    assert verdict(page) == (
        "Same path; charge took 12 s instead of 600 ms; params differ in amount; same result."
    )
    assert before.id in page
    assert rows(page, "value-diff") == [["amount", "12", "10"]]
    assert rows(page, "path") == [
        ["reserve", "same", "400 ms", "400 ms", "0 s"],
        ["charge", "same", "12 s", "600 ms", "+11 s"],
    ]


def test_steps_of_one_run_only_are_shown_where_they_ran(viewer: Client) -> None:
    other = run(steps={"reserve": 0.4, "check": 0.1, "charge": 0.6})
    page = page_of(viewer, run(steps={"reserve": 0.4, "charge": 0.6, "receipt": 0.1}), f"&with={other.id}")
    assert "only here: receipt, only there: check" in verdict(page).lower()
    assert [row[:2] for row in rows(page, "path")] == [
        ["reserve", "same"],
        ["check", "only there"],
        ["charge", "same"],
        ["receipt", "only here"],
    ]


def test_deeply_nested_lists_are_compared_at_once(viewer: Client) -> None:
    """Each level of lists of different lengths is compared from both ends."""
    one: list[Any] = []
    other: list[Any] = [1]
    for _ in range(40):
        one, other = [one], [other, 0]
    run(one, id="monday")
    assert "params" in verdict(page_of(viewer, run(other, id="tuesday")))


def test_what_a_handler_says_of_its_progress_is_no_step_of_its_path(viewer: Client) -> None:
    run(id="monday")
    tuesday = run(id="tuesday")
    factories.step(tuesday, seq=9, kind="progress", name="charged 12 of 40", status="complete")
    page = page_of(viewer, tuesday)
    assert verdict(page).startswith("Same path")
    assert "charged 12 of 40" not in page


def test_other_outcomes_and_different_code_are_said(viewer: Client) -> None:
    other = run(code="a" * 64)
    failed = run(status="errored", code="b" * 64)
    said = verdict(page_of(viewer, failed, f"&with={other.id}"))
    assert said.startswith("This one is errored, the other complete; same path")
    assert said.endswith("different code.")


def test_outputs_that_differ_are_shown(viewer: Client) -> None:
    other, this = run(), run(steps={"reserve": 0.4})
    begun = this.created_at + timedelta(seconds=0.4)
    ended = begun + timedelta(seconds=0.6)
    charge = factories.step(this, "charge", started_at=begun, finished_at=ended, output={"ok": 2})
    factories.attempt(charge, started_at=begun, finished_at=ended)
    page = page_of(viewer, this, f"&with={other.id}")
    assert "the output of charge differs" in verdict(page)
    assert 'Other output {"ok": 2} {"ok": 1}' in rows(page, "path")[1][1]


@pytest.mark.parametrize(
    ("here", "there", "differing"),
    [
        ({"a": 1}, {"a": True}, [["a", "1", "true"]]),
        ({"a": 1}, {"a": 1.0}, [["a", "1", "1.0"]]),
        ({"a": None}, {}, [["a", "null", "not there"]]),
        ({"x": [1, 2, 3]}, {"x": [1, 3]}, [["x[1]", "2", "not there"]]),
        ({"x": [{"q": 1}, {"q": 2}]}, {"x": [{"q": 1}, {"q": 3}]}, [["x[1].q", "2", "3"]]),
        ([1], {"a": 1}, [["$", "[1]", '{"a": 1}']]),
        ({"a b": 1}, {"a b": 2}, [['["a b"]', "1", "2"]]),
    ],
)
def test_params_are_compared_by_path(
    viewer: Client, here: Any, there: Any, differing: list[list[str]]
) -> None:
    other = run(there)
    found = rows(page_of(viewer, run(here), f"&with={other.id}"), "value-diff")
    assert [[cell.replace("\u2068", "").replace("\u2069", "") for cell in row] for row in found] == differing


def test_secrets_are_neither_shown_nor_compared(viewer: Client) -> None:
    one, two = ({"pin": {"$reprise-secret": f"gAAAAA-{n}"}, "amount": 1} for n in range(2))
    other = run(one)
    page = page_of(viewer, run(two), f"&with={other.id}")
    assert "gAAAAA" not in page
    assert "same params" in verdict(page)
    assert "apart from secrets, which are not compared" in page


def test_a_secret_against_a_plain_value_is_masked(viewer: Client) -> None:
    other = run({"pin": {"$reprise-secret": "gAAAAA-1"}})
    assert rows(page_of(viewer, run({"pin": "1234"}), f"&with={other.id}"), "value-diff") == [
        ["pin", '"1234"', '"••••••"']
    ]


def test_large_params_are_not_compared(viewer: Client) -> None:
    other = run({"text": "x" * 300_000})
    page = page_of(viewer, run({"text": "y" * 300_000}), f"&with={other.id}")
    assert "params too large to compare" in verdict(page)
    assert len(page) < 200_000


def test_a_value_that_cannot_be_read_is_not_called_too_large(viewer: Client) -> None:
    deep = RawSQL("(repeat('[', 2000) || repeat(']', 2000))::jsonb", ())
    other, this = run(), run(output=deep)
    page = " ".join(page_of(viewer, this, f"&with={other.id}").split())
    assert "Too large" not in page
    assert "Not compared: that of this run is not valid JSON." in page
    assert "the result cannot be read" in verdict(page)
    page = " ".join(page_of(viewer, other, f"&with={this.id}").split())
    assert "Not compared: that of the other run is not valid JSON." in page


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("&with=none", "There is no instance none of orders. It may have been deleted."),
        ("&with=a%20b", "“a b” is not an instance id."),
        ("&with=%00%3Cb%3E", "“<b>” is not an instance id."),
        ("&with={own}", "This is the same run. Choose another one to compare it with."),
        ("&with={own}&with_generation=7", "Instance {own} has no generation 7."),
        ("&with={own}&with_generation=0", "Instance {own} has no generation 0."),
        ("&with={own}&with_generation=x", "“x” is not the number of a generation."),
    ],
)
def test_what_cannot_be_compared_is_explained(viewer: Client, query: str, said: str) -> None:
    instance = run()
    assert problem(page_of(viewer, instance, query.format(own=instance.id))) == said.format(own=instance.id)


def test_an_instance_of_another_workflow_is_as_if_it_did_not_exist(viewer: Client) -> None:
    run(workflow="billing", id="inv-1")
    assert problem(page_of(viewer, run(), "&with=inv-1")).startswith("There is no instance inv-1 of orders.")


def test_the_only_instance_has_nothing_to_compare_with(viewer: Client) -> None:
    assert "Nothing to compare with" in page_of(viewer, run())


def test_the_last_complete_and_the_previous_run_are_offered(viewer: Client) -> None:
    complete, previous, this = run(), run(status="errored"), run()
    page = page_of(viewer, this)
    assert f"with={complete.id}" in page
    assert f"with={previous.id}" in page
    assert "Last complete" in page
    assert "Previous" in page


def test_generations_are_compared(viewer: Client) -> None:
    instance = restarted()
    page = page_of(viewer, instance, f"&with={instance.id}&with_generation=1")
    assert verdict(page).startswith("This one is running, the other errored; 2 steps kept, 1 step ran again")
    assert [row[:2] for row in rows(page, "path")] == [
        ["reserve", "kept"],
        ["approved", "kept"],
        ["charge", "ran again complete instead of errored"],
    ]
    back = page_of(viewer, instance, f"&generation=1&with={instance.id}&with_generation=2")
    assert "this one is errored, the other running" in verdict(back).lower()


def test_of_many_steps_only_those_that_differ_are_shown_first(viewer: Client) -> None:
    other = run(steps={f"step-{n}": 0.1 for n in range(60)})
    this = run(steps={f"step-{n}": 9 if n == 30 else 0.1 for n in range(60)})
    page = page_of(viewer, this, f"&with={other.id}")
    assert [row[0] for row in rows(page, "path")] == ["step-30"]
    assert len(rows(page_of(viewer, this, f"&with={other.id}&show=all"), "path")) == 60


def test_the_page_of_a_comparison_survives_any_number(viewer: Client) -> None:
    other, this = run(), run()
    for number in ("0", "-1", "x", "9" * 18):
        page_of(viewer, this, f"&with={other.id}&page={number}")
