"""No list silently shows more than its address asks for."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from tests.studio import factories

pytestmark = pytest.mark.django_db

LISTS = [
    "/",
    "/workflows/",
    "/workflows/orders/",
    "/workflows/tick/start/many/",
    "/instances/",
    "/instances/views/",
    "/errors/",
    "/approvals/",
    "/workers/",
    "/charts/",
    "/schedules/",
    "/schedules/?view=week",
    "/tv/",
    "/audit/",
    "/tokens/",
    "/tokens/team/",
    "/tokens/people/",
    "/webhooks/",
    "/jump/",
    "/shortcuts/",
    "/preferences/",
]


def ignored(page: str) -> list[str]:
    return re.findall(r"<code><bdi>([^<]*)</bdi></code>", page)


@pytest.mark.parametrize("where", LISTS)
def test_an_unknown_parameter_is_named(signed_in: Callable[..., Client], where: str) -> None:
    factories.instance()
    admin = signed_in("admin")
    assert ignored(admin.get(where, {"region": "eu", "x": ""}).content.decode()) == ["region=eu"]
    assert ignored(admin.get(where).content.decode()) == []


@pytest.mark.parametrize(
    ("where", "given"),
    [
        ("/approvals/", {"box": "nope"}),
        ("/approvals/", {"r": "1-1-1"}),
        ("/errors/", {"state": "nope"}),
        ("/charts/", {"range": "2h"}),
        ("/charts/", {"workflow": "no-such-workflow"}),
        ("/audit/", {"since": "nope"}),
        ("/audit/", {"verb": "no such verb"}),
    ],
)
def test_an_unknown_value_is_named(operator: Client, where: str, given: dict[str, str]) -> None:
    ((name, value),) = given.items()
    assert ignored(operator.get(where, given).content.decode()) == [f"{name}={value}"]


def test_the_statuses_say_what_they_count(operator: Client) -> None:
    factories.instance("errored")
    said = "How many instances have each status"
    assert f'title="{said}"' in operator.get("/instances/").content.decode()
    assert f'title="{said}"' in operator.get("/instances/?status=errored").content.decode()
    page = operator.get("/instances/?query=workflow:orders+status:errored").content.decode()
    assert 'title="How many instances of this search have each status"' in page
