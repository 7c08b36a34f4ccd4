"""The list of errors, and who sees what of it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext

from engine.status import failures
from studio.access.permissions import Verb
from studio.access.principals import Principal, Scope
from studio.errors import groups
from studio.errors.visibility import count_open
from studio.instance.alike import alike
from studio.live.topics import view_of
from tests.studio import factories
from tests.studio.errors.conftest import Fail

People = Callable[[str], Client]


def listed(client: Client, query: str = "") -> list[str]:
    """Return the titles of the rows."""
    page = client.get(f"/errors/{query}").content.decode()
    titles = re.findall(r'<a class="strong" href="/errors/[^>]*>(.*?)</a>', page, re.DOTALL)
    return [" ".join(title.split()) for title in titles]


def fingerprint(workflow: str = "orders") -> str:
    (found,) = failures.groups(workflow=workflow, state="").groups
    return found.fingerprint


def only(*workflows: str) -> Principal:
    """Return the holder of a token for these workflows."""
    return Principal(key="k", name="ci", scope=Scope(frozenset({Verb.VIEW, Verb.OPERATE}), workflows))


def test_without_failures_it_says_so(people: People) -> None:
    page = people("viewer").get("/errors/").content.decode()
    assert "No step has failed in 35 days." in page
    assert re.search(r'id="errors-count" class="badge s-errored" hidden', page)


def test_a_row_says_what_fails_where_and_how_often(people: People, fail: Fail) -> None:
    fail()
    fail(message="no answer within 9 s")
    viewer = people("viewer")
    assert listed(viewer) == ["charge_card: no answer within 9 s"]
    page = viewer.get("/errors/").content.decode()
    assert '<a href="/workflows/orders/">orders</a>' in page
    numbers = re.findall(r'<td class="num-cell[^"]*">\s*([0-9]+)', page)
    assert numbers == ["2", "0", "4"]
    assert re.search(r'<path class="none" d="[^"]*"/><path d="M104 26v-13h6v13z"/>', page)
    assert "Failed attempts on each of the last 14 days: " + "0, " * 13 + "4" in page
    assert re.search(r'id="errors-count" class="badge s-errored">\s*1<', page)


def test_each_state_has_a_tab_with_an_address(people: People, fail: Fail) -> None:
    fail()
    fail("refunds")
    failures_of = {name: fingerprint(name) for name in ("orders", "refunds")}
    operator = people("operator")
    operator.post(f"/errors/{failures_of['orders']}/resolve/?workflow=orders")
    assert len(listed(operator)) == len(listed(operator, "?state=resolved")) == 1
    assert listed(operator, "?state=ignored") == []
    assert "No ignored errors" in operator.get("/errors/?state=ignored").content.decode()
    operator.post(f"/errors/{failures_of['refunds']}/resolve/?workflow=refunds")
    page = operator.get("/errors/").content.decode()
    assert "No open errors" in page
    assert "35 days" not in page


def test_it_is_filtered_by_workflow_and_text_and_names_what_it_ignores(people: People, fail: Fail) -> None:
    fail()
    fail("refunds", "the bank is closed")
    viewer = people("viewer")
    assert listed(viewer, "?workflow=refunds") == ["charge_card: the bank is closed"]
    assert listed(viewer, "?query=Bank+is") == ["charge_card: the bank is closed"]
    assert listed(viewer, "?workflow=refunds&query=answer") == []
    page = viewer.get("/errors/?state=lost&workflow=refunds").content.decode()
    assert "state=lost" in page
    assert 'value="refunds" selected' in page


def test_pages_follow_each_other(people: People, fail: Fail, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "PAGE", 1)
    fail(message="one")
    fail("refunds", "two")
    viewer = people("viewer")
    first = viewer.get("/errors/").content.decode()
    assert listed(viewer) == ["charge_card: two"]
    older = re.search(r'href="([^"]*)" rel="next"', first)
    assert older is not None
    assert listed(viewer, older[1].removeprefix("/errors/").replace("&amp;", "&")) == ["charge_card: one"]


def test_rows_stay_in_place_while_they_fail_again(people: People, fail: Fail) -> None:
    fail(message="one")
    fail("refunds", "two")
    shown = [group.fingerprint for group in failures.groups().groups]
    fail(message="one")
    view = view_of(QueryDict(f"topic=errors&shown={','.join(shown)}"))
    html = view.draw(factories.person("viewer")).pieces["errors-list"].html
    assert re.findall(r'<tr id="e-([0-9a-f]+)"', html) == shown
    assert [group.fingerprint for group in failures.groups().groups] == shown[::-1]
    fail("invoices", "three")
    html = view.draw(factories.person("viewer")).pieces["errors-list"].html
    assert re.findall(r'<tr id="e-([0-9a-f]+)"', html) == [fingerprint("invoices"), *shown]


def test_who_may_see_one_workflow_sees_only_its_errors(fail: Fail) -> None:
    order, _ = fail(), fail("refunds")
    user = only("orders")
    html = view_of(QueryDict("topic=errors")).draw(user).pieces["errors-list"].html
    assert 'href="/workflows/orders/"' in html
    assert "refunds" not in html
    assert count_open(user) == 1
    own = view_of(QueryDict(f"topic=error:{fingerprint()}")).draw(user).pieces
    assert "refunds" not in "".join(piece.html for piece in own.values())
    others = view_of(QueryDict(f"topic=error:{fingerprint('refunds')}")).draw(user)
    assert (others.pieces, others.is_done) == ({}, True)
    found = alike(order, (), user)
    assert found is not None
    assert found.others == 0
    everything = alike(order, (), only("*"))
    assert everything is not None
    assert everything.others == 1


def test_the_number_of_queries_does_not_grow_with_the_rows(people: People, fail: Fail) -> None:
    viewer = people("viewer")
    fail(message="one")
    with CaptureQueriesContext(
        connection,
    ) as few:
        listed(viewer)
    for name in ("two", "three", "four"):
        fail(name, name)
    with CaptureQueriesContext(connection) as many:
        assert len(listed(viewer)) == 4
    assert len(many) == len(few)
