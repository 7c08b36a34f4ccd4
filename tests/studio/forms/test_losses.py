"""Nothing that somebody types into a form is lost, and no press of a button changes another part than its own."""

from __future__ import annotations

import json
import re
from datetime import date, datetime, time
from typing import Any, Literal

import pytest
from django.test import Client
from pydantic import BaseModel, Field, SecretStr

from engine import WorkflowStep, workflow
from engine.models import Instance
from studio.forms.document import MISSING, put
from tests.studio.forms.as_sent import as_sent
from tests.studio.forms.test_form import opened, pressed, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("declared")]
START = "/workflows/ship/start/"


class Air(BaseModel):
    kind: Literal["air"] = "air"
    note: str = ""
    flight: str


class Sea(BaseModel):
    kind: Literal["sea"] = "sea"
    note: str = ""
    ship: str


class Box(BaseModel):
    code: SecretStr | None = None
    counts: list[int] = []
    way: Air | Sea | None = Field(None, discriminator="kind")


class Ship(BaseModel):
    counts: list[int] = []
    mixed: list[int | str] = []
    free: list[Any] = []
    labels: dict[str, int] = {}
    boxes: dict[str, Box] = {}
    extras: dict[str, dict[str, Any]] = {}
    cargo: list[Box] = []
    out: Air | Sea | None = Field(None, discriminator="kind")
    back: Air | Sea | None = Field(None, discriminator="kind")
    due: date | None = None
    at: datetime | None = None
    opens: time | None = None
    weight: float = 1.0
    parts: int = 1


@pytest.fixture
def declared(own_registry: None) -> None:
    @workflow("ship")
    async def ship(step: WorkflowStep, ship: Ship) -> None:
        """Send boxes."""

    @workflow("count")
    async def count(step: WorkflowStep, number: int) -> None:
        """Count to a number."""


def form_of(client: Client, document: object) -> dict[str, str]:
    return opened(client, document, "ship")


def after(client: Client, sent: dict[str, str], op: str = "check", **typed: str) -> Any:
    """Press a button, and return the document."""
    return json.loads(text_of(client, pressed(client, sent, op, "ship", **typed), "ship"))


class TestMembers:
    def test_an_emptied_item_stays_in_its_place_and_is_refused(self, operator: Client) -> None:
        sent = form_of(operator, {"counts": [1, 2, 3]})
        typed = {"f./counts/0": "", "f./counts/1": "", "f./counts/2": "4"}
        assert after(operator, sent, **typed) == {"counts": ["", "", 4]}
        answer = operator.post(START, {**sent, **typed})
        assert answer.status_code == 422
        assert 'id="f/counts/0-problem"' in answer.content.decode()
        assert not Instance.objects.exists()

    def test_an_emptied_value_of_a_map_keeps_its_entry(self, operator: Client) -> None:
        sent = form_of(operator, {"labels": {"a": 1, "b": 2}})
        assert after(operator, sent, **{"f./labels/a": ""}) == {"labels": {"a": "", "b": 2}}

    def test_an_emptied_alternative_of_an_item_keeps_the_item(self, operator: Client) -> None:
        sent = form_of(operator, {"mixed": [1, "x"]})
        assert after(operator, sent, **{"f./mixed/0": ""}) == {"mixed": ["", "x"]}

    def test_json_of_an_item_that_was_emptied_is_a_problem_unless_the_item_is_removed(
        self, operator: Client
    ) -> None:
        sent = form_of(operator, {"free": [1, {"a": 2}]})
        typed = {"f./free/0": " ", "f./free/1": "3"}
        page = operator.post(START, {**sent, **typed, "op": "check"}).content.decode()
        assert "Enter a value, such as null, or remove it." in page
        assert as_sent(page)["f./free/0"] == " "
        assert after(operator, sent, "remove:/free/0", **typed) == {"free": [3]}

    def test_a_value_for_an_item_that_is_not_there_is_an_error(self) -> None:
        for document, path in (
            ([1], (1,)),
            ([1], ("x",)),
            ([1], (-1,)),
            ("text", ("x",)),
            ({"a": 1}, ("a", "b")),
        ):
            with pytest.raises(LookupError):
                put(document, path, 2)
        assert put(MISSING, ("a", "b"), 2) == {"a": {"b": 2}}


class TestNames:
    BOXES: dict[str, Any] = {"boxes": {"a": {"counts": [1]}, "b": {"counts": [2]}}}

    @pytest.mark.parametrize(
        ("names", "op", "expected"),
        [
            ({"a": "c"}, "add:/boxes/a/counts", {"c": {"counts": [1, 0]}, "b": {"counts": [2]}}),
            ({"a": "c"}, "remove:/boxes/a", {"b": {"counts": [2]}}),
            ({"a": "c"}, "remove:/boxes/a/counts/0", {"c": {"counts": []}, "b": {"counts": [2]}}),
            ({"a": "b", "b": "a"}, "remove:/boxes/a", {"a": {"counts": [2]}}),
            ({"a": "b", "b": "a"}, "add:/boxes/b/counts", {"b": {"counts": [1]}, "a": {"counts": [2, 0]}}),
            ({"b": "x/y~"}, "add:/boxes/b/counts", {"a": {"counts": [1]}, "x/y~": {"counts": [2, 0]}}),
        ],
    )
    def test_a_button_acts_on_its_entry_although_the_entry_is_renamed(
        self, operator: Client, names: dict[str, str], op: str, expected: Any
    ) -> None:
        typed = {f"k./boxes/{before}": name for before, name in names.items()}
        assert after(operator, form_of(operator, self.BOXES), op, **typed) == {"boxes": expected}

    def test_the_chosen_alternative_moves_with_its_entry(self, operator: Client) -> None:
        sent = form_of(operator, {"boxes": {"a": {"way": {"kind": "air", "note": "n", "flight": "LH 1"}}}})
        sent = pressed(operator, sent, "pick:/boxes/a/way", "ship", **{"u./boxes/a/way": "1"})
        sent = pressed(
            operator, sent, "check", "ship", **{"k./boxes/a": "z", "f./boxes/a/way/ship": "Titanic"}
        )
        assert sent["o./boxes/z/way"] == "1"
        assert sent["f./boxes/z/way/ship"] == "Titanic"
        assert sent["f./boxes/z/way/note"] == "n"

    def test_json_that_cannot_be_read_stays_in_an_entry_that_is_renamed(self, operator: Client) -> None:
        sent = form_of(operator, {"extras": {"a": {}, "b": {}}})
        sent = pressed(operator, sent, "check", "ship", **{"k./extras/a": "c", "f./extras/a": "[1,"})
        assert (sent["k./extras/c"], sent["f./extras/c"]) == ("c", "[1,")

    def test_names_that_are_refused_stay_as_they_were_typed(self, operator: Client) -> None:
        sent = form_of(operator, {"labels": {"a": 1, "b": 2}})
        sent = pressed(operator, sent, "check", "ship", **{"k./labels/b": "a", "new./labels": "c"})
        assert (sent["k./labels/a"], sent["k./labels/b"], sent["new./labels"]) == ("a", "a", "c")
        sent = form_of(operator, {"labels": {"a": 1}})
        page = operator.post(START, {**sent, "k./labels/a": "x" * 300}).content.decode()
        assert "A name has at most 256 characters." in page
        assert as_sent(page)["k./labels/a"] == "x" * 300

    def test_a_new_name_counts_without_its_button_and_starts_nothing_yet(self, operator: Client) -> None:
        sent = form_of(operator, {"labels": {"a": 1}, "extras": {}})
        answer = operator.post(START, {**sent, "new./labels": "b", "new./extras": "c"})
        page = answer.content.decode()
        assert (answer.status_code, Instance.objects.exists()) == (200, False)
        assert "Not sent yet" in page
        sent = as_sent(page)
        assert operator.post(START, {**sent, "f./labels/b": "5", "f./extras/c": "{}"}).status_code == 302
        found = Instance.objects.get().params
        assert (found["labels"], found["extras"]) == ({"a": 1, "b": 5}, {"c": {}})

    def test_a_new_name_is_kept_by_every_other_button(self, operator: Client) -> None:
        sent = form_of(operator, {"labels": {"a": 1}, "counts": []})
        found = after(operator, sent, "add:/counts", **{"new./labels": "b", "k./labels/a": "c"})
        assert found == {"labels": {"c": 1, "b": 0}, "counts": [0]}


class TestSecrets:
    def origins(self, client: Client, document: object, op: str, **typed: str) -> dict[str, str]:
        """Return where the page says that each secret was before, which is what a script fills in again."""
        page = client.post(START, {**form_of(client, document), **typed, "op": op}).content.decode()
        return dict(re.findall(r'name="f\.([^"]*/code)" type="password"[^>]*data-before="f\.([^"]+)"', page))

    def test_a_typed_secret_follows_its_entry(self, operator: Client) -> None:
        boxes = {"boxes": {"a": {"code": "***"}, "b": {"code": "***"}}}
        names = {"k./boxes/a": "b", "k./boxes/b": "c", "new./boxes": "a"}
        found = self.origins(operator, boxes, "check", **names)
        assert found == {"/boxes/b/code": "/boxes/a/code", "/boxes/c/code": "/boxes/b/code"}

    @pytest.mark.parametrize(
        ("op", "expected"),
        [
            ("up:/cargo/1", {0: 1, 1: 0, 2: 2}),
            ("down:/cargo/1", {0: 0, 1: 2, 2: 1}),
            ("remove:/cargo/0", {0: 1, 1: 2}),
            ("add:/cargo", {0: 0, 1: 1, 2: 2}),
        ],
    )
    def test_a_typed_secret_follows_its_item(
        self, operator: Client, op: str, expected: dict[int, int]
    ) -> None:
        found = self.origins(operator, {"cargo": [{"code": "***"}] * 3}, op)
        assert found == {f"/cargo/{now}/code": f"/cargo/{before}/code" for now, before in expected.items()}

    def test_a_typed_secret_is_wrong_only_where_it_has_to_be_typed_again(self, operator: Client) -> None:
        sent = form_of(operator, {"cargo": [{"code": "***"}, {"code": "***"}]})
        typed = {"f./cargo/1/code": "canary-4711", "op": "down:/cargo/0"}
        pages = [
            operator.post(START, {**sent, **typed}, headers=headers).content.decode()
            for headers in ({"HX-Request": "true"}, {})
        ]
        kept, gone = (
            set(re.findall(r"cargo/(\d)/code</code></a>: This is the mask", page)) for page in pages
        )
        assert (kept, gone) == ({"1"}, {"0", "1"})
        assert "canary-4711" not in "".join(pages)


class TestKinds:
    AIR: dict[str, Any] = {"kind": "air", "note": "n", "flight": "1"}

    def test_all_kinds_change_and_the_button_counts_without_a_script(self, operator: Client) -> None:
        sent = form_of(operator, {"out": self.AIR, "back": self.AIR, "counts": [], "labels": {}})
        typed = {"u./out": "1", "u./back": "1", "f./parts": "7", "new./labels": "x"}
        found = after(operator, sent, "add:/counts", **typed)
        sea = {"kind": "sea", "note": "n", "ship": ""}
        assert found == {"out": sea, "back": sea, "counts": [0], "parts": 7, "labels": {"x": 0}}

    def test_a_button_in_a_part_moves_with_a_kind_that_was_changed_in_it(self, operator: Client) -> None:
        sent = form_of(operator, {"cargo": [{"way": self.AIR}, {"counts": [5]}]})
        sent = pressed(operator, sent, "down:/cargo/0", "ship", **{"u./cargo/0/way": "1"})
        assert (sent["o./cargo/1/way"], sent["f./cargo/0/counts/0"]) == ("1", "5")

    def test_the_same_kind_again_changes_nothing(self, operator: Client) -> None:
        document = {"out": {**self.AIR, "unknown": [1]}}
        assert after(operator, form_of(operator, document), "pick:/out", **{"u./out": "0"}) == document

    def test_a_kind_waits_for_what_cannot_be_read_elsewhere(self, operator: Client) -> None:
        sent = form_of(operator, {"out": self.AIR, "free": [1]})
        sent = pressed(operator, sent, "check", "ship", **{"u./out": "1", "f./free/0": "{"})
        assert (sent["o./out"], sent["u./out"], sent["f./free/0"]) == ("0", "1", "{")
        sent = pressed(operator, sent, "check", "ship", **{"f./free/0": "{}"})
        assert (sent["o./out"], sent["f./out/ship"]) == ("1", "")


class TestNumbers:
    @pytest.mark.parametrize("digits", ["9" * 5_000, "9" * 25, "-" + "9" * 19])
    def test_a_number_of_too_many_digits_stays_and_is_explained(self, operator: Client, digits: str) -> None:
        answer = operator.post(START, {**form_of(operator, {"parts": 2}), "f./parts": digits})
        page = answer.content.decode()
        assert answer.status_code == 422
        assert "The integer does not fit in 64 bits." in page
        assert as_sent(page)["f./parts"] == digits

    def test_a_number_beyond_all_floats_stays_and_is_explained(self, operator: Client) -> None:
        page = operator.post(START, {**form_of(operator, {}), "f./weight": "1e999"}).content.decode()
        assert "too large for a floating-point number" in page
        assert as_sent(page)["f./weight"] == "1e999"

    def test_minus_zero_stays_minus_zero(self, operator: Client) -> None:
        text = text_of(operator, form_of(operator, {}), "ship", **{"f./weight": "-0"})
        assert '"weight": -0' in text
        text = text_of(operator, opened(operator, text, "ship"), "ship", **{"f./parts": "-0"})
        assert re.findall(r": (.*?),?\n", text) == ["-0", "-0"]


class TestDates:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("due", "2026-02-30"),
            ("due", "0000-01-01"),
            ("opens", "24:00"),
            ("opens", "10:60:00"),
            ("at", "2026-02-30T10:00:00Z"),
            ("at", "2026-12-01T25:00:00Z"),
        ],
    )
    def test_a_day_or_time_that_no_picker_shows_is_a_text(
        self, operator: Client, name: str, value: str
    ) -> None:
        given = {"tab": "json", "params": json.dumps({name: value}), "op": "tab:form"}
        page = operator.post(START, given).content.decode()
        assert re.search(rf'name="f\./{name}" type="text" value="{value}"', page)

    @pytest.mark.parametrize(
        ("name", "type", "value"),
        [
            ("due", "date", "2028-02-29"),
            ("opens", "time", "23:59:59.5"),
            ("at", "datetime-local", "2026-12-01T10:00"),
        ],
    )
    def test_others_have_a_picker(self, operator: Client, name: str, type: str, value: str) -> None:
        given = {"tab": "json", "params": json.dumps({name: value}), "op": "tab:form"}
        page = operator.post(START, given).content.decode()
        assert re.search(rf'name="f\./{name}" type="{type}" value="{value}"', page)


@pytest.mark.parametrize("op", ["", "check", "remove:", "leave-out:", "include:", "tab:json"])
def test_params_of_one_value_may_be_emptied(operator: Client, op: str) -> None:
    sent = opened(operator, 5, "count")
    answer = operator.post("/workflows/count/start/", {**sent, "f.": "", "op": op})
    assert answer.status_code in (200, 422)
    assert as_sent(answer.content.decode())["params"].strip() == ""
    assert not Instance.objects.exists()
