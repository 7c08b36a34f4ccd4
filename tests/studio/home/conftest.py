"""What fails on Home, and how its rows and its sentence are read."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client

from engine import WorkflowStep, workflow
from engine.models import Instance
from tests.stories import run_to_end, wait_for

Fail = Callable[..., Instance]


@dataclass(frozen=True)
class Row:
    """A row, as people read it."""

    id: str
    count: str
    state: str
    title: str
    line: str
    since: str
    hour: str
    verb: str
    href: str
    html: str


class Home:
    """The page, as its reader sees it."""

    def __init__(self, client: Client, query: str = "") -> None:
        answer = client.get(f"/{query}")
        assert answer.status_code == 200
        self.html = answer.content.decode()

    @property
    def sentence(self) -> str:
        return _text(self.html, r"<h1>(.*?)</h1>")

    @property
    def facts(self) -> list[str]:
        return _text(self.html, r'<p class="facts-line muted">(.*?)</p>').split(" · ")

    @property
    def look(self) -> str:
        return _text(self.html, r'<span class="look s-(\w+)"')

    @property
    def is_quiet(self) -> bool:
        return re.search(r'<section class="card" id="attention"[^>]* hidden>', self.html) is not None

    @property
    def switch(self) -> str:
        return _text(self.html, r'<nav class="choices" aria-label="Whose">(.*?)</nav>')

    @property
    def rows(self) -> list[Row]:
        return [_row(part) for part in re.findall(r"<li id=\"g-.*?</li>", self.html, re.DOTALL)]


def _row(part: str) -> Row:
    def one(pattern: str) -> str:
        return _text(part, pattern)

    return Row(
        id=one(r'<li id="([^"]+)"'),
        count=one(r'<span class="number num">(.*?)</span>'),
        state=one(r'<span class="state">(.*?)</span>\s*<div'),
        title=one(r'<a class="title"[^>]*>(.*?)</a>'),
        line=one(r'<p class="line muted">(.*?)</p>'),
        since=one(r'<div class="since">(.*?)</div>'),
        hour=one(r'aria-label="Last hour, ([^"]*)"')
        if "hour-bars" in part
        else one(r'<span class="words">(.*?)</span>'),
        verb=one(r'<div class="act">.*?<(?:a|button)\s[^>]*>([^<]*)<span\s+class="visually-hidden"'),
        href=html.unescape(one(r'<a class="title" href="([^"]+)"')),
        html=part,
    )


def _text(part: str, pattern: str) -> str:
    found = re.search(pattern, part, re.DOTALL)
    assert found is not None, pattern
    text = html.unescape(re.sub(r"<[^>]+>", "", found[1]))
    return " ".join(text.replace("\u2068", "").replace("\u2069", "").split())


@pytest.fixture
def fail(engine_db: None, own_registry: None) -> Fail:
    """Run an instance of any workflow whose step charge_card fails, in the way that its params say."""

    def give_back(error: object) -> None:
        raise ConnectionError("refunds are closed")

    async def handle(step: WorkflowStep, params: dict[str, Any]) -> None:
        async def body() -> None:
            if not state["is_well"]:
                raise TimeoutError(params["message"])

        undo: dict[str, Any] = {}
        if params.get("undo"):
            undo = {"rollback": give_back, "rollback_options": {"max_attempts": 1}}
        more = {"on_exhausted": "pause"} if params.get("pauses") else {}
        attempts, delay = params.get("attempts", 1), params.get("delay", 0)
        await step.do("charge_card", body, max_attempts=attempts, delay=delay, **undo, **more)

    known: dict[str, Any] = {}
    state = {"is_well": False}

    def run(
        name: str = "orders",
        message: str = "no answer within 5 s",
        *,
        by: str = "shop",
        well: bool = False,
        **params: Any,
    ) -> Instance:
        if name not in known:
            known[name] = workflow(name=name)(handle)
        state["is_well"] = well
        started = known[name].start({"message": message, **params}, by=by)
        if params.get("pauses"):
            return wait_for(started, "paused")
        return wait_for(started, "waiting") if params.get("delay") else run_to_end(started)

    return run
