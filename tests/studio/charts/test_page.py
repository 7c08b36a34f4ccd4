"""The page of charts: its numbers, in words, in tables and for the script, and whose they are."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext

from engine.models import WorkflowCountDelta
from studio.access.permissions import Verb
from studio.access.principals import Principal, Scope
from studio.charts.address import RANGES
from studio.charts.live import ChartsView
from tests.studio import factories

pytestmark = pytest.mark.django_db

SECONDS_2 = 42  # the bucket of what took about 2 s
CHARTS = ("throughput", "latency", "steps", "retries")


def happened(workflow: str, *, minutes: float = 0, bucket: int = SECONDS_2, **counts: int) -> None:
    """Count what workers did so many minutes ago. What is timed took as long as its bucket says."""
    at = factories.ago(minutes=minutes).replace(second=0, microsecond=0)
    counts |= {"started": counts["began"]} if "began" in counts else {}
    WorkflowCountDelta.objects.bulk_create(
        WorkflowCountDelta(
            workflow=workflow,
            at=at,
            what=what,
            bucket=-1 if what in ("retried", "started") else bucket,
            amount=amount,
        )
        for what, amount in counts.items()
    )


@pytest.fixture(autouse=True)
def _two_workflows() -> None:
    """Charts are of workflows that are in the code or have had an instance."""
    for name in ("orders", "refunds"):
        factories.instance(
            "paused", workflow=name, created_at=factories.ago(days=80), started_at=factories.ago(days=80)
        )


def page_of(client: Client, where: str = "/charts/") -> str:
    answer = client.get(where)
    assert answer.status_code == 200
    return answer.content.decode()


def chart(page: str, name: str) -> str:
    return page.split(f'id="chart-{name}"')[1].split("</section>")[0]


def plot(page: str, name: str) -> dict[str, Any]:
    found = re.search(r'data-plot="([^"]*)"', chart(page, name))
    assert found is not None
    return dict(json.loads(html.unescape(found[1])))


def words(page: str, name: str) -> str:
    found = re.search(r'role="img" tabindex="0" aria-label="([^"]*)"', chart(page, name))
    assert found is not None
    return html.unescape(found[1])


def key(page: str, name: str) -> dict[str, str]:
    """What stands for the whole range, by the word of the line."""
    found = re.findall(r'class="word">([^<]*)</span>\s*<b[^>]*>([^<]*)<', chart(page, name))
    return {word: html.unescape(value) for word, value in found}


def table(page: str, name: str) -> list[list[str]]:
    rows = re.findall(r'<tr>\s*<th scope="row">(.*?)</tr>', chart(page, name), re.DOTALL)
    return [[html.unescape(cell) for cell in re.findall(r">([^<\s][^<]*)<", row)] for row in rows]


def workflows(page: str) -> dict[str, list[str]]:
    found = re.findall(r'<tr id="flow-([^"]+)">(.*?)</tr>', page, re.DOTALL)
    return {name: html.unescape(re.sub(r"<[^>]+>", " ", row)).split() for name, row in found}


def test_each_chart_has_its_numbers_as_points_as_a_table_and_in_words(viewer: Client) -> None:
    happened("orders", minutes=10, began=5, complete=3, errored=1, terminated=1, succeeded=9, retried=2)
    happened("refunds", minutes=10, began=1)
    page = page_of(viewer)
    assert key(page, "throughput") == {"started": "6", "completed": "3", "errored": "1", "terminated": "1"}
    assert key(page, "retries") == {"retries": "2"}
    assert re.fullmatch(
        r"In the last hour: started 6, completed 3, errored 1, terminated 1\. Most started at \d\d:\d\d UTC: 6\.",
        words(page, "throughput"),
    )
    found = plot(page, "throughput")
    assert (found["kind"], found["step"], [len(line) for line in found["values"]]) == ("count", 60, [60] * 4)
    at = found["values"][0].index(6)
    assert [line[at] for line in found["values"]] == [6, 3, 1, 1]
    assert [sum(line) for line in found["values"]] == [6, 3, 1, 1]
    rows = table(page, "throughput")
    assert len(rows) == 60
    assert rows[59 - at][1:] == ["6", "3", "1", "1"]


def test_durations_have_gaps_where_nothing_was_timed(viewer: Client) -> None:
    happened("orders", minutes=10, began=5, succeeded=4)
    page = page_of(viewer)
    for name in ("latency", "steps"):
        found = plot(page, name)
        timed = [value for value in found["values"][1] if value is not None]
        assert (found["kind"], len(found["values"][1]), len(timed)) == ("seconds", 60, 1)
        assert timed[0] == pytest.approx(2, rel=0.3)
        [with_value] = [row for row in table(page, name) if row[1:] != ["–", "–"]]
        assert with_value[2] == key(page, name)["p95"]
        assert "95 % within" in words(page, name)


def test_nothing_is_said_in_words(viewer: Client) -> None:
    page = page_of(viewer, "/charts/?range=24h")
    said = [
        "Nothing started in the last 24 hours.",
        "Nothing started in the last 24 hours.",
        "No step completed in the last 24 hours.",
        "No step was retried in the last 24 hours.",
    ]
    assert [words(page, name) for name in CHARTS] == said
    assert re.findall(r'<p class="nothing"[^>]*>([^<]*)<', page) == said
    assert "Nothing happened in the last 24 hours." in page
    assert workflows(page) == {}


def test_workflows_are_compared_and_lead_to_their_own_charts(viewer: Client) -> None:
    happened("orders", minutes=20, began=10, complete=6, errored=2, succeeded=9, retried=3)
    happened("refunds", minutes=5, began=4, complete=4, succeeded=4)
    page = page_of(viewer, "/charts/?range=6h")
    found = workflows(page)
    assert found["orders"][:7] == ["orders", "10", "6", "2", "0", "25.0", "%"]
    assert found["refunds"][:7] == ["refunds", "4", "4", "0", "0", "0", "%"]
    assert 'href="/charts/?range=6h&amp;workflow=refunds"' in page
    own = page_of(viewer, "/charts/?range=6h&workflow=refunds")
    assert key(own, "throughput")["started"] == "4"
    assert workflows(own) == {}
    assert 'href="/charts/?range=24h&amp;workflow=refunds"' in own


@pytest.mark.parametrize("name", RANGES)
def test_a_range_has_its_number_of_steps_and_the_present_is_the_last_one(viewer: Client, name: str) -> None:
    happened("orders", began=3)
    found = plot(page_of(viewer, f"/charts/?range={name}"), "throughput")
    span = RANGES[name]
    assert timedelta(seconds=found["step"]) == span.step
    assert len(found["values"][0]) == span.whole / span.step
    assert sum(found["values"][0][-2:]) == 3  # a minute may have ended meanwhile


def test_the_page_of_a_workflow_leads_to_its_charts(viewer: Client) -> None:
    assert 'href="/charts/?workflow=orders"' in viewer.get("/workflows/orders/").content.decode()


def test_only_workflows_that_may_be_seen_are_counted() -> None:
    happened("orders", minutes=3, began=5)
    happened("refunds", minutes=3, began=2)
    program = Principal(key="k", name="ci", scope=Scope(frozenset({Verb.VIEW}), ("refunds",)))
    for asked in ("topic=charts", "topic=charts&workflow=orders"):
        match = ChartsView.topic.fullmatch("charts")
        assert match is not None
        drawing = ChartsView.of(match, QueryDict(asked)).draw(program)
        page = "".join(piece.html for piece in drawing.pieces.values())
        assert key(page, "throughput")["started"] == "2"
        assert "orders" not in page


def test_the_file_has_the_numbers_of_the_page(viewer: Client) -> None:
    happened("orders", minutes=10, began=5, complete=3, succeeded=9, retried=2)
    happened("refunds", minutes=10, began=1)
    answer = viewer.get("/charts/export.csv?workflow=orders")
    assert answer["Content-Disposition"] == 'attachment; filename="charts-orders-1h.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert len(rows) == 60
    [one] = [row for row in rows if row["started"] != "0"]
    assert [one[name] for name in ("started", "complete", "errored", "terminated", "retries")] == [
        *("5", "3", "0", "0", "2")
    ]
    assert float(one["latency_p95_s"]) == pytest.approx(2, rel=0.3)
    assert rows[0]["step_p50_s"] == ""


@pytest.mark.parametrize("query", ["range=2h", "workflow=none", "x=1"])
def test_a_file_of_something_unknown_is_refused(viewer: Client, query: str) -> None:
    assert viewer.get(f"/charts/export.csv?{query}").status_code == 400


def test_many_workflows_need_no_more_queries(viewer: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            page_of(viewer, "/charts/?range=90d")
        return len(found)

    queries()
    before = queries()
    for number in range(30):
        factories.instance("paused", workflow=f"other-{number}")
        happened(f"other-{number}", minutes=number, began=1, complete=1)
    assert queries() == before
