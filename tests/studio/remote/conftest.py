"""The command line on this database, and the same command line over HTTP, with a server on this database."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection, connections

from engine.management.commands.workflow import Command
from studio.access import tokens
from studio.access.token_rules import GIVABLE
from tests.studio import factories


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


Run = Callable[..., Done]

# A time that passes between two calls, with the spaces that fill its column. The others follow from its width.
_PASSING = re.compile(r"(?:\d+ m \d+ s\b|\d+ [smh] ago|just now) *")
_FILLED = re.compile(r" {2,}")


@pytest.fixture
def here(transactional_db: None, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command as a shell does, on this database."""

    def run(*arguments: str) -> Done:
        capsys.readouterr()
        code = 0
        try:
            Command().run_from_argv(["reprise", "workflow", *arguments])
        except SystemExit as end:
            code = int(end.code or 0)
        out, err = capsys.readouterr()
        return Done(code, *(_FILLED.sub("  ", _PASSING.sub("a while ", text)) for text in (out, err)))

    return run


@pytest.fixture
def address(live_server: Any) -> str:
    return str(live_server.url)


@pytest.fixture
def token(transactional_db: None) -> str:
    admin = factories.person("admin", "ada")
    return tokens.issue("ci", by=admin, owner=None, verbs=GIVABLE, workflows=("*",)).text


@pytest.fixture
def elsewhere(here: Run, address: str, token: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the same command with REPRISE_URL. It may not ask the database itself."""

    def refuse(*_: Any) -> None:
        raise AssertionError("The command asked the database.")

    real, mine = connections.close_all, threading.get_ident()

    def close_all() -> None:
        if threading.get_ident() != mine:  # the wrapper is on this thread's connection
            real()

    def run(*arguments: str, **variables: str) -> Done:
        with monkeypatch.context() as patch, connection.execute_wrapper(refuse):
            for name, value in {"REPRISE_URL": address, "REPRISE_TOKEN": token, **variables}.items():
                patch.setenv(name, value)
            patch.setattr(connections, "close_all", close_all)
            return here(*arguments)

    return run
