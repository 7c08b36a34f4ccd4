"""Lists: pages that fit together whatever is written meanwhile, filters, and what a narrow token sees of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, get_args
from urllib.parse import quote

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from engine.models import Audit, Instance, ScheduleRow
from engine.status import search
from engine.values.states import InstanceStatus
from studio.api.fields import StatusWanted
from studio.api.operations import instances as operations
from studio.audit import queries as audit_trail
from tests.sample.workflows import tick
from tests.studio import factories
from tests.studio.api.conftest import Program, Programs
from tests.studio.api.shop import Shop

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("only_possible_rows")]

BAD_CURSORS = ["", "-1", "x", "1.0", "99999999999999999999", "١", "1%00", "1e3", "0x1"]


def get(program: Program, path: str) -> Any:
    answer = program.get(path)
    assert answer.status_code == 200, answer.content
    return json.loads(answer.content)


def pages(
    program: Program, path: str, name: str, *, between: Callable[[], object] = lambda: None
) -> list[list[Any]]:
    """Return all pages of a list; `between` is called between two of them."""
    found, cursor = [], ""
    while True:
        page = get(program, f"{path}{'&' if '?' in path else '?'}limit=2{cursor}")
        found.append(page[name])
        if page["next_cursor"] is None:
            return found
        cursor = f"&cursor={page['next_cursor']}"
        between()


def ids(document: Any) -> list[str]:
    return [one["id"] for one in document["instances"]]


class TestPages:
    def test_of_instances_stay_whole_while_others_start_and_go(self, program: Program) -> None:
        made = [factories.instance(id=f"o-{n}") for n in range(7)]

        def disturb() -> None:
            factories.instance()
            Instance.objects.filter(id="o-0").delete()

        found = pages(program, "/instances?workflow=orders&status=queued", "instances", between=disturb)
        assert [[one["id"] for one in page] for page in found] == [
            ["o-6", "o-5"],
            ["o-4", "o-3"],
            ["o-2", "o-1"],
        ]
        assert made

    @pytest.mark.parametrize("what", ["steps", "events", "logs", "audit", "children", "generations"])
    def test_of_what_an_instance_recorded_are_the_whole_list(self, program: Program, what: str) -> None:
        is_parked = what in ("children", "steps")
        instance = factories.instance("waiting", waiting_for="child") if is_parked else tick.start()
        make: dict[str, Callable[[int], object]] = {
            "steps": lambda n: factories.child(instance, name=f"s-{n}"),
            "events": lambda n: factories.event(instance, f"e-{n}"),
            "logs": lambda n: factories.log(instance, f"l-{n}"),
            "audit": lambda n: factories.deed(instance, "pause", reason=f"r-{n}"),
            "children": lambda n: factories.child(instance, name=f"c-{n}"),
            "generations": lambda n: instance.restart(by="ci"),
        }
        for number in range(5):
            make[what](number)
        where = f"/workflows/{instance.workflow}/instances/{instance.id}/{what}"
        name = "actions" if what == "audit" else what
        found = pages(program, where, name)
        assert [len(page) for page in found] == [2, 2, 1]
        assert [one for page in found for one in page] == get(program, f"{where}?limit=200")[name]

    def test_of_requests_are_the_whole_list(self, program: Program) -> None:
        for _ in range(5):
            factories.request(factories.instance("waiting", workflow="process-order"))
        found = pages(program, "/requests", "requests")
        assert [len(page) for page in found] == [2, 2, 1]
        assert [one for page in found for one in page] == get(program, "/requests")["requests"]

    @pytest.mark.parametrize("where", ["/instances", "/audit", "/requests"])
    @pytest.mark.parametrize("cursor", BAD_CURSORS)
    def test_cursors_are_only_what_a_page_gave(self, program: Program, where: str, cursor: str) -> None:
        """E46"""
        answer = program.get(f"{where}?cursor={quote(cursor) if '%' not in cursor else cursor}")
        assert answer.status_code == 422
        assert json.loads(answer.content)["errors"][0]["path"] == "cursor"

    @pytest.mark.parametrize("cursor", BAD_CURSORS)
    @pytest.mark.parametrize(
        "what", ["steps", "events", "logs", "audit", "children", "generations", "requests"]
    )
    def test_cursors_of_an_instance_too(self, program: Program, what: str, cursor: str) -> None:
        instance = factories.instance()
        where = f"/workflows/{instance.workflow}/instances/{instance.id}/{what}"
        assert (
            program.get(f"{where}?cursor={quote(cursor) if '%' not in cursor else cursor}").status_code == 422
        )
        past = f"{10**18 - 1}.1.1" if what == "requests" else str(10**18 - 1)
        assert program.get(f"{where}?cursor={past}").status_code == 200

    @pytest.mark.parametrize("limit", ["0", "-1", "201", "1000000", "x", "1.5", ""])
    def test_limits_are_bounded(self, program: Program, limit: str) -> None:
        assert program.get(f"/instances?limit={limit}").status_code == 422


class TestInstances:
    def test_statuses_and_their_groups(self, program: Program) -> None:
        for status in ("queued", "waiting", "paused", "complete", "errored", "terminated"):
            factories.instance(status, id=status)
        assert ids(get(program, "/instances?status=errored&status=paused")) == ["errored", "paused"]
        assert ids(get(program, "/instances?status=open")) == ["paused", "waiting", "queued"]
        assert ids(get(program, "/instances?status=finished&status=queued")) == [
            "terminated",
            "errored",
            "complete",
            "queued",
        ]
        assert program.get("/instances?status=approval").status_code == 422

    def test_every_status_can_be_asked_for(self) -> None:
        assert {*get_args(StatusWanted)} == {"open", "finished", *map(str, InstanceStatus)}

    def test_ids_by_their_beginning_with_characters_of_patterns(self, program: Program) -> None:
        for one in ("a_1", "A_2", "ab3", "b_a"):
            factories.instance(id=one)
        assert ids(get(program, "/instances?q=a_")) == ["A_2", "a_1"]
        for nothing in ("%25", "a%25", "%5C", "a%5C_", "_", "*"):
            assert ids(get(program, f"/instances?q={nothing}")) == []

    @pytest.mark.parametrize("name", ["q", "tag", "workflow"])
    def test_nul_is_refused(self, program: Program, name: str) -> None:
        """F1"""
        answer = program.get(f"/instances?{name}=a%00b")
        assert (answer.status_code, json.loads(answer.content)["errors"][0]["path"]) == (422, name)

    def test_tags_and_workflows(self, program: Program) -> None:
        factories.instance(id="a", tags=["eu", "vip"])
        factories.instance(id="b", tags=["eu"], workflow="refunds")
        assert ids(get(program, "/instances?tag=eu")) == ["b", "a"]
        assert ids(get(program, "/instances?tag=vip")) == ["a"]
        assert ids(get(program, "/instances?tag=e")) == []
        assert ids(get(program, "/instances?tag=eu&workflow=refunds")) == ["b"]
        assert ids(get(program, "/instances?workflow=Refunds")) == []

    def test_times_with_an_offset(self, program: Program) -> None:
        base = datetime(2026, 3, 1, 12, tzinfo=UTC)
        for hours in range(6):
            moment = base + timedelta(hours=hours)
            factories.instance(id=f"h-{hours}", created_at=moment, wake_at=moment)
        after, before = "2026-03-01T14:00:00%2B01:00", "2026-03-01T17:00:00Z"
        assert ids(get(program, f"/instances?created_after={after}&created_before={before}")) == [
            "h-4",
            "h-3",
            "h-2",
        ]
        for wrong in (
            "2026-03-01T14:00:00",
            "yesterday",
            "10000-01-01T00:00:00Z",
            "1e400",
        ):
            assert program.get(f"/instances?created_after={wrong}").status_code == 422

    def test_a_search_without_an_index_goes_window_by_window(
        self, program: Program, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(operations, "WINDOW", 3)
        for number in range(8):
            factories.instance(id=f"o-{number}", tags=["rare"] if number in (0, 1, 6) else [])
        found = pages(program, "/instances?tag=rare", "instances")
        assert [[one["id"] for one in page] for page in found] == [["o-6"], [], ["o-1", "o-0"]]
        # These have an index.
        assert len(pages(program, "/instances?workflow=orders&status=queued", "instances")) == 4
        assert len(pages(program, "/instances?q=o-0", "instances")) == 1

    def test_a_search_that_takes_too_long_ends(
        self, program: Program, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        factories.instance()

        def slow(q: str) -> None:
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL statement_timeout = 1")
                cursor.execute("SELECT pg_sleep(60)")

        monkeypatch.setattr(search, "keys_alike", slow)
        answer = program.get("/instances?q=a")
        assert (answer.status_code, json.loads(answer.content)["code"]) == (503, "too_slow")


class TestFirstKey:
    @pytest.mark.parametrize("count", [0, 1, 2, 7])
    def test_is_that_of_the_first_row_from_then_on(self, count: int) -> None:
        base = datetime(2026, 3, 1, tzinfo=UTC)
        made = []
        for number in range(count):
            at = base + timedelta(hours=number)
            made.append(factories.instance(created_at=at, wake_at=at))
        for half_hours in range(-1, 2 * count + 1):
            moment = base + timedelta(minutes=30 * half_hours)
            keys = [one.key for one in made if one.created_at >= moment]
            past = made[-1].key + 1 if made else 1
            assert search.first_key(Instance, "created_at", moment) == (keys[0] if keys else past)


class TestAudit:
    def test_filters(self, program: Program) -> None:
        one, other = factories.instance(id="o-1"), factories.instance(id="o-2", workflow="refunds")
        factories.deed(one, "pause", "ana", at=datetime(2026, 3, 1, tzinfo=UTC))
        factories.deed(one, "resume", "Anton", at=datetime(2026, 3, 2, tzinfo=UTC))
        factories.deed(other, "pause", "bo", outcome="denied", at=datetime(2026, 3, 3, tzinfo=UTC))

        def actors(query: str) -> list[str]:
            return [one["actor"] for one in get(program, f"/audit?{query}")["actions"]]

        assert actors("person=an") == ["Anton", "ana"]
        assert actors("verb=pause") == ["bo", "ana"]
        assert actors("outcome=denied") == ["bo"]
        assert actors("workflow=orders") == ["Anton", "ana"]
        assert actors("id=o-2") == ["bo"]
        assert actors("since=2026-03-02T00:00:00Z&until=2026-03-03T00:00:00Z") == ["Anton"]
        assert actors("person=%25") == []
        assert program.get("/audit?verb=a%00").status_code == 422

    def test_goes_window_by_window(self, program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
        order = factories.instance()
        for number in range(7):
            factories.deed(order, "pause", "rare" if number in (0, 6) else "li")
        monkeypatch.setattr(audit_trail, "WINDOW", 4)
        found = pages(program, "/audit?person=rare", "actions")
        assert [len(page) for page in found] == [1, 1, 0] or [len(page) for page in found] == [1, 1]


class TestNarrowTokens:
    """E9: a token for some workflows sees nothing of the others, not in lists and not in numbers."""

    @pytest.fixture
    def narrow(self, program_of: Programs) -> Program:
        return program_of("root", workflows=["orders*", "order-ol?"])

    @pytest.fixture
    def orders(self) -> Instance:
        """Return an instance with a parent and children of other workflows, and one of its own."""
        billing = factories.instance("waiting", waiting_for="child", workflow="billing", id="invoice")
        order = factories.child(billing, "waiting", workflow="orders", id="o-1", waiting_for="child")
        for number in range(3):
            factories.child(order, workflow="billing", id=f"sum-2{number}", name=f"bill-{number}")
        factories.child(order, workflow="orders", id="o-2", name="part")
        factories.request(factories.instance("waiting", workflow="billing"))
        factories.deed(billing, "pause", "li")
        factories.deed(order, "pause", "li")
        for workflow in ("billing", "orders"):
            row = {"expression": "0 9 * * *", "timezone": "UTC", "next_at": factories.ago(hours=-3)}
            ScheduleRow.objects.create(workflow=workflow, name="mornings", **row)
        return order

    def test_lists_leave_others_out(self, narrow: Program, orders: Instance) -> None:
        assert {one["workflow"] for one in get(narrow, "/instances")["instances"]} == {"orders"}
        assert {one["workflow"] for one in get(narrow, "/audit")["actions"]} == {"orders"}
        assert {one["workflow"] for one in get(narrow, "/schedules")["schedules"]} == {"orders"}
        assert {one["name"] for one in get(narrow, "/workflows")["workflows"]} == {"orders"}
        assert get(narrow, "/requests")["requests"] == []
        for query in ("workflow=billing", "q=inv", "q=INVOICE", "workflow=billing&status=open"):
            assert get(narrow, f"/instances?{query}")["instances"] == []
        assert get(narrow, "/audit?workflow=billing")["actions"] == []
        assert get(narrow, "/audit?id=invoice")["actions"] == []

    def test_relations_leave_others_out(self, narrow: Program, orders: Instance) -> None:
        found = get(narrow, "/workflows/orders/instances/o-1?limit=1")
        assert (found["instance"]["parent"], found["children_total"]) == (None, 1)
        assert [one["id"] for one in found["children"]] == ["o-2"]
        assert [one["id"] for one in get(narrow, "/workflows/orders/instances/o-1/children")["children"]] == [
            "o-2"
        ]

    def test_sentences_name_no_other_instance(
        self, narrow: Program, program: Program, orders: Instance
    ) -> None:
        def said(who: Program) -> list[str]:
            listed = get(who, "/instances?q=o-1")["instances"][0]["why"]
            return [listed, get(who, "/workflows/orders/instances/o-1")["instance"]["why"]]

        assert all("sum-2" in one or "o-2" in one for one in said(program)), said(program)
        for one in said(narrow):
            assert "a child" in one
            assert "sum-2" not in one
            assert "o-2" not in one

    def test_the_trail_of_deleted_instances_stays_visible(self, narrow: Program) -> None:
        for workflow in ("order-old", "billing"):
            Audit.objects.create(
                verb="delete", actor="li", workflow=workflow, instance_id="x", instance_key=1
            )
        assert [one["workflow"] for one in get(narrow, "/audit")["actions"]] == ["order-old"]

    def test_workers_count_what_may_be_seen(self, narrow: Program) -> None:
        factories.worker(["billing"])
        busy = factories.worker(["billing", "orders"], held=3)
        factories.instance("running", owner=busy.worker_id)
        for _ in range(2):
            factories.instance("running", owner=busy.worker_id, workflow="billing")
        (one,) = get(narrow, "/workers")["workers"]
        assert (one["workflows"], one["held"]) == (["orders"], 1)


class TestQueries:
    """The number of queries does not grow with the rows."""

    def count(self, program: Program, path: str) -> int:
        program.get(path)  # what is compiled or read once
        with CaptureQueriesContext(connection) as queries:
            assert program.get(path).status_code == 200
        return len(queries)

    @pytest.mark.parametrize(
        ("path", "most"),
        [
            ("/me", 1),
            ("/workflows", 8),
            ("/instances", 12),
            (
                "/audit",
                8,
            ),  # within a transaction, as here, the limit of time is reset with a query of its own
            ("/requests", 4),
            ("/schedules", 4),
            ("/workers", 2),
            ("/workflows/orders/instances/o-1", 14),
            ("/workflows/orders/instances/o-1/steps", 5),
            ("/workflows/orders/instances/o-1/events", 5),
            ("/workflows/orders/instances/o-1/children", 3),
            ("/workflows/orders/instances/o-1/logs", 3),
            ("/workflows/orders/instances/o-1/audit", 3),
        ],
    )
    def test_stays(self, program: Program, path: str, most: int) -> None:
        self.fill(1)
        few = self.count(program, path)
        self.fill(6)
        assert self.count(program, path) == few <= most

    @pytest.mark.parametrize(
        ("path", "most"),
        [
            ("/workflows/tick/instances", 2),  # the token, and the start with its row in the trail
            ("/workflows/tick/instances/one/pause", 11),
            ("/workflows/tick/instances/one/events", 8),
        ],
    )
    def test_a_deed_takes_few(self, program: Program, path: str, most: int) -> None:
        tick.start(id="one")
        program.get("/me")
        with CaptureQueriesContext(connection) as queries:
            answer = program.post(path, {"type": "paid"} if path.endswith("events") else {})
        assert answer.status_code in (200, 201, 202)
        assert len(queries) <= most, [query["sql"] for query in queries]

    def fill(self, count: int) -> None:
        order = Instance.objects.filter(id="o-1").first() or factories.instance(
            "waiting", waiting_for="child", id="o-1"
        )
        for _ in range(count):
            other = factories.instance("waiting", workflow=f"w-{Instance.objects.count()}")
            factories.request(other, assignees=["ada"])
            for about in (order, other):
                factories.step(about, "charge", "errored")
                factories.event(about)
                factories.log(about, "x")
                factories.deed(about, "resume")
            factories.child(order, name="bill")
            factories.worker([other.workflow])
            row = {"expression": "0 9 * * *", "timezone": "UTC", "next_at": factories.ago(hours=-3)}
            ScheduleRow.objects.create(workflow=other.workflow, name="mornings", **row)


def test_a_workflow_in_the_list_has_its_schedules(program: Program, shop: Shop) -> None:
    listed = {one["name"]: one for one in json.loads(program.get("/workflows").content)["workflows"]}
    of = {name: [one["name"] for one in found["schedules"]] for name, found in listed.items()}
    assert any(of.values())
    for name, names in of.items():
        single = json.loads(program.get(f"/workflows/{name}").content)
        assert single["workflow"]["schedules"] == single["schedules"]
        assert [one["name"] for one in single["schedules"]] == names


class TestManySchedules:
    """One workflow with more schedules than a list holds hides none of another."""

    @pytest.fixture
    def _many(self) -> None:
        row = {"expression": "0 9 * * *", "timezone": "UTC", "next_at": factories.ago(hours=-3)}
        never = {**row, "is_declared": False, "next_at": None}
        for workflow in ("busy", "quiet"):
            factories.instance(workflow=workflow)
        ScheduleRow.objects.bulk_create(
            [
                *(ScheduleRow(workflow="busy", name=f"{n:03}", **never) for n in range(600)),
                ScheduleRow(workflow="busy", name="now", **row),
                *(ScheduleRow(workflow="quiet", name=name, **row) for name in ("*/5 * * * *", "b\nc", "été")),
            ]
        )

    @pytest.mark.usefixtures("_many")
    def test_of_each_workflow_the_list_has_some_and_says_how_many_there_are(self, program: Program) -> None:
        found = {one["name"]: one for one in get(program, "/workflows")["workflows"]}
        busy, quiet = found["busy"], found["quiet"]
        assert ([one["name"] for one in quiet["schedules"]], quiet["schedules_total"]) == (
            ["*/5 * * * *", "b\nc", "été"],
            3,
        )
        # Those that the code declares come before what it declared once.
        names = [one["name"] for one in busy["schedules"]]
        assert (names, busy["schedules_total"]) == ([*(f"{n:03}" for n in range(199)), "now"], 601)
        assert get(program, "/workflows/busy")["workflow"] == busy
        assert get(program, "/workflows/tick")["workflow"]["schedules_total"] == 0

    @pytest.mark.usefixtures("_many")
    def test_pages_have_each_once(self, program: Program) -> None:
        found, cursor = [], ""
        while cursor is not None:
            page = get(program, f"/schedules?limit=200{cursor and f'&cursor={cursor}'}")
            found += [(one["workflow"], one["name"]) for one in page["schedules"]]
            cursor = page["next_cursor"]
        assert found == list(ScheduleRow.objects.order_by("workflow", "name").values_list("workflow", "name"))

    @pytest.mark.usefixtures("_many")
    def test_of_one_workflow_come_alone(self, program: Program) -> None:
        found = pages(program, "/schedules?workflow=quiet", "schedules")
        assert [[one["name"] for one in page] for page in found] == [["*/5 * * * *", "b\nc"], ["été"]]

    @pytest.mark.parametrize(
        "cursor",
        [*BAD_CURSORS, "61", "61.", ".61", "6.61", "61.00", "61.6G", "61." + 401 * "61", quote("61.61\n")],
    )
    def test_what_is_no_cursor_is_refused(self, program: Program, cursor: str) -> None:
        answer = program.get(f"/schedules?cursor={cursor}")
        assert (answer.status_code, json.loads(answer.content)["errors"][0]["path"]) == (422, "cursor")

    @pytest.mark.parametrize("cursor", ["61.61", "ff.c3", "0a." + 400 * "7f"])
    def test_whatever_its_schema_allows_is_a_place(self, program: Program, cursor: str) -> None:
        assert get(program, f"/schedules?cursor={cursor}")["schedules"] == []
