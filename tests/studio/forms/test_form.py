"""Params as a form: it edits the same JSON as the text, and loses nothing of it."""

from __future__ import annotations

import json
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Literal

import pytest
from django.test import Client
from pydantic import BaseModel, Field, SecretStr

from engine import WorkflowStep, workflow
from engine.models import Instance
from engine.values.identity import new_instance_id
from tests.studio.forms.as_sent import as_sent

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("declared")]
START = "/workflows/orders/start/"


class Address(BaseModel):
    """Where it goes."""

    street: str = Field(min_length=1, max_length=100)
    country: Literal["de", "fr", "at", "ch", "us"] = "de"


class Card(BaseModel):
    kind: Literal["card"] = "card"
    token: SecretStr


class Cash(BaseModel):
    kind: Literal["cash"] = "cash"


class Transfer(BaseModel):
    kind: Literal["transfer"] = "transfer"
    iban: str


class Item(BaseModel):
    sku: str = Field(min_length=1)
    quantity: int = Field(1, ge=1, le=99)


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


class Plain(BaseModel):
    customer: str = Field(min_length=1, max_length=60, description="Who pays.", examples=["Zoe"])
    tier: Literal["free", "pro", "corp"] = "pro"
    price: Decimal = Decimal("9.99")
    weight: float = 1.5
    urgent: bool = False
    due: date | None = None
    at: datetime | None = None
    opens: time | None = None
    home: Address
    other: Address | None = None
    payment: Cash | Transfer = Field(discriminator="kind")
    items: list[Item] = Field(min_length=1)
    labels: dict[str, int] = {}
    note: str | None = None
    tree: Tree | None = None
    anything: Any = None


class Order(Plain):
    payment: Card | Transfer = Field(discriminator="kind")  # type: ignore[assignment]


@pytest.fixture
def declared(own_registry: None) -> None:
    @workflow("orders")
    async def orders(step: WorkflowStep, order: Order) -> None:
        """Sell something."""
        await step.do("reserve-stock", print)
        await step.do("charge-card", print)

    @workflow("plain")
    async def plain(step: WorkflowStep, order: Plain) -> None:
        """Sell something without secrets."""

    @workflow("tree")
    async def tree(step: WorkflowStep, tree: Tree) -> None:
        """Plant it."""


GOOD: dict[str, Any] = {
    "customer": "Ana",
    "home": {"street": "Mill Lane 1", "country": "fr"},
    "payment": {"kind": "transfer", "iban": "DE89"},
    "items": [{"sku": "a", "quantity": 2}, {"sku": "b", "quantity": 1}],
    "labels": {"size": 3},
}


def opened(client: Client, document: object = GOOD, workflow: str = "orders") -> dict[str, str]:
    """Type a document as JSON and open the form."""
    text = document if isinstance(document, str) else json.dumps(document)
    given = {"tab": "json", "params": text, "token": new_instance_id(), "op": "tab:form"}
    sent = as_sent(client.post(f"/workflows/{workflow}/start/", given).content.decode())
    assert sent["tab"] == "form"
    return sent


def pressed(
    client: Client, sent: dict[str, str], op: str, workflow: str = "orders", **typed: str
) -> dict[str, str]:
    answer = client.post(f"/workflows/{workflow}/start/", {**sent, **typed, "op": op})
    assert answer.status_code == 200
    return as_sent(answer.content.decode())


def text_of(client: Client, sent: dict[str, str], workflow: str = "orders", **typed: str) -> str:
    """Change to JSON, and return it."""
    found = pressed(client, sent, "tab:json", workflow, **typed)
    assert found["tab"] == "json"
    return found["params"].replace("\r\n", "\n")


def document_of(client: Client, sent: dict[str, str], **typed: str) -> Any:
    return json.loads(text_of(client, sent, **typed))


ODD: list[str] = [
    json.dumps(GOOD),
    json.dumps({**GOOD, "unknown": {"deep": [1, None, "x"]}, "home": {"street": "x", "floor": 3}}),
    '{"price": 1.10, "weight": 1e3, "items": [{"quantity": 12345678901234567}]}',
    '{"price": "1.10", "weight": "heavy", "customer": 5, "tier": "gold", "urgent": "yes"}',
    '{"weight": "5", "items": "none", "home": [], "labels": {"a/b~c": 1, "": 2, "x y": "z"}}',
    '{"at": "2026-12-01T10:00:00.123456+02:00", "due": "someday", "opens": "10:00:00"}',
    '{"at": "2026-12-01T10:00:00Z", "opens": "10:00", "due": "2026-12-01"}',
    '{"customer": " two\\nlines\\n ", "note": "\\n\\nfirst", "other": null}',
    '{"customer": "\\ttab \\u0001 \\u2028 \\u202e right", "note": ""}',
    '{"customer": "<script>alert(1)</script>", "payment": {"kind": "gift"}, "items": [[], null, 3]}',
    '{"tree": {"name": "a", "children": [{"name": "b", "children": []}]}, "note": null}',
    "{}",
    "[1, 2]",
    "null",
    '"text"',
]


@pytest.mark.parametrize("text", ODD)
def test_the_form_and_back_changes_nothing(operator: Client, text: str) -> None:
    assert text_of(operator, opened(operator, text, "plain"), "plain") == text


def test_each_kind_of_field_writes_its_kind_of_value(operator: Client) -> None:
    typed = {
        "f./customer": "Bo",
        "f./tier": '"corp"',
        "f./price": "0.10",
        "f./weight": "2.50",
        "f./urgent": "true",
        "f./due": "2026-12-01",
        "f./at": "2026-12-01T10:00",
        "z./at": "+02:00",
        "f./opens": "08:30",
        "f./home/country": '"us"',
        "f./items/1/quantity": "12",
        "f./note": "one\r\ntwo",
        "f./anything": '{"a": [1.0]}',
    }
    text = text_of(operator, opened(operator), **typed)
    assert '"weight": 2.50' in text
    assert json.loads(text) == {
        **GOOD,
        "customer": "Bo",
        "tier": "corp",
        "price": "0.10",
        "weight": 2.5,
        "urgent": True,
        "due": "2026-12-01",
        "at": "2026-12-01T10:00:00+02:00",
        "opens": "08:30",
        "home": {"street": "Mill Lane 1", "country": "us"},
        "items": [{"sku": "a", "quantity": 2}, {"sku": "b", "quantity": 12}],
        "note": "one\ntwo",
        "anything": {"a": [1.0]},
    }


def test_an_emptied_optional_field_is_left_out_and_null_can_be_chosen(operator: Client) -> None:
    sent = opened(operator, {**GOOD, "note": "x", "weight": 3, "due": "2026-12-01"})
    found = document_of(operator, sent, **{"f./note": "", "f./weight": "", "n./due": "on"})
    assert found == {**GOOD, "due": None}


def test_items_are_added_moved_and_removed(operator: Client) -> None:
    sent = pressed(operator, opened(operator), "add:/items")
    sent = pressed(operator, sent, "up:/items/2", **{"f./items/2/sku": "new"})
    assert [sent[f"f./items/{at}/sku"] for at in range(3)] == ["a", "new", "b"]
    sent = pressed(operator, sent, "remove:/items/0")
    sent = pressed(operator, sent, "down:/items/0")
    assert document_of(operator, sent)["items"] == [
        {"sku": "b", "quantity": 1},
        {"sku": "new", "quantity": 1},
    ]


def test_entries_of_a_map_are_added_renamed_and_removed(operator: Client) -> None:
    sent = pressed(operator, opened(operator), "enter:/labels", **{"new./labels": "a/b"})
    typed = {"f./labels/a~1b": "7", "k./labels/a~1b": "c", "f./labels/size": "4"}
    sent = pressed(operator, sent, "check", **typed)
    assert document_of(operator, sent)["labels"] == {"size": 4, "c": 7}
    assert document_of(operator, pressed(operator, sent, "remove:/labels/size"))["labels"] == {"c": 7}


def test_two_entries_with_one_name_are_refused_and_nothing_is_lost(operator: Client) -> None:
    sent = opened(operator, {**GOOD, "labels": {"a": 1, "b": 2}})
    answer = operator.post(START, {**sent, "k./labels/b": "a"})
    assert answer.status_code == 422
    assert "Two entries have the name" in answer.content.decode()
    assert not Instance.objects.exists()


def test_an_optional_part_is_added_and_left_out(operator: Client) -> None:
    sent = pressed(operator, opened(operator), "include:/other")
    assert document_of(operator, sent)["other"] == {"street": "", "country": "de"}
    assert document_of(operator, pressed(operator, sent, "leave-out:/other")) == GOOD


def test_another_alternative_of_a_union_has_its_own_fields(operator: Client) -> None:
    sent = opened(operator)
    assert "f./payment/iban" in sent
    sent = pressed(operator, sent, "pick:/payment", **{"u./payment": "0"})
    assert "f./payment/token" in sent
    assert "f./payment/iban" not in sent
    started = operator.post(START, {**sent, "f./payment/token": "tok-1"})
    assert started.status_code == 302
    assert Instance.objects.get().params["payment"]["kind"] == "card"


def test_an_alternative_that_was_chosen_without_its_button_starts_nothing_yet(operator: Client) -> None:
    answer = operator.post(START, {**opened(operator), "u./payment": "0"})
    assert answer.status_code == 200
    assert "f./payment/token" in as_sent(answer.content.decode())
    assert not Instance.objects.exists()


def test_a_form_starts_what_it_shows(operator: Client) -> None:
    answer = operator.post(START, {**opened(operator), "f./customer": "Cleo"})
    assert answer.status_code == 302
    assert Instance.objects.get().params["customer"] == "Cleo"


def test_a_refused_form_keeps_what_was_typed_and_says_what_is_wrong_beside_it(operator: Client) -> None:
    typed = {"f./items/1/quantity": "many", "f./home/street": "", "f./anything": "{", "f./customer": "Bo"}
    answer = operator.post(START, {**opened(operator), **typed})
    page = answer.content.decode()
    assert answer.status_code == 422
    sent = as_sent(page)
    assert {name: sent[name] for name in typed} == typed
    for field in ("f/items/1/quantity", "f/home/street", "f/anything"):
        assert f'href="#{field}"' in page
        assert f'id="{field}-problem"' in page
    assert not Instance.objects.exists()


def test_json_that_cannot_be_read_keeps_the_tab(operator: Client) -> None:
    sent = pressed(operator, opened(operator), "tab:json", **{"f./anything": "[1,"})
    assert (sent["tab"], sent["f./anything"]) == ("form", "[1,")
    given = {"tab": "json", "params": '{"customer": ', "token": new_instance_id(), "op": "tab:form"}
    page = operator.post(START, given).content.decode()
    sent = as_sent(page)
    assert (sent["tab"], sent["params"]) == ("json", '{"customer": ')
    assert "Fix 1 problem" in page


def test_what_is_too_large_for_a_form_stays_json_and_says_so(operator: Client) -> None:
    text = json.dumps({**GOOD, "note": "x" * 250_000})
    page = operator.post(START, {"tab": "json", "params": text, "op": "tab:form"}).content.decode()
    assert as_sent(page)["params"] == text
    assert "too large for the form" in page


def test_a_secret_that_was_typed_is_never_sent_back(operator: Client) -> None:
    sent = opened(operator, {**GOOD, "payment": {"kind": "card", "token": "canary-4711"}})
    for op in ("check", "add:/items", "tab:json"):
        answer = operator.post(START, {**sent, "f./payment/token": "canary-4711", "op": op})
        assert "canary-4711" not in answer.content.decode()
    refused = operator.post(START, {**sent, "f./payment/token": "canary-4711", "f./customer": ""})
    assert refused.status_code == 422
    assert "canary-4711" not in refused.content.decode()


def test_what_may_contain_itself_is_json_and_the_rest_has_fields(operator: Client) -> None:
    sent = opened(operator, {"name": "oak", "children": [{"name": "b", "children": []}]}, "tree")
    assert sent["f./name"] == "oak"
    assert json.loads(sent["f./children/0"]) == {"name": "b", "children": []}


@pytest.mark.parametrize(
    "op", ["add:/nowhere", "up:/items/0", "remove:", "pick:/payment", "x:y", "include:/items"]
)
def test_a_button_of_another_form_changes_nothing_and_breaks_nothing(operator: Client, op: str) -> None:
    answer = operator.post(START, {**opened(operator), "op": op, "u./payment": "99999999"})
    assert answer.status_code in (200, 422)
    assert not Instance.objects.exists()


def test_markup_in_values_and_names_is_inert(operator: Client) -> None:
    evil = '"><script>alert(1)</script>'
    page = operator.post(
        START,
        {
            "tab": "json",
            "params": json.dumps({**GOOD, "customer": evil, "labels": {evil: 1}, evil: evil}),
            "op": "tab:form",
        },
    ).content.decode()
    assert "<script>alert" not in page
    assert as_sent(page)["f./customer"] == evil


class TestRules:
    def test_limits_descriptions_and_marks_are_in_words(self, operator: Client) -> None:
        page = " ".join(operator.get(START).content.decode().split())
        assert "Who pays. · 1 to 60 characters" in page
        assert "1 to 99" in page
        assert "Where it goes." in page
        assert page.count('title="required"') >= 4

    def test_few_choices_are_radios_and_more_are_a_list(self, operator: Client) -> None:
        page = operator.get(START).content.decode()
        assert page.count('type="radio" name="f./tier"') == 4  # with “Leave out”
        assert '<select id="f/home/country"' in page
