"""The reference is complete: every public name, error, status, command and word is on its page, and says something."""

from __future__ import annotations

import ast
import builtins
import re
from pathlib import Path

import pytest
from django.apps import apps

import engine
from engine import testing
from engine.signals import SIGNALS
from engine.values.states import StepKind
from studio.command import main
from tests.docs.made import api, commands, error_classes, errors, source, states
from tests.docs.made.pages import REFERENCE
from tests.docs.pages import PROJECT

API, ERRORS = (REFERENCE / "api.md").read_text(), (REFERENCE / "errors.md").read_text()
COMMANDS, GLOSSARY = (REFERENCE / "command-line.md").read_text(), (REFERENCE / "glossary.md").read_text()
# What a column holds that people never need.
OF_THE_ENGINE = {
    "Instance": (
        *(
            "key",
            "owner",
            "fence",
            "signals",
            "quarantined",
            "parent_key",
            "parent_generation",
            "parent_step",
            "keys_from",
            "released_in",
        ),
        *("is_tied", "depth", "notify_pending", "ends_as", "retention"),
    ),
    "Step": ("pk", "instance", "wake_is_fixed"),
    "Attempt": ("pk", "instance", "quarantined", "failed_at"),
    "Event": ("key", "instance"),
    "OpenRequest": ("pk", "instance"),
    "Generation": ("key", "instance"),
    "ScheduleRow": ("key", "last_instance_key", "created_at"),
    "Log": ("key", "instance", "position"),
    "Audit": ("key", "instance_key"),
    "Worker": ("key",),
}
# What no user of the engine meets.
NEVER_SHOWN = {"CardDeclinedError"}
WORDS = {
    *("workflow", "handler", "instance", "params", "output", "step", "attempt", "event", "replay", "cycle"),
    *("lease", "park", "wake", "checkpoint", "terminate", "generation", "shift", "slot", "fence", "journal"),
    *("flush", "signals", "kind", "status"),
}
WORDS_OF_MODELS = {
    "BulkItem": "bulk job",
    "BulkJob": "bulk job",
    "Audit": "audit trail",
    "CodeVersion": "workflow",
    "OpenRequest": "request",
    "EndedRequest": "request",
    "Failure": "error group",
    "FailureCount": "error group",
    "IndexedPath": "search path",
    "SearchValue": "search path",
    "WorkflowCount": "workflow",
    "WorkflowCountDelta": "workflow",
    "WorkflowSpan": "workflow",
}
ROW = re.compile(r"^\| ([a-zS][\w -]*) \| (.+?) \| \[[^\]]+\]\([^)]+\) \|$", re.MULTILINE)


@pytest.mark.parametrize("page", sorted(REFERENCE.glob("*.md")), ids=lambda page: page.name)
def test_no_two_headings_of_a_page_have_one_anchor(page: Path) -> None:
    titles = re.findall(
        r"^#+ (.+)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE
    )
    anchors = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
    assert sorted({one for one in anchors if anchors.count(one) > 1}) == []


# The API


def test_every_public_name_is_on_the_page() -> None:
    public = {*engine.__all__, *testing.__all__} - error_classes.NAMES
    headings = set(re.findall(r"^#+ (?:The class |The registry )?`(\w+)`$", API, re.MULTILINE))
    assert public - headings == {"StepOptionsDict", "RollbackOptionsDict"}
    assert "`StepOptionsDict` is their type, `RollbackOptionsDict` that of" in API


def test_every_public_module_is_on_the_page() -> None:
    files = [path for path in (PROJECT / "engine").glob("*.py") if path.stem != "__init__"]
    assert {path.stem for path in files if "__all__" in path.read_text()} == {*api.MODULES}
    assert re.findall(r"^\| `(\w+)` \|", api.signals(), re.MULTILINE) == [*SIGNALS]


def test_every_function_and_class_on_the_page_says_what_it_does() -> None:
    assert [one.called for one in api.documented() if not _says_something(one.text)] == []


def test_every_field_on_the_page_says_what_it_holds() -> None:
    shown = [
        entry for entry in api.entries() if entry.fields and not source.functions_of(entry.module, entry.name)
    ]
    silent = [
        f"{entry.name}.{field.name}"
        for entry in shown
        if not entry.is_only_methods
        for field in source.fields_of(source.class_of(entry.module, entry.name))
        if field.name not in entry.internal and not field.about and field.name not in _twins(entry)
    ]
    assert silent == []


@pytest.mark.parametrize("section", ["options:workflow", "options:step", "options:start"])
def test_every_option_says_what_it_means(section: str) -> None:
    rows = api.SECTIONS[section]().splitlines()[2:]
    assert rows
    assert [row for row in rows if not row.rsplit(" | ", 1)[1].endswith(". |")] == []


@pytest.mark.parametrize("model", api.MODELS)
def test_every_column_is_on_the_page_or_is_the_engines_own(model: str) -> None:
    columns = [one.name for one in apps.get_model("engine", model)._meta.concrete_fields]
    columns += ["pk"] if model in ("Step", "Attempt", "OpenRequest") and "pk" not in columns else []
    shown = re.findall(r"^\| `(\w+)` \|", api.columns(model), re.MULTILINE)
    assert sorted(set(columns) - {*shown}) == sorted(OF_THE_ENGINE[model])


def test_signatures_have_nothing_that_callers_do_not_write() -> None:
    written = "\n".join(re.findall(r"```py\n(.*?)```", API, re.DOTALL))
    assert re.findall(r"\bself\b|Unpack|NO_FUNCTION|\bP\.args|\bAny\b(?!\])|Coroutine", written) == []


# Errors


def test_no_docstring_names_an_error_that_does_not_exist() -> None:
    named = {name for one in api.documented() for name in re.findall(r"(?<![.\w])\w+Error\b", one.text)}
    known = error_classes.NAMES | {name for name in dir(builtins) if name.endswith("Error")}
    assert named - known == set()


def test_every_error_is_on_the_page() -> None:
    public = {name for name in (*engine.__all__, *testing.__all__) if name.endswith("Error")}
    ours = error_classes.raised_by_ours() - NEVER_SHOWN
    headings = set(re.findall(r"^### `(\w+)`$", ERRORS, re.MULTILINE))
    assert (public | ours) - headings == set()
    assert headings == error_classes.NAMES


def test_every_error_that_stops_the_start_is_on_the_page() -> None:
    files = [
        PROJECT / "studio" / "management" / "commands" / "studio.py",
        PROJECT / "studio" / "command" / "run.py",
    ]
    caught = {
        name.id
        for file in files
        for handler in ast.walk(ast.parse(file.read_text()))
        if isinstance(handler, ast.ExceptHandler) and handler.type is not None
        for name in ast.walk(handler.type)
        if isinstance(name, ast.Name)
    }
    assert caught - {"OSError", "PermissionError", "SystemCheckError"} - error_classes.NAMES == set()
    assert len(caught) > 5


@pytest.mark.parametrize("name", sorted(error_classes.NAMES))
def test_an_error_has_a_cause_and_a_cure(name: str) -> None:
    [node] = [
        one for group in error_classes.GROUPS for one in error_classes.classes(group) if one.name == name
    ]
    cause, cure = errors.cause_and_cure(node)
    assert _says_something(cause)
    assert _says_something(cure)
    assert cure.split()[0] not in ("The", "A", "An", "It", "This", "That", "You", "If")


# States


@pytest.mark.parametrize("name", states.ENUMS)
def test_every_status_says_what_it_means(name: str) -> None:
    enum = states.ENUMS[name]
    about = {one.name: one.about for one in source.fields_of(source.class_of(states.HOME, enum.__name__))}
    assert [one.name for one in enum if not _says_something(about[one.name])] == []


# Commands


def test_every_command_is_on_the_page() -> None:
    ours = commands.of_ours()
    assert "workers" in ours
    assert [name for name in ours if f"\n### `manage.py {name}`\n" not in COMMANDS] == []
    assert [name for name in main.OWN if f"\n  {name} " not in main.HELP] == []


@pytest.mark.parametrize("name", commands.of_ours())
def test_every_argument_says_what_it_means(name: str) -> None:
    waiting = [commands.parser_of(name)]
    while waiting:
        parser = waiting.pop()
        assert parser.description
        assert [one.dest for one in commands.arguments_of(parser) if not one.help] == []
        waiting += commands.subparsers_of(parser).values()


# The glossary


def test_the_glossary_has_our_words_in_order_with_a_sentence_each() -> None:
    rows = ROW.findall(GLOSSARY)
    assert len(rows) == GLOSSARY.count("\n| ") - 2
    words = [word for word, _ in rows]
    assert words == sorted(words, key=str.lower)
    assert WORDS - {*words} == set()
    assert [word for word, said in rows if not re.fullmatch(r"[A-Z].*\.", said) or ". " in said] == []


def test_the_glossary_has_the_words_of_the_models_and_kinds() -> None:
    rows = dict(ROW.findall(GLOSSARY))
    models = {one.__name__ for one in apps.get_app_config("engine").get_models()} - {"Waiter"}
    words = {WORDS_OF_MODELS.get(name, name.removesuffix("Row").lower()) for name in models}
    assert words - {*rows} == set()
    assert re.findall(r"`(\w+)`", rows["kind"]) == [str(kind) for kind in StepKind]


def _says_something(text: str) -> bool:
    """Return whether it is a sentence of its own, and not only a reference to another place in the code."""
    first = text.split("\n\n")[0].strip()
    return len(first) > 1 and first.endswith((".", ":")) and "see `engine." not in text


def _twins(entry: api.Entry) -> set[str]:
    return source.twins_of(source.class_of(entry.module, entry.name))
