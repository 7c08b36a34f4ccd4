"""Values that JSON or PostgreSQL cannot hold, at every entrance of the API.

The client gets a 4xx that names the place and the rule, nothing is half-written, and all pages can still be read.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from engine.models import Event, Instance
from tests.studio.api.conftest import Program
from tests.studio.api.hostile.values import (
    INSTANCES,
    NAMES,
    PLACES,
    REFUSED,
    STORED,
    as_text,
    entrances,
    nested,
)


@pytest.mark.parametrize("entrance", NAMES)
def test_values_that_cannot_be_stored_are_refused_with_their_place_and_nothing_is_written(
    program: Program, asking: Callable[[], str], rows: Callable[[], dict[str, int]], entrance: str
) -> None:
    path, body = entrances(asking)[entrance]
    before = rows()
    found = {}
    for case, (text, _) in REFUSED.items():
        answer = program.post(path, body.replace(b"%s", text), Idempotency_Key=case)
        document = json.loads(answer.content)
        [wrong] = document["errors"]
        assert answer["Content-Type"] == "application/problem+json"
        assert "line 1, column" in wrong["message"]
        assert len(answer.content) < 2_000
        place = PLACES.get(entrance, "params")  # known as far as the text can be read
        assert wrong["path"].startswith(place) or place.startswith(wrong["path"])
        found[case] = answer.status_code, wrong["code"]
    assert found == {case: (400, code) for case, (_, code) in REFUSED.items()}
    assert rows() == before


@pytest.mark.parametrize("entrance", NAMES)
def test_values_that_can_be_stored_come_back_as_they_were_sent(
    program: Program, asking: Callable[[], str], entrance: str
) -> None:
    found = {}
    # An answer is stored with its comment, in an object.
    taken = len(b'{"value":"","comment":""}') if entrance == "answer" else len(b'""')
    deepest, longest = nested(63 if entrance == "answer" else 64), b'"%s"' % (b"x" * (2**20 - taken))
    cases = STORED | {"the deepest": (deepest, deepest), "the longest": (longest, longest)}
    for case, (text, _) in cases.items():
        path, body = entrances(asking)[entrance]
        answer = program.post(path, body.replace(b"%s", text))
        assert answer.status_code in (200, 201, 202), answer.content[:500]
        found[case] = stored(program, entrance, json.loads(answer.content))
    assert found == {case: text for case, (_, text) in cases.items()}


def stored(program: Program, entrance: str, document: Any) -> bytes:
    """Return the text of a value as the API gives it back."""
    if entrance in ("start", "batch"):
        made = document["instance"] if entrance == "start" else document["created"][0]
        return program.get(f"{INSTANCES}/{made['id']}/payloads/params").content
    listed = program.get(f"{INSTANCES}/{document['instance']['id']}/events?limit=1").content
    payload = json.loads(listed)["events"][0]["payload"]
    return as_text(payload["value"] if entrance == "answer" else payload)


@pytest.mark.parametrize("entrance", NAMES)
def test_values_over_a_limit_are_refused_with_the_limit(
    program: Program, asking: Callable[[], str], rows: Callable[[], dict[str, int]], entrance: str
) -> None:
    path, body = entrances(asking)[entrance]
    before = rows()
    for text, said in ((b'"%s"' % (b"x" * (2**20 - 1)), "1,048,576"), (nested(65), "64 levels")):
        answer = program.post(path, body.replace(b"%s", text))
        document = json.loads(answer.content)
        if entrance == "batch":
            assert (answer.status_code, document["created"]) == (200, [])
            assert said in document["errors"][0]["message"]
        else:
            assert answer.status_code == 422
            assert said in document["detail"]
            assert document["errors"][0]["path"].startswith(PLACES.get(entrance, "params"))
    assert rows() == before


PAGES = (
    "/workflows/sink/instances/{id}/",
    "/workflows/sink/instances/{id}/payload/params/",
    "/workflows/sink/instances/{id}/restart/",
    "/workflows/sink/",
    "/instances/",
    "/approvals/",
    "/audit/",
    "/audit/export.csv",
    "/audit/export.json",
    "/",
)


def test_the_pages_of_all_that_was_stored_can_be_read(
    program: Program, asking: Callable[[], str], signed_in: Callable[..., Client]
) -> None:
    doors = entrances(asking)
    for text, _ in STORED.values():
        for entrance in ("start", "event"):
            path, body = doors[entrance]
            assert program.post(path, body.replace(b"%s", text)).status_code in (201, 202)
    person = signed_in("admin")
    for instance in Instance.objects.all():
        for page in PAGES[:2]:
            assert person.get(page.format(id=instance.id)).status_code == 200, instance
    for page in PAGES[2:]:
        assert person.get(page.format(id="one")).status_code == 200, page
    assert Event.objects.count() == len(STORED)
