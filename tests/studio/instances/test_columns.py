"""Columns that users add to the list: values of params and output, short, inert and masked."""

from __future__ import annotations

import html
import re

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from engine.values.serialization.envelope import MASK, enclose
from studio.instances.columns import MOST, cell_of, cells_of, path_of
from tests.studio import factories

pytestmark = pytest.mark.django_db

CELL = re.compile(r'<td class="added (\w+)"(?: title="([^"]*)")?>([^<]*)</td>')


def cells(client: Client, columns: str) -> list[tuple[str, str, str]]:
    answer = client.get("/instances/", {"columns": columns})
    assert answer.status_code == 200
    found = CELL.findall(answer.content.decode())
    return [(kind, html.unescape(title), html.unescape(text)) for kind, title, text in found]


def test_a_column_shows_the_value_at_its_path(operator: Client) -> None:
    factories.instance(params={"customer": {"id": 17}, "region": "eu", "items": [{"sku": "a-1"}]})
    assert cells(
        operator, "params.region,params.customer.id,params.items.0.sku,params.customer,params.none"
    ) == [
        ("text", "", "eu"),
        ("atom", "", "17"),
        ("text", "", "a-1"),
        ("json", "", '{"id": 17}'),
        ("none", "", ""),
    ]


def test_an_output_has_columns_too(operator: Client) -> None:
    factories.instance("complete", output={"total": 12.5, "paid": True, "note": None})
    found = cells(operator, "output.total,output.paid,output.note")
    assert [(kind, text) for kind, _, text in found] == [("atom", "12.5"), ("atom", "true"), ("atom", "null")]


def test_heads_have_the_last_part_of_the_path_if_it_is_the_only_one(operator: Client) -> None:
    factories.instance()
    page = operator.get("/instances/?columns=params.a.id,params.b.id,params.c").content.decode()
    heads = re.findall(r'<th scope="col" class="added" title="([^"]*)"><span>([^<]*)</span>', page)
    assert heads == [("params.a.id", "params.a.id"), ("params.b.id", "params.b.id"), ("params.c", "c")]


def test_a_long_value_is_cut_and_its_tooltip_says_more(operator: Client) -> None:
    factories.instance(params={"note": "x" * 10_000, "lines": "one\ntwo"})
    long, lines = cells(operator, "params.note,params.lines")
    assert long[2] == "x" * 59 + "…"
    assert 300 < len(long[1]) < 420
    assert lines == ("text", "one\ntwo", "one two")


def test_values_are_shown_inert(operator: Client) -> None:
    factories.instance(params={"a": "<script>alert(1)</script>", "b": "\u202eexe.txt", "<i>": {"c": 1}})
    page = operator.get("/instances/", {"columns": "params.a,params.b,params.<i>.c"}).content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<bdi>\u202eexe.txt</bdi>" in page
    assert "<i>" not in page.replace("<i></i>", "")


def test_secrets_are_masked_wherever_a_path_ends(operator: Client) -> None:
    secret = enclose('"4711-very-secret"')
    token = next(iter(secret.values()))
    factories.instance(params={"card": secret, "buyer": {"pin": secret}})
    columns = "params.card,params.buyer,params.card.$reprise-secret,params.buyer.pin"
    found = cells(operator, columns)
    assert [text for _, _, text in found] == [MASK, f'{{"pin": "{MASK}"}}', MASK, MASK]
    page = operator.get("/instances/", {"columns": columns}).content.decode()
    assert token not in page
    assert token[:12] not in page


def test_a_number_is_shown_as_it_was_written() -> None:
    assert cell_of("123456789012345678901234567890.10").text == "123456789012345678901234567890.10"


@pytest.mark.parametrize(
    "text", ["params", "region", "params.", ".a", "params..a", "error.type", "params.a\0"]
)
def test_what_is_no_path_is_no_column(text: str) -> None:
    assert path_of(text) is None


def test_columns_that_cannot_be_shown_are_named(operator: Client) -> None:
    factories.instance()
    many = ",".join(f"params.n{n}" for n in range(MOST + 1))
    page = operator.get(f"/instances/?columns={many}&columns=region").content.decode()
    assert re.findall(r"<code><bdi>([^<]*)</bdi></code>", page) == [
        f"columns=params.n{MOST}",
        "columns=region",
    ]
    assert page.count('<th scope="col" class="added"') == MOST


def test_a_form_may_send_the_columns_one_by_one(operator: Client) -> None:
    factories.instance(params={"a": 1, "b": 2})
    page = operator.get("/instances/?columns=params.a&columns=params.b&columns=params.a").content.decode()
    assert [text for _, _, text in CELL.findall(page)] == ["1", "2"]


def test_all_cells_of_a_page_take_one_query(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    keys = [factories.instance(params={"a": n}).key for n in range(20)]
    with django_assert_num_queries(1):
        found = cells_of(keys, [("params", "a"), ("output", "b")])
    assert [found[key][0].text for key in keys] == [str(n) for n in range(20)]
