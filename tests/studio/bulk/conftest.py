"""Orders whose charge fails while a bank is down, and bulk jobs on them."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from engine import WorkflowStep, bulk, workflow
from engine.models import Instance
from tests.stories import run_to_end
from tests.studio import factories

Fail = Callable[..., list[Instance]]
Run = Callable[[str], bulk.Job]


def text(page: str) -> str:
    """Return what people read on a page."""
    main = page.split("<main", 1)[1].split("</main>")[0].partition(">")[2] if "<main" in page else page
    return html.unescape(" ".join(re.sub(r"<[^>]+>|[\u2068\u2069]", " ", main).split()))


def read(client: Client, where: str, status: int = 200) -> str:
    answer = client.get(where)
    assert answer.status_code == status
    return text(answer.content.decode())


@pytest.fixture
def fail(engine_db: None, own_registry: None) -> Fail:
    """Run orders to their end, in which the charge fails; with `undo`, their first step is rolled back."""

    async def handle(step: WorkflowStep, params: dict[str, Any]) -> None:
        async def reserve() -> None: ...

        async def charge() -> None:
            raise ConnectionError("The bank is down.")

        undo: dict[str, Any] = {"rollback": lambda error: None} if params.get("undo") else {}
        await step.do("reserve", reserve, **undo)
        await step.do("charge", charge, max_attempts=1)

    known: dict[str, Any] = {}

    def run(count: int = 1, name: str = "orders", **params: Any) -> list[Instance]:
        if name not in known:
            known[name] = workflow(name=name)(handle)
        return [run_to_end(known[name].start(params)).refresh() for _ in range(count)]

    return run


@pytest.fixture
def run() -> Run:
    """Run a job to its end."""

    def run(id: str) -> bulk.Job:
        run_to_end(Instance.objects.get(workflow="reprise.bulk", id=id))
        return bulk.get(id)

    return run


@pytest.fixture
def people(engine_db: None) -> Callable[..., Client]:
    """Sign a user of a role in."""

    def sign_in(role: str = "operator", name: str = "") -> Client:
        client = Client()
        client.force_login(factories.person(role, name or role))
        return client

    return sign_in
