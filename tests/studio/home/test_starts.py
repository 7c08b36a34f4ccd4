"""My starts on Home: the last four instances that the user started, and what they do now."""

from __future__ import annotations

import html
import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from engine.models import Instance
from studio.home import starts
from tests.studio import factories

pytestmark = pytest.mark.django_db


def mine(client: Client) -> list[str]:
    """The text of each, in order."""
    page = client.get("/").content.decode()
    part = re.search(r'<section class="card" id="my-starts".*?</section>', page, re.DOTALL)
    assert part is not None
    found = re.findall(r"<li[^>]*>(.*?)</li>", part[0], re.DOTALL)
    return [" ".join(html.unescape(re.sub(r"<[^>]+>", " ", one)).split()) for one in found]


def test_they_are_the_last_four_of_the_user_newest_first(operator: Client) -> None:
    for number in range(6):
        factories.instance("queued", id=f"mine-{number}", started_by="oli", workflow=f"flow-{number % 3}")
        factories.instance("queued", id=f"other-{number}", started_by="zoe")
        factories.instance("queued", id=f"nobodys-{number}", started_by="")
    assert [one.split()[1] for one in mine(operator)] == ["mine-5", "mine-4", "mine-3", "mine-2"]


def test_each_says_what_it_does_now(operator: Client) -> None:
    now = factories.ago()
    times = {"created_at": now - timedelta(hours=1), "started_at": now - timedelta(seconds=182)}
    factories.instance("complete", started_by="oli", finished_at=now, **times)
    factories.instance("errored", started_by="oli")
    factories.instance("queued", started_by="oli")
    again = factories.retrying()
    Instance.objects.filter(key=again.key).update(started_by="oli")
    found = mine(operator)
    assert f"next attempt {again.wake_at:%H:%M}" in found[0]
    assert found[0].startswith("retrying ")
    assert "· failed in charge_card" in found[2]
    assert "· took 3 m 02 s" in found[3]


def test_one_whose_handler_failed_says_with_what(operator: Client) -> None:
    factories.instance("errored", started_by="oli", error=factories.FAILURE)
    assert "TimeoutError: no answer from the card service" in mine(operator)[0]


def test_who_has_started_nothing_is_told_so(operator: Client) -> None:
    factories.instance(started_by="zoe")
    assert mine(operator) == ["You have not started anything yet."]


@pytest.mark.parametrize(
    ("name", "query"), [("oli", "by:oli"), ("oli@firm.example", "by:%22oli%40firm.example%22")]
)
def test_all_of_them_are_a_search(name: str, query: str) -> None:
    client = Client()
    client.force_login(factories.person("operator", name))
    one = factories.instance(started_by=name)
    factories.instance(started_by="zoe", id="others")
    address = re.search(
        r'<a class="small" href="(/instances/[^"]+)">All</a>', client.get("/").content.decode()
    )
    assert address is not None
    assert address[1] == f"/instances/?query={query}"
    page = client.get(html.unescape(address[1])).content.decode()
    assert one.id in page
    assert "others" not in re.findall(r'<td class="id"><a [^>]*>([^<]+)</a>', page)


def test_only_workflows_that_the_user_may_see_are_among_them() -> None:
    factories.instance("queued", started_by="oli", workflow="seen", id="seen")
    factories.instance("queued", started_by="oli", workflow="hidden", id="hidden")
    found = starts.starts_of(User(username="oli"), ["seen"])
    assert [one.row.instance.id for one in found] == ["seen"]


def test_they_are_found_by_index_beside_any_number_of_others(
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO engine_instance (workflow, id, status, params, wake_at, started_by)"
            " SELECT 'flow-' || n % 3, 'b-' || n, 'queued', '{}', now(), CASE n % 50 WHEN 0 THEN 'oli' ELSE 'zoe' END"
            " FROM generate_series(1, 20000) n"
        )
        cursor.execute("ANALYZE engine_instance")
        values = {"by": "oli", "names": ["flow-0", "flow-1", "flow-2"], "shown": starts.SHOWN}
        cursor.execute(f"EXPLAIN {starts._NEWEST}", values)
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "engine_instance_started_by" in plan
    assert "Seq Scan on engine_instance" not in plan
    with django_assert_max_num_queries(9):
        found = starts.starts_of(User(username="oli"), values["names"])
    assert [one.row.instance.id for one in found] == ["b-20000", "b-19950", "b-19900", "b-19850"]
