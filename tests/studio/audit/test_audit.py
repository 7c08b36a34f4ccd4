"""The audit trail: filtered by user, action, instance and time, always bounded, and as files that are safe to open."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
from typing import Any

import pytest
from django.http import StreamingHttpResponse
from django.test import AsyncClient, Client
from django.utils import timezone

from engine.models import Audit
from studio.audit import queries as audit_trail
from tests.studio import factories
from tests.studio.display.test_escaping import EVIL, assert_is_text

pytestmark = pytest.mark.django_db


def shown(client: Client, query: str = "") -> list[str]:
    page = client.get(f"/audit/{query}").content.decode()
    found = re.findall(r'<td class="action[^>]*>(.*?)(?:<span|</td>)', page, re.DOTALL)
    return [one.strip() for one in found]


def text_of(client: Client, form: str, query: str = "") -> str:
    answer = client.get(f"/audit/export.{form}{query}")
    assert answer.status_code == 200
    assert isinstance(answer, StreamingHttpResponse)
    return b"".join(answer).decode()  # type: ignore[arg-type]


@pytest.fixture
def trodden() -> None:
    """A trail of five rows, the newest last."""
    order, other = factories.instance(id="order-1"), factories.instance(id="nap-1", workflow="nap")
    factories.deed(order, "start", "zoe", at=factories.ago(days=9))
    factories.deed(order, "pause", "li", "provider down", before="running", after="waiting_for_pause")
    factories.deed(other, "pause", "ana")
    factories.deed(order, "terminate", "vic", outcome="denied")
    factories.deed(order, "resume", "li")


def test_it_is_listed_newest_first(viewer: Client, trodden: None) -> None:
    assert shown(viewer) == [
        "resumed",
        "denied: terminate",
        "paused",
        "paused",
        "started",
    ]
    page = viewer.get("/audit/").content.decode()
    assert "provider down" in page
    assert "running → waiting for pause" in page
    assert 'href="/workflows/orders/instances/order-1/"' in page


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?person=li", 2),
        ("?person=LI", 2),
        ("?person=l", 2),
        ("?person=nobody", 0),
        ("?verb=pause", 2),
        ("?verb=pause&workflow=nap", 1),
        ("?workflow=orders", 4),
        ("?id=order-1", 4),
        ("?id=order-1&workflow=nap", 0),
        ("?outcome=denied", 1),
        ("?since=2001-01-01", 5),
        ("?until=2001-01-01", 0),
        ("?since=2001-01-01&until=2001-01-02", 0),
        ("?person=%25%27%00", 0),
    ],
)
def test_it_is_filtered(viewer: Client, trodden: None, query: str, found: int) -> None:
    assert len(shown(viewer, query)) == found
    assert len(json.loads(text_of(viewer, "json", query))["entries"]) == found


def test_a_filter_that_means_nothing_is_named_and_no_file_is_made_without_it(
    viewer: Client, trodden: None
) -> None:
    query = "?since=yesterday&until=9999-12-31&workflow=no+name&verb=DROP+TABLE&before=x&tag=eu"
    page = viewer.get(f"/audit/{query}").content.decode()
    assert len(shown(viewer, query)) == 5
    named = ["since=yesterday", "until=9999-12-31", "workflow=no name", "verb=DROP TABLE", "before=x"]
    assert re.findall(r"<code><bdi>([^<]*)</bdi></code>", page) == named
    assert viewer.get(f"/audit/export.csv{query}").status_code == 400
    assert "Ignored" not in viewer.get("/audit/?person=li&since=2001-01-01").content.decode()


def test_days_are_found_by_halving(viewer: Client) -> None:
    order = factories.instance(id="order-1")
    for days in range(30, 0, -1):
        factories.deed(order, "pause", f"day-{days}", at=factories.ago(days=days))
    day = factories.ago(days=7).date().isoformat()
    found = audit_trail.page_of(audit_trail.Wanted.of({"since": day, "until": day}))
    assert [entry.actor for entry in found.entries] == ["day-7"]


def test_a_deleted_instance_is_found_by_its_id(viewer: Client, trodden: None) -> None:
    factories.Instance.objects.filter(id="order-1").delete()
    assert len(shown(viewer, "?id=order-1")) == 4


def test_an_id_that_was_deleted_and_given_again_shows_both_lives(viewer: Client, trodden: None) -> None:
    old = factories.Instance.objects.get(id="order-1")
    factories.deed(old, "delete", "ana")
    factories.Instance.objects.filter(key=old.key).delete()
    factories.deed(factories.instance(id="order-1"), "start", "zoe")
    assert [one.strip() for one in shown(viewer, "?id=order-1")][:2] == ["started", "deleted"]
    assert len(shown(viewer, "?id=order-1")) == 6


def test_it_is_read_page_by_page_and_window_by_window(
    viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_trail, "PAGE", 3)
    monkeypatch.setattr(audit_trail, "WINDOW", 5)
    monkeypatch.setattr(audit_trail, "BATCH", 2)
    order = factories.instance()
    rows = [factories.deed(order, "pause", "rare" if n in (0, 1) else "li") for n in range(12)]

    def all_of(query: dict[str, str]) -> list[list[int]]:
        wanted, before, pages = audit_trail.Wanted.of(query), None, []
        while True:
            page = audit_trail.page_of(wanted, before=before)
            pages.append([entry.key - rows[0].key for entry in page.entries])
            if page.older is None:
                return pages
            before = page.older

    assert all_of({}) == [[11, 10, 9], [8, 7, 6], [5, 4, 3], [2, 1, 0]]
    assert all_of({"person": "rare"}) == [[], [], [1, 0]]
    assert "Search older entries" in viewer.get("/audit/?person=rare").content.decode()
    exported = json.loads(text_of(viewer, "json", "?person=rare"))
    assert ([entry["key"] - rows[0].key for entry in exported["entries"]], exported["is_whole"]) == (
        [1, 0],
        True,
    )


def test_a_file_holds_the_newest_and_says_if_that_is_all(
    viewer: Client, monkeypatch: pytest.MonkeyPatch, trodden: None
) -> None:
    whole = json.loads(text_of(viewer, "json"))
    assert (len(whole["entries"]), whole["is_whole"]) == (5, True)
    assert whole["entries"][-1]["person"] == "zoe"
    monkeypatch.setattr(audit_trail, "EXPORTED", 2)
    cut = json.loads(text_of(viewer, "json"))
    assert ([entry["verb"] for entry in cut["entries"]], cut["is_whole"]) == (["resume", "terminate"], False)
    assert json.loads(text_of(viewer, "json", "?person=nobody")) == {"entries": [], "is_whole": True}


def test_a_cell_is_no_formula(viewer: Client) -> None:
    order = factories.instance(id="order-1")
    wild = [
        '=HYPERLINK("http://x")',
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "  =1",
        "\tx",
        "\u200b=1",
        "\ufeff=1",
        "\u00ad\u2060 \u202e=1",
        "\u034f=1",
        "\u3164=1",
        "\uff1d1",
        "\uff0b1",
        "\uff0d1",
        "\uff201",
        "\ufe661",
        "\u22121",
        "\u200b\uff1d1",
    ]
    tame = ["a\r\n=1", "harmless, “it is”", "\u200bx=1", "١ + 1"]
    for reason in [*wild, *tame]:
        factories.deed(order, "pause", "=cmd", reason, data={"=1": 1})
    lines = list(csv.DictReader(io.StringIO(text_of(viewer, "csv"), newline="")))
    assert [line["reason"] for line in lines][::-1] == [f"'{one}" for one in wild] + tame
    assert {line["person"] for line in lines} == {"'=cmd"}
    assert lines[0]["data"] == '{"=1": 1}'
    assert lines[0]["at"].endswith("+00:00")


def test_a_file_is_downloaded_and_nothing_else(viewer: Client, trodden: None) -> None:
    answer = viewer.get("/audit/export.csv")
    today = timezone.now().date().isoformat()
    assert answer.headers["Content-Disposition"] == f'attachment; filename="audit-{today}.csv"'
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert answer.headers["Content-Security-Policy"].startswith("sandbox;")
    assert answer.headers["Cache-Control"] == "no-store, private"


@pytest.mark.django_db(transaction=True)
def test_the_server_sends_a_file_while_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under ASGI a plain iterator would be read to its end first, into memory."""
    order, person = factories.instance(), factories.person("viewer")
    for _ in range(5):
        factories.deed(order, "pause")
    monkeypatch.setattr(audit_trail, "BATCH", 2)
    client = AsyncClient()
    client.force_login(person)

    async def read() -> tuple[bool, str]:
        answer: Any = await client.get("/audit/export.json")
        return answer.is_async, b"".join([part async for part in answer]).decode()

    is_async, text = asyncio.run(read())
    assert is_async
    assert len(json.loads(text)["entries"]) == 5


@pytest.mark.parametrize("evil", EVIL, ids=[evil[:16] for evil in EVIL])
def test_what_people_wrote_is_text(viewer: Client, evil: str) -> None:
    factories.deed(factories.instance(), "pause", evil[:150], evil)
    assert_is_text(viewer.get("/audit/", {"person": evil}).content.decode(), evil)
    page = viewer.get("/audit/").content.decode()
    assert page.count('<td class="who">') == 1
    assert_is_text(page, evil)


def test_a_page_tells_how_much_came_since(viewer: Client, trodden: None) -> None:
    top = Audit.objects.order_by("-key")[1].key
    where = f"/_f/live/?topic=audit&top={top}"
    assert "1 new · show" in viewer.get(where).content.decode()
    assert "new · show" not in viewer.get(f"{where}&person=ana").content.decode()
    assert 'href="/audit/?person=li"' in viewer.get(f"{where}&person=li").content.decode()


def test_a_note_is_shown_in_full_and_another_reason_is_cut(operator: Client) -> None:
    instance = factories.instance("queued")
    text = "<b>first</b>\n" + "long " * 100 + "last"
    instance.add_note(text)
    factories.deed(instance, "pause", reason=text)
    page = operator.get("/audit/?verb=note").content.decode()
    assert f'<td class="reason text" dir="auto">{text.replace("<", "&lt;").replace(">", "&gt;")}</td>' in page
    page = operator.get("/audit/?verb=pause").content.decode()
    (cell,) = re.findall(r'<td class="reason[^>]*>(.*?)</td>', page, re.DOTALL)
    assert cell.strip().endswith("…")
