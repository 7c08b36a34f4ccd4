"""The generations of an instance are a menu in the line of its tabs."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from tests.studio import factories
from tests.studio.instance.test_generations import page_of, restarted

pytestmark = pytest.mark.django_db


def menu(page: str) -> str:
    found = page[page.index('id="generation-menu"') :]
    return found[: found.index("</div>")]


def test_the_menu_leads_to_each_generation_and_to_a_comparison(viewer: Client) -> None:
    instance = restarted()
    found = menu(page_of(viewer, instance))
    assert "Generation 2 of 2" in found
    assert re.findall(r'<a class="item"\s+href="([^"]*)"', found) == [
        instance.get_absolute_url(),
        "?generation=1",
        f"?tab=compare&amp;with={instance.id}&amp;with_generation=1",
    ]


def test_an_earlier_generation_is_compared_from_its_own_side(viewer: Client) -> None:
    instance = restarted()
    found = menu(page_of(viewer, instance, "?generation=1"))
    assert "Generation 1 of 2" in found
    assert f"?generation=1&amp;tab=compare&amp;with={instance.id}&amp;with_generation=2" in found


def test_the_tabs_of_an_earlier_generation_stay_in_it(viewer: Client) -> None:
    page = page_of(viewer, restarted(), "?generation=1")
    assert "?generation=1&amp;tab=compare" in page


def test_one_that_was_never_restarted_has_no_menu(viewer: Client) -> None:
    assert menu(page_of(viewer, factories.instance())).startswith('id="generation-menu" hidden')
