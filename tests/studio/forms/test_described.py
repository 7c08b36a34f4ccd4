"""What somebody hears of a form who does not see it."""

from __future__ import annotations

import re
from collections import Counter
from typing import Literal

import pytest
from django.template.loader import render_to_string
from django.test import Client
from pydantic import BaseModel, Field

from engine import WorkflowStep, workflow
from studio.forms.building import build
from studio.forms.marking import marked
from tests.studio.forms.test_form import opened

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("declared")]
START = "/workflows/visit/start/"


class Train(BaseModel):
    """By rail."""

    kind: Literal["train"] = "train"
    seat: int = Field(ge=1, description="As on the ticket.")


class Walk(BaseModel):
    kind: Literal["walk"] = "walk"


class Stay(BaseModel):
    """Where to sleep."""

    nights: int = Field(1, ge=1)


class Visit(BaseModel):
    meal: Literal["soup", "rice"] = Field(description="What to cook.")
    way: Train | Walk = Field(discriminator="kind", description="How to come.")
    stay: Stay | None = None


@pytest.fixture
def declared(own_registry: None) -> None:
    @workflow("visit")
    async def visit(step: WorkflowStep, visit: Visit) -> None:
        """Come by."""


@pytest.fixture
def refused(operator: Client) -> str:
    """Return the page of a form with three problems."""
    sent = opened(operator, {"way": {"kind": "train", "seat": 0}, "stay": "long"}, "visit")
    answer = operator.post(START, sent)
    assert answer.status_code == 422
    return answer.content.decode()


def tag(page: str, start: str) -> str:
    found = re.search(rf"<{start}[^>]*>", page)
    assert found, start
    return found[0]


def test_an_input_with_a_problem_names_its_help_and_its_problem(refused: str) -> None:
    seat = tag(refused, 'input id="f/way/seat"')
    assert 'aria-describedby="f/way/seat-help f/way/seat-problem"' in seat
    assert 'aria-invalid="true"' in seat


def test_radios_name_their_help_and_their_problem(refused: str) -> None:
    meal = tag(refused, 'fieldset class="field" id="f/meal"')
    assert 'role="radiogroup"' in meal
    assert 'aria-describedby="f/meal-help f/meal-problem"' in meal
    assert 'aria-invalid="true"' in meal


def test_a_part_that_is_not_included_is_a_named_group(operator: Client) -> None:
    sent = opened(operator, {"meal": "soup", "way": {"kind": "walk"}}, "visit")
    page = operator.post(START, {**sent, "op": "check"}).content.decode()
    stay = tag(page, 'div class="field" id="f/stay"')
    assert 'role="group" aria-labelledby="f/stay-label"' in stay
    assert 'aria-describedby="f/stay-help"' in stay


def test_each_id_is_there_once_and_all_that_describe_something_exist(refused: str) -> None:
    ids = Counter(re.findall(r'\sid="([^"]+)"', refused))
    assert [name for name, number in ids.items() if number > 1] == []
    named = re.findall(r'aria-(?:describedby|labelledby)="([^"]+)"', refused)
    named += re.findall(r'\sfor="([^"]+)"', refused) + re.findall(r'href="#(f[^"]*)"', refused)
    assert {name for names in named for name in names.split()} <= ids.keys()


def test_a_choice_without_a_value_has_the_focus_on_its_first_radio() -> None:
    root = {"type": "object", "properties": {"meal": {"enum": ["soup", "rice"]}}, "required": ["meal"]}
    form = marked(build(root, {}), [], {}, None, ("meal",))
    page = render_to_string("studio/forms/control.html", {"control": form, "is_root": True})
    assert "data-fresh autofocus" in tag(page, 'input type="radio" name="f./meal" value="&quot;soup&quot;"')
    assert page.count("data-fresh") == 1
