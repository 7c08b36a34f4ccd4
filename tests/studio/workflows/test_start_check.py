"""What the start form says before anything is started, what it begins with, and how else to start the same."""

from __future__ import annotations

import html
import json
import re
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client
from pydantic import BaseModel, SecretStr

from engine import WorkflowStep, pauses, workflow
from engine.models import Instance
from tests.studio import factories
from tests.studio.forms.as_sent import as_sent

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("declared")]
START, CHECK = "/workflows/pay/start/", "/_f/workflows/pay/check/"
PARAMS = {"customer": "Ana", "cents": 250, "key": "canary-4711"}


class Pay(BaseModel):
    customer: str
    cents: int = 1
    key: SecretStr
    items: list[dict[str, int]] = []


@pytest.fixture
def declared(own_registry: None) -> None:
    @workflow("pay")
    async def pay(step: WorkflowStep, params: Pay) -> None:
        """Take the money."""

        @step.do("thank")
        async def thank() -> None: ...

        await step.do("reserve", print)
        if params.cents > 100:
            await step.do("ask-bank", print)
        await thank()


def check(client: Client, document: object = PARAMS, **given: str) -> str:
    before = Instance.objects.count()
    text = document if isinstance(document, str) else json.dumps(document)
    page = client.post(CHECK, {"params": text, **given}).content.decode()
    assert Instance.objects.count() == before
    return " ".join(page.split()).replace("</code >", "</code>")


def copied(page: str) -> dict[str, str]:
    found = re.findall(r'data-copy="([^"]*)"\s+aria-label="Copy as ([^"]*)"', page)
    return {name: html.unescape(text) for text, name in found}


class TestCheck:
    def test_it_names_the_steps_in_the_order_of_the_code(self, operator: Client) -> None:
        assert (
            "Steps in its code: <code><bdi>reserve</bdi></code>, <code><bdi>ask-bank</bdi></code>, "
            "<code><bdi>thank</bdi></code>." in check(operator)
        )

    def test_it_says_what_differs_from_the_last_run_without_secrets(self, operator: Client) -> None:
        operator.post(START, {"params": json.dumps(PARAMS), "id": "pay-1"})
        page = check(operator, {**PARAMS, "key": "canary-4712", "items": []})
        assert "pay-1</a> had the same. Secrets are not compared." in page
        page = check(operator, {**PARAMS, "customer": "Bo", "items": [{"a": 1}], "key": "canary-4713"})
        assert "<code><bdi>customer</bdi></code>" in page
        assert "<bdi>&quot;Ana&quot;</bdi></code> → <code><bdi>&quot;Bo&quot;</bdi></code>" in page
        assert "<code><bdi>items/0</bdi></code>" in page
        assert "canary" not in page

    @pytest.mark.parametrize("text", ['{"customer": ', "[NaN]", '{"a": 1, "a": 2}'])
    def test_what_cannot_be_read_is_not_called_the_same(self, operator: Client, text: str) -> None:
        operator.post(START, {"params": json.dumps(PARAMS), "id": "pay-1"})
        page = check(operator, text)
        assert "had the same" not in page
        assert "pay-1</a> cannot be compared with this" in page

    def test_nothing_is_not_called_the_same_as_params(self, operator: Client) -> None:
        operator.post(START, {"params": json.dumps(PARAMS), "id": "pay-1"})
        page = check(operator, "")
        assert "had the same" not in page
        assert "<code><bdi>value</bdi></code>" in page

    def test_a_start_without_params_is_the_same_as_one_before(self, operator: Client) -> None:
        operator.post("/workflows/tick/start/", {"params": "", "id": "tick-1"})
        page = operator.post("/_f/workflows/tick/check/", {"params": ""}).content.decode()
        assert "tick-1</a> had the same" in page

    def test_it_names_fields_that_the_schema_does_not_know(self, operator: Client) -> None:
        page = check(operator, {**PARAMS, "discount": 5})
        assert "Not in the schema: <code><bdi>discount</bdi></code>" in page

    def test_it_says_that_the_workflow_is_paused(self, operator: Client) -> None:
        assert "pay is paused" not in check(operator)
        pauses.pause("pay", by="ana", reason="holiday")
        assert "pay is paused: the instance waits until it is resumed" in check(operator)

    def test_it_reads_the_form_and_links_problems_to_its_fields(self, operator: Client) -> None:
        page = check(operator, PARAMS, tab="form", **{"f./cents": "much", "f./customer": "Bo"})
        assert '<a href="#f/cents"><code>cents</code></a>' in page

    def test_without_a_script_a_button_checks_and_keeps_everything(self, operator: Client) -> None:
        sent = {**as_sent(operator.get(START).content.decode()), "id": "pay-7", "tags": "eu"}
        answer = operator.post(START, {**sent, "f./customer": "Bo", "op": "check"})
        page = answer.content.decode()
        assert (answer.status_code, Instance.objects.count()) == (200, 0)
        assert "Fix 1 problem" in page  # the secret
        after = as_sent(page)
        assert (after["f./customer"], after["id"], after["tags"]) == ("Bo", "pay-7", "eu")


class TestPrefill:
    def test_values_in_the_address_are_typed_by_the_schema(self, operator: Client) -> None:
        sent = as_sent(operator.get(f"{START}?p.customer=42&p.cents=42&p.items=[{{}}]").content.decode())
        found = json.loads(sent["params"])
        assert (found["customer"], found["cents"], found["items"]) == ("42", 42, [{}])

    def test_an_instance_or_the_last_one_is_copied_without_secrets(self, operator: Client) -> None:
        for source, name in (("first", "Ana"), ("second", "Bo")):
            operator.post(START, {"params": json.dumps({**PARAMS, "customer": name}), "id": source})
        for source, name in (("first", "Ana"), ("last", "Bo")):
            page = operator.get(f"{START}?from={source}&p.cents=7").content.decode()
            assert json.loads(as_sent(page)["params"]) == {
                "customer": name,
                "cents": 7,
                "key": "••••••",
                "items": [],
            }
            assert "canary" not in page

    def test_a_secret_in_the_address_is_not_filled_in_and_named(self, operator: Client) -> None:
        page = operator.get(f"{START}?p.key=canary-4711").content.decode()
        assert "canary-4711" not in page
        assert "Not filled in from the address: key." in page

    @pytest.mark.parametrize(
        "name", ["p.", "p.items.9", "p.items.99999999999", "p..a", "p.customer.x", "p.%00"]
    )
    def test_what_has_no_place_is_named_and_breaks_nothing(self, operator: Client, name: str) -> None:
        assert operator.get(f"{START}?{name}=1").status_code == 200

    def test_an_unknown_instance_is_said(self, operator: Client) -> None:
        assert "There is no instance nowhere" in operator.get(f"{START}?from=nowhere").content.decode()


class TestCopies:
    def test_none_has_a_secret_and_each_says_the_same(self, operator: Client) -> None:
        page = check(operator, {**PARAMS, "customer": "O'Hara & Söhne"}, id="pay-9", tags="eu")
        assert "Secrets are left out" in page
        assert "canary" not in page
        found = copied(page)
        assert found["Command line"] == (
            "python manage.py workflow start --id=pay-9 --tag=eu pay "
            """'{ "customer": "O'"'"'Hara & Söhne", "cents": 250 }'"""
        )
        assert "/api/v1/workflows/pay/instances" in found["curl"]
        assert found["Python"].endswith(
            """workflows['pay'].start({'customer': "O'Hara & Söhne", 'cents': 250}, id='pay-9', tags=['eu'])"""
        )

    def test_the_address_opens_the_same_form(self, operator: Client) -> None:
        document: dict[str, Any] = {**PARAMS, "customer": "12", "items": [{"a": 1}]}
        address = urlsplit(copied(check(operator, document))["URL"])
        sent = as_sent(operator.get(f"{address.path}?{address.query}").content.decode())
        assert json.loads(sent["params"]) == {**document, "key": "••••••"}


def test_a_viewer_reads_the_form_and_cannot_press(viewer: Client) -> None:
    page = viewer.get(START).content.decode()
    assert '<fieldset class="fields" disabled>' in page
    assert viewer.post(START, {"params": "{}", "op": "check"}).status_code == 403


def test_the_last_run_of_another_workflow_is_not_compared(operator: Client) -> None:
    factories.instance("complete", workflow="process-order", params={"customer": "Zoe"})
    assert "Changed from the last run" not in check(operator)
