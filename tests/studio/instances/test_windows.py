"""A search that looks at the newest instances in portions: what it looks at is exact, and it costs one reading."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from engine.models import Instance
from engine.status.searching import candidates, windows
from engine.status.searching.searching import search
from engine.values.query.order import Sort
from engine.values.query.parsing import parse
from tests.studio import factories

pytestmark = pytest.mark.django_db

# Whose the instances are, from the oldest on: of users, or of the system.
MIXTURES = (
    "uuuuuuuuuuuu",
    "uuusuuuuuuuu",
    "suususuusuus",
    "ssssssuuuuuu",
    "uuuuuussssss",
    "uuussssssssu",
    "ssss",
)


def start(mixture: str) -> None:
    for whose in mixture:
        factories.instance(workflow="reprise.bulk" if whose == "s" else "orders")


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize("sort", ["-started", "started", "-duration"])
@pytest.mark.parametrize("most", [1, 3, 5, 100])
def test_it_looks_at_exactly_as_many_of_users_as_it_may(
    monkeypatch: pytest.MonkeyPatch, mixture: str, sort: str, most: int
) -> None:
    monkeypatch.setattr(windows, "FIRST", 2)
    start(mixture)
    wanted = [*Instance.objects.of_users().order_by("key").values_list("key", flat=True)]
    if sort != "started":
        wanted.reverse()

    found, cursor = list[int](), ""
    while True:
        page = search(parse("-id:none"), workflows=None, sort=Sort.of(sort), window=most, before=cursor)
        if page.searched.rows is not None:
            assert page.searched.rows == most
            assert page.searched.of == len(wanted)
        if sort == "-duration":  # a window at a time; within one, by another order
            assert {*page.keys} == {*wanted[len(found) : len(found) + most]}
        found += page.keys
        cursor = page.older or page.searched.go_on
        if not cursor:
            break
    assert sorted(found) == sorted(wanted)
    assert sort == "-duration" or found == wanted


def test_where_a_portion_ends_is_asked_of_the_keys_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "FIRST", 2)
    start("u" * 12)
    with CaptureQueriesContext(connection) as asked:
        search(parse("-id:none"), workflows=None, window=6)
    ends = [one["sql"] for one in asked.captured_queries if "OFFSET" in one["sql"]]
    assert ends
    assert not [sql for sql in ends if '"workflow"' in sql]


def test_a_page_and_its_counts_look_the_same_id_up_once(
    monkeypatch: pytest.MonkeyPatch, viewer: Client
) -> None:
    monkeypatch.setattr(candidates, "MOST_ALIKE", 1)
    made = [factories.instance("errored", id=f"order-{n}") for n in range(3)]
    with CaptureQueriesContext(connection) as asked:
        answer = viewer.get(reverse("studio:instances"), {"q": "order-", "status": "errored"})
    assert all(f'id="i-{one.key}"' in answer.content.decode() for one in made)
    looked_up = [one["sql"] for one in asked.captured_queries if re.search(r"LIKE.* LIMIT 2\b", one["sql"])]
    assert len(looked_up) == 1
