"""The start form in an address: what is copied as one opens the same form, or is not offered, with the reason."""

from __future__ import annotations

import cProfile
import html
import json
import re
import timeit
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from time import process_time
from typing import Any, Literal
from urllib.parse import urlencode, urlsplit

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, SecretStr

from engine import WorkflowStep, workflow
from engine.declare.registry import workflows as registry
from studio.workflows.copy_as import without_secrets
from tests.studio.forms.as_sent import as_sent

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("declared")]
START, CHECK = "/workflows/bill/start/", "/_f/workflows/bill/check/"
SMALLEST = {"name": "Ana", "key": "canary-4711"}


class Bill(BaseModel):
    model_config = ConfigDict(extra="allow")

    name: str
    key: SecretStr
    note: str | None = None
    why: str | None = "unknown"
    price: Decimal = Decimal("1.10")
    level: Literal["low", "1"] | None = None
    is_paid: bool | None = False
    tags: list[str] = []
    about: dict[str, str] = {}
    anything: Any = None
    keys: list[SecretStr] = []


@pytest.fixture
def declared(own_registry: None) -> None:
    @workflow("bill")
    async def bill(step: WorkflowStep, params: Bill) -> None: ...

    @workflow("names")
    async def names(step: WorkflowStep, params: dict[str, str]) -> None: ...

    @workflow("count")
    async def count(step: WorkflowStep, params: float) -> None: ...


def panel(client: Client, document: object, where: str = CHECK, **given: str) -> str:
    text = document if isinstance(document, str) else json.dumps(document)
    return " ".join(client.post(where, {"params": text, **given}).content.decode().split())


def copied(page: str) -> dict[str, str]:
    found = re.findall(r'data-copy="([^"]*)"\s+aria-label="Copy as ([^"]*)"', page)
    return {name: html.unescape(text) for text, name in found}


def opened(client: Client, query: str, where: str = START) -> Any:
    """Return the params of the form that an address opens, without secrets."""
    page = client.get(f"{where}?{query}").content.decode()
    found = json.loads(as_sent(page)["params"], parse_float=str)
    found.pop("key", None)
    return found


def reason(page: str) -> str:
    """Return what stands in place of the address, as a person reads it."""
    (text,) = re.findall(r'<strong>URL</strong> </span> <span class="muted small">(.*?)</span>', page)
    return html.unescape(" ".join(re.sub(r"<[^>]*>", "", text).split()))


texts = st.one_of(
    st.sampled_from(
        ["null", "1", "1.50", "true", '"a"', "[]", "{}", "a.b&c=d+e%20", " a\n b ", "", "é😀", "low"]
    ),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8),
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.sampled_from([1.5, 0.1, 1e-9]) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts.filter(bool), inner, max_size=3),
    max_leaves=5,
)
bills = st.fixed_dictionaries(
    {"name": texts, "key": st.just("canary-4711")},
    optional={
        "note": st.none() | texts,
        "why": st.none() | texts,
        "price": st.sampled_from(["12.50", 12.5, 3, "1.10"]),
        "level": st.sampled_from([None, "low", "1"]),
        "is_paid": st.none() | st.booleans(),
        "tags": st.lists(texts, max_size=3),
        "about": st.dictionaries(texts, texts, max_size=3),
        "anything": values,
        "keys": st.just(["canary-1", "canary-2"]),
        "odd": values,
        "with.dot": values,
    },
)


@given(bill=bills)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_address_opens_the_same_params_or_is_not_offered(operator: Client, bill: dict[str, Any]) -> None:
    page = panel(operator, bill)
    found = copied(page)
    assert "Python" in found
    assert "canary" not in "".join(found.values())
    if "URL" not in found:
        assert reason(page)
        return
    expected = json.loads(json.dumps(bill), parse_float=str)
    del expected["key"]
    expected |= {"keys": []} if "keys" in expected else {}
    assert opened(operator, urlsplit(found["URL"]).query) == expected


class TestWhatAnAddressHolds:
    def query(self, client: Client, **more: object) -> str:
        return urlsplit(copied(panel(client, {**SMALLEST, **more}))["URL"]).query

    def test_a_decimal_keeps_its_digits(self, operator: Client) -> None:
        query = self.query(operator, price="12.50")
        assert "p.price=12.50" in query
        assert opened(operator, query)["price"] == "12.50"

    def test_fields_that_are_left_out_stay_out(self, operator: Client) -> None:
        query = self.query(operator, note="now")
        assert "without=why&without=price" in query
        assert opened(operator, query) == {"name": "Ana", "note": "now"}

    def test_null_is_kept_where_it_is_the_default(self, operator: Client) -> None:
        assert opened(operator, self.query(operator, note=None))["note"] is None

    def test_texts_of_a_map_are_without_quotes(self, operator: Client) -> None:
        check, start = CHECK.replace("bill", "names"), START.replace("bill", "names")
        query = urlsplit(copied(panel(operator, {"a": "12", "b": "x"}, check))["URL"]).query
        assert query == "p.a=12&p.b=x"
        assert opened(operator, query, start) == {"a": "12", "b": "x"}


class TestWhatAnAddressCannotHold:
    def test_null_where_text_is_wanted_and_a_name_with_a_dot_are_named(self, operator: Client) -> None:
        page = panel(operator, {**SMALLEST, "why": None, "a.b": 1})
        assert reason(page) == "An address cannot hold why, a.b."
        assert {"curl", "Python", "Command line"} == copied(page).keys()

    def test_a_hundred_values_are_offered_and_more_are_not(self, operator: Client) -> None:
        check = CHECK.replace("bill", "names")
        hundred = {f"n{number}": "x" for number in range(100)}
        query = urlsplit(copied(panel(operator, hundred, check))["URL"]).query
        assert opened(operator, query, START.replace("bill", "names")) == hundred
        page = panel(operator, {**hundred, "more": "x"}, check)
        assert reason(page) == "An address has at most 100 values and 4,000 characters."

    def test_the_id_and_the_tags_are_said_to_be_left_out(self, operator: Client) -> None:
        assert "Without its ID and tags." in panel(operator, SMALLEST, id="bill-7", tags="eu")
        assert "Without its" not in panel(operator, SMALLEST)


class TestNamesInTheAddress:
    """Of a name without a place, the page says so. Whatever it is, it opens."""

    TOO_DEEP = ".".join(["free", *["a"] * 64])

    @pytest.mark.parametrize(
        "name",
        ["tags.0000009", "tags." + "0" * 5_000, "tags.1", "tags.٠", "free" + ".a" * 1_500, TOO_DEEP],
        ids=["leading-zeros", "digits", "beyond", "not-ascii", "parts", "one-part-too-many"],
    )
    def test_a_name_without_a_place_changes_nothing(self, operator: Client, name: str) -> None:
        before = opened(operator, urlencode({"p.tags": '["a"]'}))
        answer = operator.get(START, {"p.tags": '["a"]', f"p.{name}": "x"})
        page = answer.content.decode()
        assert answer.status_code == 200
        assert f"Not filled in from the address: {name[:40]}" in page
        assert json.loads(as_sent(page)["params"], parse_float=str) == {**before, "key": "••••••"}

    def test_a_name_may_have_as_many_parts_as_a_document_has_levels(self, operator: Client) -> None:
        page = operator.get(START, {f"p.{self.TOO_DEEP.removesuffix('.a')}": "1"}).content.decode()
        assert "Not filled in" not in page

    def test_values_beyond_the_hundredth_are_named(self, operator: Client) -> None:
        query = {f"p.n{number}": "x" for number in range(102)}
        page = operator.get(START.replace("bill", "names"), query).content.decode()
        assert "Not filled in from the address: n100, n101." in page

    def test_a_field_that_cannot_be_left_out_is_named(self, operator: Client) -> None:
        page = operator.get(START, {"without": ["note", "name.first", ""]}).content.decode()
        assert "Not filled in from the address: name.first, ." in page
        assert "note" not in json.loads(as_sent(page)["params"])


class TestWork:
    """What a page costs, counted in calls: seconds differ between machines."""

    def test_secrets_are_searched_once_for_all_values(self, operator: Client) -> None:
        query = {f"p.n{number}": "x" for number in range(100)}
        calls = called(lambda: operator.get(START, query))
        assert calls["address.py", "_path"] == 100
        assert calls["address.py", "_at_secrets"] == 1

    def test_params_that_are_too_large_are_not_written_as_python(self, operator: Client) -> None:
        large = {**SMALLEST, "anything": [[number] for number in range(20_000)]}
        calls = called(lambda: self.check_too_large(operator, large))
        assert not [function for file, function in calls if file == "pprint.py"]

    def check_too_large(self, client: Client, document: object) -> None:
        page = panel(client, document)
        assert page.count("The parameters are too large for this.") == 4
        assert not copied(page)

    def test_the_newest_instance_is_read_without_what_came_out(self, operator: Client) -> None:
        with CaptureQueriesContext(connection) as queries:
            panel(operator, SMALLEST)
            operator.get(START, {"from": "last"})
        read = [query["sql"] for query in queries if '"engine_instance"."params"' in query["sql"]]
        assert len(read) == 3
        assert not [sql for sql in read if re.search('"(output|error|pause_reason)"', sql)]

    def test_four_times_the_secrets_are_not_sixteen_times_the_work(self) -> None:
        root = registry["bill"].params_schema()

        def seconds(count: int) -> float:
            document = {**SMALLEST, "keys": ["canary"] * count}
            return min(
                timeit.repeat(lambda: without_secrets(document, root), timer=process_time, number=1, repeat=3)
            )

        assert seconds(12_000) < 10 * seconds(3_000)


def called(act: Callable[[], object]) -> Counter[tuple[str, str]]:
    """Return how often each function was called, by file and name."""
    profile = cProfile.Profile()
    profile.runcall(act)
    profile.create_stats()
    return Counter({(Path(file).name, name): row[0] for (file, _, name), row in profile.stats.items()})
