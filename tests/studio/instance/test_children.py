"""The page of an instance that starts others, and of those that it started."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from engine.models import Instance
from studio.instance.queries import CHILDREN_SHOWN
from tests.studio import factories

pytestmark = pytest.mark.django_db


def child_of(parent: Instance, status: str = "waiting", **given: Any) -> Instance:
    return factories.child(parent, status, **given)


def page_of(client: Client, instance: Instance) -> str:
    return client.get(instance.get_absolute_url()).content.decode()


def test_children_are_listed_with_their_status_and_lead_back(operator: Client) -> None:
    parent = factories.instance("waiting", waiting_for="child")
    children = [child_of(parent), child_of(parent, "complete"), child_of(parent, "errored")]
    shown = page_of(operator, parent).split('id="children"')[1].split("</section>")[0]
    for child in children:
        assert f'href="{child.get_absolute_url()}"' in shown
        assert f'href="{parent.get_absolute_url()}#s-{child.parent_step}"' in page_of(operator, child)
    assert [word in shown for word in ("waiting", "complete", "errored", "paused")] == [
        True,
        True,
        True,
        False,
    ]


def test_the_sentence_names_a_child_as_its_row_does(operator: Client) -> None:
    parent = factories.instance("waiting", waiting_for="child")
    made_up = "0190a3f4-7c1e-7b52-9d0a-3f5b8c2e1d47"
    factories.child(parent, "waiting", id=made_up, params={"customer": "ACME", "cents": 990})
    page = page_of(operator, parent)
    sentence = page.partition('id="why"')[2].partition("</p>")[0]
    assert "Waits for child <code" in sentence
    assert "ACME" in sentence
    assert made_up not in sentence


def test_an_instance_without_children_says_nothing_of_them(operator: Client) -> None:
    assert "<h2>Children</h2>" not in page_of(operator, factories.instance())


def test_of_many_children_the_newest_are_listed(operator: Client) -> None:
    parent = factories.instance("running")
    for _ in range(CHILDREN_SHOWN + 2):
        child_of(parent)
    shown = page_of(operator, parent)
    assert shown.count("/workflows/invoices/instances/") >= CHILDREN_SHOWN
    assert f"The newest {CHILDREN_SHOWN} of {CHILDREN_SHOWN + 2}." in shown


def test_many_children_are_folded_to_their_counts(operator: Client) -> None:
    instance = factories.instance("running")
    for n in range(11):
        if n == 10:
            assert '<details class="fold" id="children-fold" open>' in page_of(operator, instance)
        factories.child(instance, "errored" if n % 5 == 0 else "complete", name=f"bill-{n}")
    page = page_of(operator, instance)
    assert '<details class="fold" id="children-fold">' in page
    fold = page[page.index('id="children-fold"') :]
    summary = re.sub(r"<[^>]*>", "", fold[fold.index("<summary>") : fold.index("</summary>")])
    assert " ".join(summary.split()) == "11 in all · 3 errored · 8 complete"


def test_what_an_instance_waits_for_is_named(operator: Client) -> None:
    parent = factories.instance("waiting", waiting_for="child")
    child_of(parent, "running", workflow="invoices", id="inv-7")
    shown = page_of(operator, parent)
    assert "Waits for child " in shown
    assert ">inv-7<" in shown
