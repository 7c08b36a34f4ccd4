"""Queries that are compiled once return what the same querysets return."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext

from engine.models import Event, Instance, Step
from engine.status.gathering import without_values
from engine.status.prepared import CLOCK, Prepared, together
from tests.studio import factories

pytestmark = pytest.mark.django_db


def _steps(key: int, generation: int, *, limit: int, full: bool) -> QuerySet[Step]:
    rows = Step.objects.filter(instance_id=key, generation=generation).order_by("-seq")
    return (rows if full else rows.defer("output"))[:limit]


def _begun(row: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(row).items() if not name.startswith("_")}


def test_the_rows_are_those_of_the_queryset_for_each_value_and_option() -> None:
    prepared = Prepared(_steps)
    one, other = factories.instance("running"), factories.instance("running")
    for instance in (one, other):
        for name in ("reserve", "charge", "ship"):
            factories.step(instance, name, "complete", output={"n": 1e16, "z": -0.0, "a": [name]})
    for instance in (one, other):
        for limit, full in ((10, True), (2, True), (10, False)):
            found = prepared.rows(instance.key, 1, limit=limit, full=full)
            wanted = list(_steps(instance.key, 1, limit=limit, full=full))
            assert len(wanted) == min(limit, 3)
            assert [_begun(row) for row in found] == [_begun(row) for row in wanted]
            assert [row.get_deferred_fields() for row in found] == [
                row.get_deferred_fields() for row in wanted
            ]


def test_annotations_and_texts_are_taken_over() -> None:
    prepared = Prepared(
        lambda workflow, name, *, most: without_values().filter(workflow=workflow, id=name)[:most]
    )
    failed = factories.instance("errored")
    (found,) = prepared.rows(failed.workflow, failed.id, most=1)
    assert found == failed
    assert found.error_text == without_values().get(key=failed.key).error_text
    assert prepared.rows(failed.workflow, "%s ' \\ --", most=1) == []


def test_it_is_compiled_once_and_takes_one_query() -> None:
    built: list[int] = []

    def build(key: int) -> QuerySet[Event]:
        built.append(key)
        return Event.objects.filter(instance_id=key)

    prepared = Prepared(build)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        for key in (1, 2, 2**40):
            assert prepared.rows(key) == []
    assert len(built) == 1
    assert len(queries) == 3


@pytest.mark.parametrize(("binds_on_server", "exchanges"), [(False, 1), (True, 4)])
def test_queries_run_together_in_one_exchange_each_with_its_own_values(
    monkeypatch: pytest.MonkeyPatch, binds_on_server: bool, exchanges: int
) -> None:
    monkeypatch.setitem(connection.settings_dict, "OPTIONS", {"server_side_binding": binds_on_server})
    monkeypatch.delitem(vars(connection.features), "uses_server_side_binding", raising=False)
    one, other = factories.instance("queued"), factories.instance("running")
    event = factories.event(one)
    by_key = Prepared(lambda key: Instance.objects.filter(key=key))
    events = Prepared(lambda key, limit: Event.objects.filter(instance_id=key)[:limit])
    with CaptureQueriesContext(connection) as queries:
        found = together(by_key.call(other.key), events.call(one.key, limit=5), CLOCK, by_key.call(one.key))
    monkeypatch.delitem(vars(connection.features), "uses_server_side_binding", raising=False)
    assert len(queries) == exchanges
    assert [found[0], found[1], found[3]] == [[other], [event], [one]]
    assert found[2][0].tzinfo is not None


def test_a_value_that_the_query_does_not_compare_is_a_mistake() -> None:
    prepared = Prepared(lambda key, forgotten: Instance.objects.filter(key=key))
    with pytest.raises(AssertionError, match=r"does not compare value \[1\]"):
        prepared.rows(1, 2)
