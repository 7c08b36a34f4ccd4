"""What a page of the list costs, in what does not depend on the machine: calls, queries, and blocks that are read."""

from __future__ import annotations

import cProfile
import pstats
import re
from collections.abc import Sequence

import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from engine.models import Instance
from engine.status.searching import candidates
from engine.status.searching.conditions import has_key
from engine.status.searching.searching import search
from engine.values.query.parsing import parse
from studio.display.rendering import render_to_string
from studio.instances.address import ListAddress
from studio.instances.finding import counts_of
from studio.instances.queries import Row, rows_of
from tests.studio import factories

CALLS_A_ROW = 1_100  # it is about 850; 1,400 took twice as long


def calls_of(rows: Sequence[Row]) -> int:
    """Count the calls of functions that it takes to render rows."""

    def render() -> None:
        for row in rows:
            render_to_string("studio/instances/row.html", {"row": row})

    render()  # compiles the template, and keeps icons
    profile = cProfile.Profile()
    profile.runcall(render)
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


@pytest.mark.django_db
@pytest.mark.parametrize("status", ["running", "waiting", "complete", "errored", "paused"])
def test_a_row_is_rendered_with_few_calls(status: str) -> None:
    made = [factories.instance(status) for _ in range(10)]
    rows = rows_of(made, is_list=True)
    assert calls_of(rows) <= CALLS_A_ROW * len(rows)


@pytest.mark.django_db
def test_a_row_has_the_addresses_of_its_instance_and_its_workflow() -> None:
    for one in rows_of([factories.instance("errored"), factories.instance(workflow="reprise.bulk-job")]):
        assert one.address == one.instance.get_absolute_url()
        assert one.of_workflow == reverse("studio:workflow", args=[one.instance.workflow])


@pytest.mark.django_db
def test_keys_are_compared_as_what_they_are() -> None:
    """As smaller numbers, PostgreSQL would compare each row with each of them instead of looking it up."""
    assert "'{1,2,3}'::bigint[]" in Instance.objects.filter(has_key([1, 2, 3])).explain()


@pytest.mark.django_db
def test_the_newest_that_ask_are_found_without_the_others() -> None:
    for _ in range(3):
        factories.request(factories.instance("waiting"))
    with CaptureQueriesContext(connection) as sent:
        assert len(search(parse("status:approval"), workflows=None).keys) == 3
    assert max(int(most) for one in sent for most in re.findall(r"LIMIT (\d+)", one["sql"])) <= 201


@pytest.mark.usefixtures("engine_db")
def test_all_lists_share_the_counts_of_the_statuses_until_something_is_written() -> None:
    factories.instance("errored")
    client = Client()
    client.force_login(factories.person("operator", "ana"))
    for where, count in (("?query=status:running", 0), ("", 0), ("?sort=started", 0)):
        client.get("/instances/")
        with CaptureQueriesContext(connection) as asked:
            client.get(f"/instances/{where}")
        assert (
            len([one for one in asked if "AS counted" in one["sql"] and "state(status)" in one["sql"]])
            == count
        )
    factories.instance("errored")
    assert '<span class="num">2</span>' in client.get("/instances/").content.decode()


@pytest.mark.usefixtures("engine_db")
def test_all_pages_of_a_search_share_its_counts_until_something_is_written() -> None:
    factories.instance("errored", id="rotation-1")
    client = Client()
    client.force_login(factories.person("operator", "ana"))
    client.get("/instances/?q=rotation-")
    for where in ("q=rotation-", "q=rotation-&status=running", "q=rotation-&sort=started"):
        with CaptureQueriesContext(connection) as asked:
            client.get(f"/instances/?{where}")
        assert not [one for one in asked if 'AS "asking"' in one["sql"]], where
    factories.instance("errored", id="rotation-2")
    assert '<span class="num">2</span>' in client.get("/instances/?q=rotation-").content.decode()


@pytest.mark.usefixtures("engine_db")
def test_a_search_that_no_index_can_count_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "MOST_ALIKE", 1)
    for _ in range(2):
        factories.instance("errored")
    user, asked = factories.person("operator", "ana"), ListAddress.of(QueryDict("query=id:order-"))
    assert counts_of(asked, user) is None
    with CaptureQueriesContext(connection) as sent:
        assert counts_of(asked, user) is None
    assert not [one for one in sent if "engine_instance" in one["sql"]]
