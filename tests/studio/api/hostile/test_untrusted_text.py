"""Texts that programs send are shown on pages as they are, and write no line of their own into the log."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client

from engine.models import Instance
from studio.server.log_lines import OneLineFormatter
from tests.studio import factories
from tests.studio.api.conftest import Program, Programs
from tests.studio.api.hostile.values import INSTANCES

MARKUP = [
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "</script><script>alert(1)</script>",
    "{{7*7}}{% now 'Y' %}",
    "javascript:alert(1)",
    "<div hx-get=/sign-out/ hx-trigger=load>",
    "' autofocus onfocus=alert(1) x='",
    "\u202egnp.exe",
    "=HYPERLINK(1)",
]
PAGES = [
    *("/", "/instances/", "/approvals/", "/audit/", "/workflows/sink/", "/workflows/sink/instances/{id}/"),
    "/workflows/sink/instances/{id}/restart/",
]


class Seen(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.dangers: list[str] = []
        self.texts: list[str] = []
        self._is_script = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_script = tag == "script"
        for name, value in attrs:
            text = (value or "").strip().lower()
            if (
                name.startswith("on")
                or text.startswith("javascript:")
                or (name, text) == ("hx-get", "/sign-out/")
            ):
                self.dangers.append(f"<{tag} {name}={value}>")
            self.texts.append(value or "")
        if tag in ("svg", "img") and ("src", "x") in attrs:
            self.dangers.append(f"<{tag}>")

    def handle_data(self, data: str) -> None:
        if self._is_script and "alert(1)" in data:
            self.dangers.append(data)
        self.texts.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._is_script = False


@pytest.fixture
def sent(program_of: Programs) -> str:
    """Send each text as everything that a program may send; return the id of the instance."""
    for number, text in enumerate(MARKUP):
        name = text if text.isprintable() else "ci"
        program = program_of("operator", name=name)
        body: dict[str, Any] = {"params": {text: [text]}, "tags": [text], "reason": text}
        body |= {"id": "one"} if number == 0 else {}
        answers = [program.post(INSTANCES, body, Idempotency_Key=f"<b>{number}</b>")]
        event = {"type": text, "payload": {text: text}, "dedup_key": text, "reason": text}
        answers.append(program.post(f"{INSTANCES}/one/events", event))
        answers.append(program.post(f"{INSTANCES}/one/pause", {"reason": text}))
        answers.append(program.post(f"{INSTANCES}/one/resume", {"reason": text}))
        asked = factories.instance("waiting", workflow="sink", waiting_for="event")
        made = factories.request(asked, message=text, schema={}, assignees=())
        approver = program_of("approver", name=name)
        answers.append(
            approver.post(
                f"{INSTANCES}/{asked.id}/requests/{made.seq}/answer",
                {"answer": {text: text}, "comment": text},
            )
        )
        assert [answer.status_code for answer in answers] == [201, 202, 200, 200, 200], answers[-1].content
    return "one"


def test_pages_show_them_and_nothing_acts(sent: str, signed_in: Callable[..., Client]) -> None:
    person = signed_in("admin")
    shown = {}
    ids = [sent, *Instance.objects.filter(workflow="sink").exclude(id=sent).values_list("id", flat=True)]
    addresses = [page.format(id=sent) for page in PAGES]
    addresses += [f"/workflows/sink/instances/{one}/" for one in ids]
    for address in addresses:
        answer = person.get(address)
        assert answer.status_code == 200
        seen = Seen(answer.content.decode())
        assert seen.dangers == [], address
        shown[address] = "\n".join(seen.texts)
    together = "\n".join(shown.values())
    assert [text for text in MARKUP if text not in together] == []
    assert "{{7*7}}" in shown["/audit/"]


def test_answers_are_no_page(sent: str, program: Program) -> None:
    for path in (
        f"{INSTANCES}/{sent}",
        f"{INSTANCES}/{sent}/payloads/params",
        f"{INSTANCES}/{sent}/events",
        "/audit",
    ):
        answer = program.get(path)
        assert answer["Content-Type"] == "application/json"
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["Content-Disposition"].startswith("attachment")
        assert "sandbox" in answer["Content-Security-Policy"]
        json.loads(answer.content)


def test_values_are_downloaded(sent: str, signed_in: Callable[..., Client]) -> None:
    answer = signed_in("admin").get(f"/workflows/sink/instances/{sent}/payload/params/")
    assert not answer["Content-Type"].startswith("text/html")
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Disposition"].startswith("attachment")


def test_exported_rows_begin_no_formula(sent: str, signed_in: Callable[..., Client]) -> None:
    text = b"".join(signed_in("admin").get("/audit/export.csv")).decode()  # type: ignore[call-overload]
    assert "'=HYPERLINK(1)" in text
    assert ',"=HYPERLINK' not in text
    assert ",=HYPERLINK" not in text


LINES = [
    "x\r\n2026-01-01 00:00:00,000 ERROR root [-] forged",
    "x\x1b[2J\x1b[31mred",
    "x\u2028forged",
    "x\x85forged",
]


@pytest.mark.parametrize("text", LINES)
def test_none_writes_a_line_of_the_log(program: Program, caplog: pytest.LogCaptureFixture, text: str) -> None:
    quoted = "".join(f"%{byte:02x}" for byte in text.encode())
    with caplog.at_level(logging.DEBUG):
        program.get(f"/workflows/{quoted}")
        program.get(f"/instances?q={quoted}")
        program.post(INSTANCES, {"id": text, "reason": text})
        program.post(f"{INSTANCES}/one/events", {"type": text})
    lines = [OneLineFormatter("%(message)s").format(record) for record in caplog.records]
    assert lines
    assert [line for line in lines if not line.isprintable()] == []
