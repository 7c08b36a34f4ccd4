"""Programs with tokens, which call the API in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpResponse
from django.test import Client

from engine import workflows
from engine.models import Audit
from engine.testing import workflow_test
from studio.access import token_rules, tokens
from studio.access.permissions import Verb
from tests.studio import factories
from tests.studio.api.shop import NOW, Shop, declare, open_shop
from tests.studio.api.tour import Call

PREFIX = "/api/v1"


@dataclass
class Program:
    """A program with a token. Addresses are below the prefix of the API."""

    token: str
    headers: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, **headers: str) -> HttpResponse:
        return self.send("GET", path, None, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> HttpResponse:
        return self.send("POST", path, {} if body is None else body, **headers)

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> HttpResponse:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return Client().generic(
            method,
            PREFIX + path,
            content,
            "application/json",
            headers={"Authorization": f"Bearer {self.token}", **self.headers, **given},
        )


Programs = Callable[..., Program]


def trail() -> QuerySet[Audit]:
    """Return the rows of the audit trail, except those about tokens."""
    return Audit.objects.exclude(verb__endswith="_token")


@pytest.fixture
def program_of(db: None) -> Programs:
    """Make a program whose token is that of a new person with a role, or without a role a team token."""

    def make(
        role: str | None = "operator",
        *,
        verbs: Iterable[Verb] = token_rules.GIVABLE,
        workflows: Iterable[str] = ("*",),
        name: str = "ci",
    ) -> Program:
        admin = factories.person("admin")
        owner = factories.person(role) if role else None
        issued = tokens.issue(
            name, by=owner or admin, owner=owner, verbs=tuple(verbs), workflows=tuple(workflows)
        )
        return Program(issued.text)

    return make


@pytest.fixture
def program(program_of: Programs) -> Program:
    return program_of()


@pytest.fixture
def maria(db: None) -> Program:
    """A program of Maria, who is an admin."""
    owner = factories.person("admin", "maria")
    return Program(tokens.issue("deploy", by=owner, owner=owner, verbs=token_rules.GIVABLE).text)


@pytest.fixture
def shop(own_registry: None, db: None) -> Iterator[Shop]:
    """A shop in which each operation has something to do, at a time that stands still."""
    workflows._workflows.clear()
    declare()
    with workflow_test(now=NOW, allow_unused=True, skips_time=False) as test:
        yield open_shop(test)


@pytest.fixture
def visit(shop: Shop) -> Callable[[Program, Call], HttpResponse]:
    """Send a call and undo what it did, so that the next one finds the shop as it was."""

    def send(program: Program, call: Call) -> HttpResponse:
        with transaction.atomic():
            answer = program.send(call.method, call.path, call.body, **call.headers)
            transaction.set_rollback(True)
        return answer

    return send
