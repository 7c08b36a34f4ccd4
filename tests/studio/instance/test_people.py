"""Whom the field of a note suggests."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from studio.instance.people import LOOKED_AT, MOST
from tests.studio import factories

pytestmark = pytest.mark.django_db
WHERE = "/_f/workflows/orders/people/"


def suggested(client: Client, begins: str) -> list[str]:
    answer = client.get(WHERE, {"begins": begins})
    assert answer.status_code == 200
    return [html.unescape(one) for one in re.findall(r'data-name="([^"]*)"', answer.content.decode())]


def test_active_users_who_may_see_the_workflow_are_suggested_by_the_begin_of_their_name(
    operator: Client,
) -> None:
    factories.person("viewer", "Zoe")
    factories.person("root", "zora")
    factories.person("nobody", "zac")
    gone = factories.person("viewer", "zed")
    gone.is_active = False
    gone.save()
    assert suggested(operator, "z") == ["Zoe", "zora"]
    assert suggested(operator, "zoE") == ["Zoe"]
    assert suggested(operator, "oe") == []


def test_there_are_few_and_few_users_are_looked_at(
    operator: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for n in range(MOST + 2):
        factories.person("viewer", f"ana{n:02}")
    assert suggested(operator, "ana") == [f"ana{n:02}" for n in range(MOST)]
    for n in range(LOOKED_AT + 2):
        factories.person("nobody", f"bo{n:02}")
    with django_assert_max_num_queries(2 * LOOKED_AT + 12):
        assert suggested(operator, "bo") == []


def test_the_full_name_is_shown_as_text(operator: Client) -> None:
    zoe = factories.person("viewer", "zoe@shop.example")
    zoe.first_name, zoe.last_name = "<b>Zoe</b>", "\u202eA"
    zoe.save()
    page = operator.get(WHERE, {"begins": "zo"}).content.decode()
    assert 'data-name="zoe@shop.example"' in page
    assert "<bdi>&lt;b&gt;Zoe&lt;/b&gt; \u202eA</bdi>" in page
    assert "<b>" not in page


@pytest.mark.parametrize(
    "begins", ["\0", "x" * 100_000, "%", "_", "\\", "\ud800".encode("utf-8", "surrogatepass")]
)
def test_strange_text_is_no_error(operator: Client, begins: str) -> None:
    assert operator.get(WHERE, {"begins": begins}).status_code in (200, 400)


def test_only_who_may_write_notes_is_told_names(
    client: Client, viewer: Client, signed_in: Callable[..., Client]
) -> None:
    assert client.get(WHERE).status_code == 302
    assert viewer.get(WHERE).status_code == 403
    assert signed_in("nobody").get(WHERE).status_code == 403
