"""Pausing and resuming workflows, as a person does it: pages that say what it does, and plain forms."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import pytest
from django.test import Client

from engine import pauses, workflows
from engine.models import Audit, PauseRow
from tests.studio import factories

pytestmark = pytest.mark.django_db

WHY = {"reason": "The provider is down."}


def at(action: str, *names: str, next: str = "") -> str:
    query = [*(("workflow", name) for name in names), *([("next", next)] if next else [])]
    return f"/{action}-workflows/?{urlencode(query)}"


def text(page: str) -> str:
    """Return what people read on a page."""
    main = page.split("<main", 1)[1].split("</main>")[0].partition(">")[2]
    return " ".join(re.sub(r"<[^>]+>|[\u2068\u2069]", " ", main).split())


def read(client: Client, where: str, status: int = 200) -> str:
    answer = client.get(where)
    assert answer.status_code == status
    return text(answer.content.decode())


def rows() -> list[tuple[str, str, str, str, str]]:
    """Return the audit trail, oldest first."""
    return [
        (one.verb, one.workflow, one.actor, one.outcome, one.reason) for one in Audit.objects.order_by("key")
    ]


def paused() -> list[str]:
    return [one.workflow for one in pauses.paused()]


class TestPausing:
    def test_the_page_says_what_it_does_and_how_many_are_open(self, operator: Client) -> None:
        for status in ("queued", "waiting", "complete"):
            factories.instance(status, workflow="process-order")
        said = read(operator, at("pause", "process-order", "nap"))
        assert "Pause 2 workflows" in said
        assert "Starts, events, answers and schedules are accepted; they wait." in said
        assert "process-order 2 open nap 0 open" in said
        assert "Pause nap" in read(operator, at("pause", "nap", "nap"))

    def test_all_are_paused_with_the_reason_and_it_leads_back(self, operator: Client) -> None:
        answer = operator.post(at("pause", "nap", "process-order", next="/errors/?state=open"), WHY)
        assert (answer.status_code, answer.headers["Location"]) == (302, "/errors/?state=open")
        assert paused() == ["nap", "process-order"]
        assert rows() == [
            ("workflow-pause", name, "oli", "done", "The provider is down.")
            for name in ("nap", "process-order")
        ]
        assert "Paused nap and process-order." in read(operator, "/workflows/")

    def test_one_leads_to_its_page_and_several_to_the_list(self, operator: Client) -> None:
        assert operator.post(at("pause", "nap"), WHY).headers["Location"] == "/workflows/nap/"
        many = operator.post(at("pause", "tick", "process-order"), WHY)
        assert many.headers["Location"] == "/workflows/"

    @pytest.mark.parametrize(
        "elsewhere",
        ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)", "x"],
    )
    def test_it_never_leads_to_another_site(self, operator: Client, elsewhere: str) -> None:
        asked = operator.get(at("pause", "nap", next=elsewhere)).content.decode()
        assert '<a class="button" href="/workflows/nap/">Back</a>' in asked
        answer = operator.post(at("pause", "nap", next=elsewhere), WHY)
        assert answer.headers["Location"] == "/workflows/nap/"

    def test_it_needs_a_reason(self, operator: Client) -> None:
        answer = operator.post(at("pause", "nap"), {"reason": " \0 "})
        assert answer.status_code == 422
        assert "Not paused. Enter a reason." in text(answer.content.decode())
        assert (paused(), rows()) == ([], [])

    def test_one_that_is_already_paused_is_named_and_kept(self, operator: Client) -> None:
        pauses.pause("nap", by="zoe", reason="mine")
        said = read(operator, at("pause", "nap", "tick"))
        assert "nap is already paused by zoe since" in said
        assert "Pause tick" in said
        operator.post(at("pause", "nap", "tick"), WHY)
        assert [(one.workflow, one.reason) for one in pauses.paused()] == [
            ("nap", "mine"),
            ("tick", "The provider is down."),
        ]
        assert "Paused tick. Already paused: nap." in read(operator, "/workflows/")

    def test_nothing_is_changed_if_all_are_already_paused(self, operator: Client) -> None:
        pauses.pause("nap", by="zoe", reason="mine")
        answer = operator.post(at("pause", "nap"), WHY)
        assert answer.status_code == 409
        assert "Already paused. Nothing was changed. nap is already paused by zoe" in text(
            answer.content.decode()
        )
        assert "Resume…" in answer.content.decode()
        assert len(rows()) == 1

    @pytest.mark.parametrize("action", ["pause", "resume"])
    @pytest.mark.parametrize("name", ["no-such-workflow", "", "a\0b", "<script>", "x" * 5_000, "é"])
    def test_an_unknown_name_is_explained_and_nothing_is_half_done(
        self, operator: Client, action: str, name: str
    ) -> None:
        pauses.pause("tick")
        for answer in (
            operator.get(at(action, name, "nap", "tick")),
            operator.post(at(action, name, "nap", "tick"), WHY),
        ):
            assert answer.status_code == 404
            page = answer.content.decode()
            assert "No workflow of this name" in page
            assert "<script>" not in page.split("<main")[1].split("</main>")[0]
        assert paused() == ["tick"]

    @pytest.mark.parametrize("action", ["pause", "resume"])
    def test_too_many_or_no_names_are_explained(self, operator: Client, action: str) -> None:
        assert "The address names no workflow." in read(operator, at(action), 404)
        many = at(action, *(f"w{n}" for n in range(101)))
        assert "The address names 101 workflows; 100 is the most." in read(operator, many, 404)

    def test_a_workflow_that_is_no_longer_in_the_code_is_paused_and_resumed(self, operator: Client) -> None:
        row = factories.instance("complete", workflow="gone-from-code")
        operator.post(at("pause", "gone-from-code"), WHY)
        assert paused() == ["gone-from-code"]
        row.delete()
        answer = operator.post(at("resume", "gone-from-code"))
        assert (answer.headers["Location"], paused()) == ("/workflows/", [])


class TestResuming:
    def test_all_go_on(self, operator: Client) -> None:
        for _ in range(3):
            factories.instance("queued", workflow="nap", created_at=factories.ago(minutes=2))
        pauses.pause("nap", by="zoe", reason="down")
        said = read(operator, at("resume", "nap"))
        assert "Resume nap" in said
        assert "3 held Paused by zoe since" in said
        assert "All 3 held instances" in said
        answer = operator.post(at("resume", "nap"), {"how": "all", "reason": "up"})
        assert (answer.headers["Location"], paused()) == ("/workflows/nap/", [])
        assert "Resumed nap: 3 held instances may go on." in read(operator, "/workflows/nap/")
        assert rows()[-1] == ("workflow-resume", "nap", "oli", "done", "up")

    def test_the_oldest_few_of_each_are_released_and_the_pause_stays(self, operator: Client) -> None:
        for name in ("nap", "tick"):
            pauses.pause(name)
            for n in range(3):
                factories.instance("queued", workflow=name, id=str(n), wake_at=factories.ago(minutes=9 - n))
        operator.post(at("resume", "nap", "tick"), {"how": "some", "count": "2"})
        assert [(one.workflow, one.released) for one in pauses.paused()] == [("nap", 2), ("tick", 2)]
        said = read(operator, "/workflows/")
        assert "Released 2 of nap; 1 is still held. Released 2 of tick; 1 is still held." in said
        assert "1 held Paused since" in read(operator, at("resume", "nap"))
        assert "2 released since." in read(operator, at("resume", "nap"))

    @pytest.mark.parametrize("count", ["0", "-1", "1.5", "ten", "", "1000001", "٣", "9" * 30])
    def test_a_wrong_number_releases_nothing(self, operator: Client, count: str) -> None:
        pauses.pause("nap")
        factories.instance("queued", workflow="nap")
        answer = operator.post(at("resume", "nap"), {"how": "some", "count": count})
        assert answer.status_code == 422
        assert "Nothing was released. Enter a number from 1 to 1,000,000." in answer.content.decode()
        assert PauseRow.objects.get().released == 0

    def test_what_was_resumed_meanwhile_is_said(self, operator: Client) -> None:
        answer = operator.post(at("resume", "nap"), {"how": "all"})
        assert answer.status_code == 409
        assert "Not paused any more. Nothing was changed." in text(answer.content.decode())
        assert rows() == []
        pauses.pause("tick")
        assert "Not paused: nap ." in read(operator, at("resume", "nap", "tick"))
        operator.post(at("resume", "nap", "tick"))
        assert [row[:2] for row in rows()] == [("workflow-pause", "tick"), ("workflow-resume", "tick")]


class TestRights:
    @pytest.mark.parametrize("action", ["pause", "resume"])
    def test_who_may_not_operate_is_refused_and_a_denied_row_says_so(
        self, viewer: Client, action: str
    ) -> None:
        pauses.pause("tick")
        assert viewer.get(at(action, "nap", "tick")).status_code == 403
        answer = viewer.post(at(action, "nap", "tick"), WHY)
        assert answer.status_code == 403
        assert "This requires the <strong>operator</strong> role." in answer.content.decode()
        assert paused() == ["tick"]
        assert rows()[1:] == [(f"workflow-{action}", name, "vic", "denied", "") for name in ("nap", "tick")]

    def test_viewers_see_the_button_disabled_with_the_reason(self, viewer: Client) -> None:
        page = viewer.get("/workflows/nap/").content.decode()
        assert re.search(r'<button[^>]*disabled title="Requires the operator role">[^…]*Pause…', page)
        assert "pause-workflows" not in page
        pauses.pause("nap")
        page = viewer.get("/workflows/nap/").content.decode()
        assert "Paused since" in text(page)
        assert "resume-workflows" not in page


class TestOtherPages:
    def test_the_page_of_the_workflow_says_who_why_and_how_many(self, operator: Client) -> None:
        page = operator.get("/workflows/nap/").content.decode()
        assert 'href="/pause-workflows/?workflow=nap"' in page
        pauses.pause("nap", by="zoe", reason="</span><script>")
        for _ in range(2):
            factories.instance("queued", workflow="nap")
        page = operator.get("/workflows/nap/").content.decode()
        said = text(page)
        assert "UTC : “&lt;/span&gt;&lt;script&gt;”. 2 instances are held. Resume…" in said
        assert "Paused by zoe since" in said
        assert 'href="/resume-workflows/?workflow=nap"' in page
        assert "pause-workflows/?" not in page.replace("resume-workflows/?", "")

    @pytest.mark.parametrize("page", ["/", "/workflows/"])
    def test_tables_mark_paused_workflows(self, viewer: Client, page: str) -> None:
        first, second, *_ = sorted(workflows)
        pauses.pause(second)
        shown = viewer.get(page).content.decode()
        lines = {
            name: text("<main>" + shown.split(f'id="w-{name}"')[1].split("</tr>")[0])
            for name in (second, first)
        }
        assert [" paused " in f" {line} " for line in lines.values()] == [True, False]

    def test_the_start_form_says_that_the_instance_waits(self, operator: Client) -> None:
        sentence = "This workflow is paused: the instance waits until it is resumed."
        assert sentence not in read(operator, "/workflows/nap/start/")
        pauses.pause("nap")
        assert sentence in read(operator, "/workflows/nap/start/")

    @pytest.mark.parametrize("topic", ["workflow:nap", "workflows", "home"])
    def test_open_pages_hear_of_it(self, operator: Client, topic: str) -> None:
        before = operator.get("/_f/live/", {"topic": topic}).content.decode()
        pauses.pause("nap", by="zoe")
        pauses.pause(min(workflows), by="zoe")  # Home shows the first ones
        after = operator.get("/_f/live/", {"topic": topic}).content.decode()
        assert ("s-paused" in before.lower(), "s-paused" in after) == (False, True)
