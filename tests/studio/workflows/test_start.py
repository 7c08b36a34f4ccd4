"""Starting from the form: checked as it is typed, and nothing started on bad input."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.utils import timezone

from engine.models import Audit, Instance
from engine.values.identity import new_instance_id
from tests.studio import factories

pytestmark = pytest.mark.django_db
START = "/workflows/process-order/start/"
CHECK = "/_f/workflows/process-order/check/"
GOOD = '{"customer": "Ana", "items": [{"sku": "a-1", "quantity": 2}]}'


def form(text: str = GOOD, **given: str) -> dict[str, str]:
    return {"params": text, "token": new_instance_id(), "id": "", "tags": "", **given}


def marks(page: str) -> list[tuple[int, int]]:
    return [(int(a), int(b)) for a, b in re.findall(r'data-from="(\d+)" data-to="(\d+)"', page)]


def test_the_form_begins_with_an_example_and_the_schema(operator: Client) -> None:
    page = operator.get(f"{START}?tab=json").content.decode()
    assert "&quot;customer&quot;: &quot;&quot;" in page
    assert "list of object · at least 1 item" in page
    assert not marks(page)


def test_a_good_form_starts_one_instance_and_leads_to_it(operator: Client) -> None:
    answer = operator.post(START, form(tags="eu, urgent"))
    (instance,) = Instance.objects.all()
    assert (answer.status_code, answer.headers["Location"]) == (302, instance.get_absolute_url())
    assert (instance.started_by, instance.tags) == ("oli", ["eu", "urgent"])
    assert instance.params["customer"] == "Ana"
    assert Audit.objects.get().verb == "start"


def test_a_double_click_starts_one(operator: Client) -> None:
    sent = form()
    answers = [operator.post(START, sent) for _ in range(3)]
    assert Instance.objects.count() == 1
    assert len({answer.headers["Location"] for answer in answers}) == 1


def test_a_double_click_with_an_own_id_starts_one(operator: Client) -> None:
    sent = form(id="order-7")
    answers = [operator.post(START, sent) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [302, 302]
    assert Instance.objects.count() == 1


def test_an_old_form_with_other_parameters_starts_another(operator: Client) -> None:
    sent = form()
    operator.post(START, sent)
    operator.post(START, sent | {"params": GOOD.replace("Ana", "Bo")})
    assert sorted(i.params["customer"] for i in Instance.objects.all()) == ["Ana", "Bo"]


def test_an_id_in_use_is_refused_and_what_was_typed_is_kept(operator: Client) -> None:
    factories.instance(workflow="process-order", id="order-7")
    answer = operator.post(START, form(id="order-7", tags="eu"))
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "order-7 is in use" in page
    assert 'value="order-7"' in page
    assert 'value="eu"' in page
    assert Instance.objects.count() == 1


def test_it_can_begin_with_the_parameters_of_another_instance(operator: Client) -> None:
    factories.instance("complete", workflow="process-order", id="before", params={"customer": "Cleo"})
    assert "Cleo" in operator.get(f"{START}?from=before").content.decode()
    assert operator.get(f"{START}?from=no%00where").status_code == 200


def test_a_workflow_without_parameters_takes_an_empty_form(operator: Client) -> None:
    assert operator.post("/workflows/tick/start/", form("")).status_code == 302
    assert Instance.objects.get().params is None


def test_a_typing_error_is_marked_at_its_place(operator: Client) -> None:
    text = '{\n  "customer": "Ana",\n  "items": [}\n}'
    answer = operator.post(START, form(text))
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "line 3, column 13" in page
    assert marks(page) == [(text.index("}"), text.index("}") + 1)]
    assert 'role="alert"' in page


def test_a_wrong_field_is_marked_at_its_place_also_behind_wide_characters(operator: Client) -> None:
    text = '{"customer": "😀", "items": [{"sku": "a", "quantity": 0}]}'
    page = operator.post(START, form(text)).content.decode()
    at = text.index("0}")
    assert marks(page) == [(at + 1, at + 2)]  # an emoji counts as two in the browser
    assert "items/0/quantity" in page


def test_a_missing_field_is_named(operator: Client) -> None:
    page = operator.post(START, form('{"items": []}')).content.decode()
    assert "customer" in page
    assert len(marks(page)) == 2


BAD = [
    "",
    "null",
    "[]",
    "{",
    '{"a":1}x',
    "{'customer': 1}",
    GOOD[:-1] + ",}",
    "NaN",
    '{"customer": NaN, "items": []}',
    '{"customer": 1e400}',
    '{"customer": "a\\u0000b", "items": [{"sku": "x", "quantity": 1}]}',
    '{"customer": "\\ud800", "items": [{"sku": "x", "quantity": 1}]}',
    '{"customer": "a", "customer": "b", "items": [{"sku": "x", "quantity": 1}]}',
    "[" * 100 + "]" * 100,
    "[" * 20_000,
    "1" * 5_000,
    '{"customer": "' + "x" * (1024 * 1024) + '"}',
    "\ufeff" + GOOD,
    "\x00",
    '"' + "\x01" + '"',
]


@pytest.mark.parametrize(
    "text", BAD, ids=[text[:20].encode("unicode_escape").decode() or "empty" for text in BAD]
)
def test_bad_parameters_start_nothing_and_say_why(operator: Client, text: str) -> None:
    """LC-47"""
    answer = operator.post(START, form(text))
    assert answer.status_code == 422
    assert "Not started" in answer.content.decode()
    assert not Instance.objects.exists()
    assert operator.post(CHECK, form(text)).status_code == 200
    assert operator.get("/instances/").status_code == 200


BAD_IDS = [
    "../../x",
    "a/b",
    "a\u202eb",
    "a b",
    "Ⓐ",
    "{" + "0" * 36 + "}",
    "<script>",
    "😀",
    "-a",
    "x" * 101,
    "a\x00b",
]


@pytest.mark.parametrize("id", BAD_IDS, ids=[bad.encode("unicode_escape").decode()[:20] for bad in BAD_IDS])
def test_what_cannot_be_an_id_is_refused(operator: Client, id: str) -> None:
    answer = operator.post(START, form(id=id))
    assert answer.status_code == 422
    assert "<script>alert" not in answer.content.decode()
    assert not Instance.objects.exists()


def test_ids_differ_by_case(operator: Client) -> None:
    operator.post(START, form(id="A"))
    assert operator.post(START, form(id="a")).status_code == 302


@pytest.mark.parametrize("tags", ["x" * 101, ",".join(map(str, range(60))), "a\x00b"])
def test_what_cannot_be_tags_is_refused(operator: Client, tags: str) -> None:
    assert operator.post(START, form(tags=tags)).status_code == 422
    assert not Instance.objects.exists()


def test_a_made_up_token_is_replaced(operator: Client) -> None:
    operator.post(START, form(token="../../evil"))
    assert re.fullmatch(r"[0-9a-f-]{36}", Instance.objects.get().id)


class TestCheck:
    """The panel beside the form. It writes nothing."""

    def check(self, client: Client, **given: Any) -> str:
        before = Instance.objects.count()
        page = client.post(CHECK, form(**given)).content.decode()
        assert Instance.objects.count() == before
        return page

    def test_good_parameters_fit(self, operator: Client) -> None:
        assert "The parameters are valid." in self.check(operator)

    def test_a_duplicate_id_is_told(self, operator: Client) -> None:
        factories.instance(workflow="process-order", id="order-7")
        assert "order-7 is in use" in self.check(operator, id="order-7")

    def test_it_says_whether_a_worker_serves_it(self, operator: Client) -> None:
        assert "No worker serves this workflow" in self.check(operator)
        factories.workers(["process-order"], count=2, held=5)
        page = " ".join(self.check(operator).split())
        assert "Served by 2 workers, 10 of 128 slots busy, seen <time" in page

    def test_a_worker_not_seen_for_a_while_serves_nothing(self, operator: Client) -> None:
        factories.workers(["process-order"], seen_at=factories.ago(seconds=30))
        assert "No worker serves this workflow" in self.check(operator)

    def test_every_problem_is_listed_with_its_path(self, operator: Client) -> None:
        page = self.check(operator, text=json.dumps({"customer": 1, "items": [{"sku": "", "quantity": "x"}]}))
        for path in ("customer", "items/0/sku", "items/0/quantity"):
            assert f"<code>{path}</code>" in page


def test_an_unknown_workflow_cannot_be_started(operator: Client) -> None:
    for where in ("/workflows/nowhere/start/", "/_f/workflows/nowhere/check/"):
        answer = operator.post(where, form())
        assert answer.status_code == 404
        assert b"<b>" not in answer.content


class TestLater:
    def moment(self, **ahead: float) -> datetime:
        return (timezone.now() + timedelta(**ahead)).replace(microsecond=0)

    def test_a_time_with_its_zone_queues_the_instance_until_then(self, operator: Client) -> None:
        at = self.moment(hours=3)
        local = (at + timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%S")
        operator.post(START, form(at=local, **{"at-zone": "+02:00"}))
        instance = Instance.objects.get()
        assert (instance.starts_at, instance.status) == (at, "queued")
        assert "Starts" in operator.get(instance.get_absolute_url()).content.decode()
        listed = operator.get("/instances/").content.decode()
        assert "starts <time" in listed
        assert 'data-kind="since"' not in listed

    def test_the_form_is_for_now_unless_the_address_says_when(self, operator: Client) -> None:
        assert re.search(r'name="at" type="datetime-local" value=""', operator.get(START).content.decode())
        page = operator.get(f"{START}?at=2026-12-01T09:00%2B01:00").content.decode()
        assert 'name="at" type="datetime-local" value="2026-12-01T09:00"' in page
        assert 'name="at-zone" value="+01:00"' in page

    @pytest.mark.parametrize(
        ("local", "zone", "rule"),
        [
            ("2999-12-01T09:00", "Z", "is more than 365 days away"),
            ("tomorrow", "Z", "&quot;tomorrowZ&quot; is not a date and time"),
            ("2026-12-01T09:00", "Berlin", "&quot;2026-12-01T09:00Berlin&quot; is not a date and time"),
        ],
    )
    def test_a_wrong_time_is_named_and_kept(self, operator: Client, local: str, zone: str, rule: str) -> None:
        answer = operator.post(START, form(at=local, **{"at-zone": zone}))
        page = answer.content.decode()
        assert (answer.status_code, Instance.objects.count()) == (422, 0)
        assert rule in page
        assert 'href="#at"' in page
        assert f'value="{local}"' in page

    def test_a_time_that_has_passed_is_now(self, operator: Client) -> None:
        operator.post(START, form(at="2020-01-01T00:00", **{"at-zone": "Z"}))
        assert Instance.objects.get().starts_at is None

    def test_a_double_click_starts_one_and_another_time_starts_another(self, operator: Client) -> None:
        sent = form(at=self.moment(hours=3).strftime("%Y-%m-%dT%H:%M"))
        for _ in range(2):
            operator.post(START, sent)
        assert Instance.objects.count() == 1
        operator.post(START, sent | {"at": self.moment(hours=4).strftime("%Y-%m-%dT%H:%M")})
        assert Instance.objects.count() == 2

    def test_the_check_says_when_it_starts_and_copies_have_the_time(self, operator: Client) -> None:
        at = self.moment(hours=3).strftime("%Y-%m-%dT%H:%M")
        page = unescape(operator.post(CHECK, form(at=at)).content.decode())
        assert "Until then it is queued" in page
        assert f'"at": "{at}Z"' in page
        assert f"at='{at}Z'" in page
        assert f"--at={at}Z" in page
        assert urlencode({"at": f"{at}Z"}) in page
