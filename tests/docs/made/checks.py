"""The table of our system checks."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from django.test import override_settings

_KINDS = ("Error", "Caution", "make")


class Check(NamedTuple):
    id: str
    message: str
    hint: str


def checks() -> str:
    """List the system checks of both apps."""
    from engine import checks as of_engine
    from studio import checks as of_studio
    from studio import urls

    found = {one.id: one for module in (of_engine, of_studio, urls) for one in _checks_of(module)}
    for name, (loss, key) in of_engine.SERVER_SETTINGS.items():
        found[key] = Check(
            key, f'PostgreSQL runs with "{name}" off: {loss}.', f"Set {name} = on in postgresql.conf."
        )
    found |= {one.id: one for one in _made_elsewhere()}
    lines = ["| id | meaning | cure |", "| --- | --- | --- |"]
    lines += [
        f"| `{one.id}` | {_cell(one.message)} | {_cell(one.hint)} |" for _, one in sorted(found.items())
    ]
    return "\n".join(lines)


def ids_in_the_source() -> set[str]:
    """Return every id that the modules of the checks name."""
    from engine import checks as of_engine
    from studio import checks as of_studio
    from studio import urls

    text = "".join(inspect.getsource(module) for module in (of_engine, of_studio, urls))
    return set(re.findall(r'"((?:engine|studio)\.[EW]\d{3})"', text))


def _made_elsewhere() -> Iterator[Check]:
    """Yield the checks that repeat what other modules say, in the words of those."""
    from engine.name_conflicts import HOME, Conflict
    from engine.status import schema
    from engine.version import VERSION

    hidden = Conflict("engine", Path("…"), is_imported=True)
    yield Check("engine.E012", hidden.message.replace(str(HOME), "…"), hidden.advice)
    lacking, advice = schema.sentence(["…"]).removesuffix(f" {schema.ADVICE}"), schema.ADVICE
    for key in ("engine.E008", "engine.W015", "studio.E008"):
        yield Check(key, lacking, advice)
    newer, install = schema.sentence_about_unknown(["engine.…"]).replace(VERSION, "this one").rsplit(". ", 1)
    yield Check("engine.E016", f"{newer}.", install)
    yield from _of_settings()


def _of_settings() -> Iterator[Check]:
    """Yield the checks of REPRISE, with an example of what they find."""
    from engine import checks

    examples = {"SLOTS": "many", "SECRET_KEYS": ["short"]}
    with override_settings(REPRISE=examples):
        for found in (*checks.check_configuration(), *checks.check_secret_keys()):
            assert found.id is not None
            yield Check(found.id, found.msg, found.hint or "")


def _checks_of(module: ModuleType) -> Iterator[Check]:
    tree = ast.parse(inspect.getsource(module))
    for function in [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]:
        local = {
            target.id: one.value
            for one in ast.walk(function)
            if isinstance(one, ast.Assign)
            for target in one.targets
            if isinstance(target, ast.Name)
        }
        for call in ast.walk(function):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in _KINDS:
                given = {one.arg: one.value for one in call.keywords}
                text = _text(call.args[0], local, module)
                hint = _text(given["hint"], local, module) if "hint" in given else ""
                for key in _ids(given["id"]):
                    yield Check(key, text, hint)


def _ids(node: ast.expr) -> list[str]:
    constants = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
    return [one for one in constants if isinstance(one, str)]


def _text(node: ast.expr, local: Mapping[str, ast.expr], module: ModuleType) -> str:
    """Return a text as the code writes it, with … for what it fills in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(one, local, module) for one in node.values)
    if isinstance(node, ast.FormattedValue):
        return _text(node.value, {}, module) if isinstance(node.value, ast.Name) else "…"
    if isinstance(node, ast.Name) and node.id in local:
        return _text(local[node.id], {}, module)
    if isinstance(node, ast.Name) and isinstance(getattr(module, node.id, None), str):
        return str(getattr(module, node.id))
    if isinstance(node, ast.Attribute) and node.attr == "ADVICE":
        from engine.status.schema import ADVICE

        return ADVICE
    return "…"


def _cell(text: str) -> str:
    assert text.strip("… ."), "a cell without words: say in _made_elsewhere what the check finds"
    return text.replace("|", "\\|")
