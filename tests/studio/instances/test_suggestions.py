"""What the field of the list suggests while somebody types, and which values it offers as columns."""

from __future__ import annotations

import html
import re

import pytest
from django.db import connection
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from engine import WorkflowStep, workflow
from engine.values.query.fields import EXAMPLES
from engine.values.query.parsing import parse
from engine.values.serialization.envelope import enclose
from engine.values.shown import GROUPS, SHOWN
from studio.instances import seen
from studio.instances.completion import FIELDS, ROOTS
from tests.studio import factories

pytestmark = pytest.mark.django_db


def suggested(client: Client, text: str, at: int | None = None) -> tuple[list[str], tuple[int, int]]:
    """Return the suggestions at a caret, by default the end of the text, and what they replace."""
    where = {"query": text, "at": str(len(text) if at is None else at)}
    answer = client.get("/_f/instances/suggestions/", where)
    assert answer.status_code == 200
    page = answer.content.decode()
    place = re.search(r'data-start="(\d+)" data-end="(\d+)"', page)
    assert place
    found = [html.unescape(one) for one in re.findall(r'data-text="([^"]*)"', page)]
    return found, (int(place[1]), int(place[2]))


def test_fields_come_first(operator: Client) -> None:
    assert suggested(operator, "") == ([*(f"{name}:" for name in FIELDS), "params.", "output."], (0, 0))
    assert suggested(operator, "status:open st") == (["status:", "step:", "started:"], (12, 14))


def test_every_field_of_the_language_is_suggested() -> None:
    assert set(FIELDS) == set(EXAMPLES)
    assert set(ROOTS) == {"params", "output"}


def test_a_negated_term_keeps_its_sign(operator: Client) -> None:
    assert suggested(operator, "-sta") == (["status:", "started:"], (1, 4))
    assert suggested(operator, "-status:com") == (["complete"], (8, 11))


def test_values_follow_their_field(operator: Client) -> None:
    factories.instance(workflow="orders", tags=["eu", "vip"], by="")
    made = factories.instance("errored", workflow="imports", started_by="nightly job")
    factories.step(made, "charge_card", "complete")
    assert "imports" in suggested(operator, "workflow:")[0]
    assert suggested(operator, "workflow:imp")[0] == ["imports"]
    assert suggested(operator, "tag:")[0] == ["eu", "vip"]
    assert suggested(operator, "step:charge")[0] == ["charge_card"]
    assert suggested(operator, "by:ni")[0] == ['"nightly job"']
    assert suggested(operator, "error:")[0] == ["TimeoutError"]
    assert suggested(operator, "status:")[0] == [*GROUPS, *SHOWN]
    assert "<7d" in suggested(operator, "started:")[0]


def test_only_the_last_value_of_a_list_is_replaced(operator: Client) -> None:
    assert suggested(operator, "status:errored,ret") == (["retrying"], (15, 18))
    assert suggested(operator, 'error:"a, b",Tim')[1] == (13, 16)


def test_the_term_at_the_caret_is_completed_and_the_rest_stays(operator: Client) -> None:
    text = "status:ret workflow:orders"
    assert suggested(operator, text, at=10) == (["retrying"], (7, 10))
    assert suggested(operator, text, at=8)[1] == (7, 10)
    assert suggested(operator, "🛒🛒 sta") == (["status:", "started:"], (3, 6))


def test_paths_and_their_values_are_those_of_the_newest_instances(operator: Client) -> None:
    factories.instance(params={"customer": {"id": 17, "name": "Ana B."}, "region": "eu"})
    factories.instance(params={"region": "us"}, workflow="imports")
    found, place = suggested(operator, "workflow:orders params.")
    assert found == ["params.region=", "params.customer.id=", "params.customer.name="]
    assert place == (16, 23)
    assert suggested(operator, "reg")[0] == ["params.region="]
    assert suggested(operator, "params.customer.name=")[0] == ['"Ana B."']
    assert suggested(operator, "workflow:imports params.region=")[0] == ["us"]
    assert set(suggested(operator, "params.region:")[0]) == {"eu", "us"}


@pytest.mark.usefixtures("own_registry")
def test_paths_with_an_index_come_first(operator: Client) -> None:
    @workflow(name="ship", search=["parcel.deep.code", "output.total"])
    async def ship(step: WorkflowStep, params: dict[str, object]) -> None: ...

    factories.instance(params={"first": 1}, workflow="ship")
    assert suggested(operator, "workflow:ship params.")[0] == ["params.parcel.deep.code=", "params.first="]
    assert suggested(operator, "workflow:ship output.")[0] == ["output.total="]


def test_what_is_suggested_can_be_searched_for(operator: Client) -> None:
    values = ("a b", 'say "hi"', "back\\slash", "with, comma", "*", "x:y", "ä", "-5")
    for value in values:
        factories.instance(params={"it": value})
    found, _ = suggested(operator, "params.it=")
    assert len(found) == len(values)
    for text in found:
        query = parse(f"params.it={text}")
        assert query.problems == ()
        assert len(query.terms) == 1


def test_secrets_and_strange_keys_are_not_suggested(operator: Client) -> None:
    factories.instance(params={"card": enclose('"4711"'), "a b": 1, "<img src=x>": 2, "ok": 3})
    assert suggested(operator, "params.")[0] == ["params.ok="]
    page = operator.get("/_f/instances/paths/").content.decode()
    assert re.findall(r"<code>([^<]*)</code>", page) == ["params.ok"]


def test_values_are_shown_inert(operator: Client) -> None:
    factories.instance(tags=["<img src=x onerror=alert(1)>", "\u202etxt.exe"])
    page = operator.get("/_f/instances/suggestions/", {"query": "tag:"}).content.decode()
    assert "<img" not in page
    assert "<bdi>\u202etxt.exe" in page


@pytest.mark.parametrize(
    "given",
    [
        {"query": "x" * 100_000, "at": "99999"},
        {"query": "\0", "at": "1"},
        {"query": 'tag:"', "at": "5"},
        {"query": '"\\', "at": "2"},
        {"query": "status:", "at": "-1"},
        {"query": "status:", "at": "٣"},
        {"query": "status:", "at": "9" * 40},
        {"query": "params.\0=", "at": "9"},
        {"query": "params..=", "at": "9"},
        {},
    ],
)
def test_strange_text_is_no_error(operator: Client, given: dict[str, str]) -> None:
    factories.instance()
    assert operator.get("/_f/instances/suggestions/", given).status_code == 200


def test_suggestions_need_permission(client: Client, signed_in: object) -> None:
    assert client.get("/_f/instances/suggestions/").status_code == 302
    assert signed_in("nobody").get("/_f/instances/suggestions/").status_code == 403  # type: ignore[operator]
    assert signed_in("nobody").get("/_f/instances/paths/").status_code == 403  # type: ignore[operator]


def test_suggestions_ask_few_questions(
    operator: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(30):
        factories.instance()
    with django_assert_max_num_queries(12):
        operator.get("/_f/instances/suggestions/", {"query": "params."})


def test_the_newest_are_found_by_index_whatever_else_there_is() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO engine_instance (workflow, id, status, params, output, finished_at)"
            " SELECT 'bulk-' || n % 3, 'b-' || n, 'complete', '{}', '1', now() FROM generate_series(1, 20000) n"
        )
        cursor.execute("ANALYZE engine_instance")
        cursor.execute(f"EXPLAIN (FORMAT TEXT) {seen._KEYS}", [["rare", "bulk-1"], ["complete"], 40, 40])
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "engine_instance_list" in plan
    assert "pkey" not in plan
    assert "Seq Scan" not in plan


def test_paths_add_a_column_to_those_that_are_shown(operator: Client) -> None:
    factories.instance(params={"region": "eu", "total": 5})
    where = "/_f/instances/paths/?query=status:open&columns=params.total&sort=started"
    page = operator.get(where).content.decode()
    assert re.findall(r'<a href="([^"]*)"', page) == [
        "/instances/?query=status:open&amp;sort=started&amp;columns=params.total,params.region"
    ]
