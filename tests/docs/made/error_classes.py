"""The error classes that people meet, in the groups of the page that explains them."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import engine
from engine import testing
from tests.docs.made import source
from tests.docs.pages import PROJECT


class Group(NamedTuple):
    module: str
    names: tuple[str, ...] = ()  # all public ones, if empty


VALUES = "engine.values.errors"
GROUPS: Mapping[str, tuple[Group, ...]] = {
    "base": (Group(f"{VALUES}.base"),),
    "calls": (Group(f"{VALUES}.calls"),),
    "steps": (Group(f"{VALUES}.steps"),),
    "waits": (Group(f"{VALUES}.waits"),),
    "workflows": (Group(f"{VALUES}.workflows"),),
    "handlers": (
        Group("engine.replay.handler.loop", ("ForeignAwaitError",)),
        Group("engine.replay.exit.endings", ("DeadlockError", "GivenUpError")),
    ),
    "instances": (Group(f"{VALUES}.instances"), Group(f"{VALUES}.failures"), Group(f"{VALUES}.bulk")),
    "values": (
        Group(f"{VALUES}.values"),
        Group("engine.values.serialization.reading", ("InvalidJSON",)),
        Group("engine.status.changes.cursor", ("InvalidCursorError",)),
    ),
    "testing": (Group("engine.testing.errors"),),
    "commands": (
        Group("engine.command.values", ("InputError",)),
        Group("engine.command.bulk", ("DeclinedError",)),
        Group("engine.command.refusals", ("RefusedElsewhereError",)),
        Group(f"{VALUES}.instances", ("GenerationNotFoundError",)),
    ),
    "start": (
        Group("studio.environment.parsing", ("SettingError",)),
        Group("studio.supervisor.home", ("AlreadyRunningError",)),
        Group("studio.supervisor.address", ("AddressError",)),
        Group("studio.embedded.place", ("EmbeddedError",)),
        Group("studio.supervisor.database", ("DatabaseError", "PasswordError")),
        Group("engine.models.earlier", ("TooEarlyDatabaseError", "WorkersRunError")),
    ),
}
PUBLIC = {*engine.__all__, *testing.__all__}


@cache
def classes(group: str) -> list[ast.ClassDef]:
    """Return the classes of a group in the order of their modules."""
    found: list[ast.ClassDef] = []
    for module, names in GROUPS[group]:
        nodes = [one for one in source.module_tree(module).body if isinstance(one, ast.ClassDef)]
        found += [one for one in nodes if (one.name in names if names else one.name in PUBLIC)]
    return found


NAMES = frozenset(one.name for group in GROUPS for one in classes(group))


def raised_by_ours() -> set[str]:
    """Return every class in our code that derives, by its bases' names, from RepriseError."""
    bases: dict[str, set[str]] = {}
    for path in _files():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                bases.setdefault(node.name, set()).update(ast.unparse(one) for one in node.bases)
    found = {"RepriseError"}
    while more := {name for name, over in bases.items() if over & found} - found:
        found |= more
    return found


def _files() -> list[Path]:
    return [path for room in ("engine", "studio") for path in sorted((PROJECT / room).rglob("*.py"))]
