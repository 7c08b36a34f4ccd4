"""The page of the Python API: signatures as written, docstrings, and what stands below fields."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import NamedTuple

from tests.docs.made import defaults, source
from tests.docs.made.links import OF_API as LINKS
from tests.docs.made.text import cell, code, linked, table


class Entry(NamedTuple):
    """A function or class of a module. `called` is what a call of a method begins with."""

    module: str
    name: str
    called: str = ""
    is_only_methods: bool = False  # callers never see the class
    internal: frozenset[str] = frozenset()  # what only the engine calls
    fields: bool = True
    has_defaults: bool = False  # people make objects of it
    title: str = ""  # if people import another name
    level: str = "###"  # of its methods, if they are all that is shown


class Documented(NamedTuple):
    """Something on the page: how it is called, the anchor of its heading, its docstring."""

    called: str
    anchor: str
    text: str

    @classmethod
    def of(cls, called: str, text: str, *, heading: str = "") -> Documented:
        anchor = re.sub(r"[^\w\- ]", "", (heading or called).lower()).replace(" ", "-")
        return cls(called, anchor, text)


def _internal(*names: str) -> frozenset[str]:
    return frozenset(names)


CALLS = "engine.replay.step"
GROUPS: Mapping[str, tuple[Entry, ...]] = {
    "workflow": (
        Entry("engine.decorators", "workflow"),
        Entry("engine.declare.schedules", "Schedule", has_defaults=True),
        Entry("engine.declare.messages", "Event", "event", internal=_internal("encode", "decode")),
    ),
    "define-step": (
        Entry("engine.declare.defined_step", "define_step"),
        Entry(
            "engine.declare.defined_step",
            "DefinedStep",
            "defined",
            internal=_internal("options_over"),
            fields=False,
        ),
    ),
    "step": (Entry(f"{CALLS}.workflow_step", "WorkflowStep", "step"),),
    "work": (Entry(f"{CALLS}.work_calls", "WorkCalls", "step", is_only_methods=True),),
    "waits": (
        Entry(f"{CALLS}.wait_calls", "WaitCalls", "step", is_only_methods=True),
        Entry("engine.declare.messages", "ReceivedEvent"),
        Entry("engine.declare.messages", "Answer"),
    ),
    "children": (
        Entry(f"{CALLS}.child_calls", "ChildCalls", "step", is_only_methods=True),
        Entry("engine.declare.children", "branch"),
        Entry("engine.declare.children", "Handle"),
        Entry(
            "engine.declare.children",
            "InstanceResult",
            title="The class `InstanceResult`",  # else its anchor would be that of instance.result
        ),
    ),
    "collections": (Entry(f"{CALLS}.collection_calls", "Collections", "step", is_only_methods=True),),
    "contexts": (
        Entry("engine.declare.context", "StepContext", "ctx", internal=_internal("cancel")),
        Entry("engine.declare.context", "RollbackContext", "ctx"),
        Entry("engine.declare.context", "StepLog", "log"),
        Entry(
            "engine.values.error_record",
            "ErrorRecord",
            "record",
            internal=_internal("of", "to_json", "from_json"),
        ),
    ),
    "starting": (
        Entry(
            "engine.declare.registry",
            "Workflow",
            "workflow",
            internal=_internal("timeout_or_zero", "params", "output", "steering"),
            title="The class `Workflow`",  # else its anchor would be that of the decorator
        ),
        Entry("engine.declare.batches", "StartItem"),
        Entry("engine.declare.batches", "StartedMany"),
        Entry("engine.declare.batches", "StartError"),
        Entry("engine.declare.batches", "DeletedMany"),
        Entry("engine.declare.batches", "DeleteError"),
        Entry(
            "engine.declare.registry",
            "Registry",
            "workflows",
            internal=_internal("codes_that_pause", "limits", "add", "served"),
            title="The registry `workflows`",
        ),
    ),
    "instance": (
        Entry("engine.models.instance", "Instance", "instance", fields=False),
        Entry("engine.models.instance", "InstanceQuerySet", "Instance.objects", is_only_methods=True),
    ),
    "testing": (
        Entry("engine.testing.story", "workflow_test"),
        Entry("engine.testing.story", "WorkflowTest", "test"),
        Entry("engine.testing.preparing", "Preparing", "test", is_only_methods=True, level="####"),
        Entry("engine.testing.story", "Time", "test.time"),
        Entry("engine.testing.waiting", "Wait", "wait", internal=_internal("told")),
    ),
}
MODELS = {
    "Instance": "engine.models.instance",
    "Generation": "engine.models.generation",
    "Step": "engine.models.step",
    "Attempt": "engine.models.step",
    "Event": "engine.models.event",
    "OpenRequest": "engine.models.waiting",
    "ScheduleRow": "engine.models.schedule",
    "Log": "engine.models.step",
    "Audit": "engine.models.audit",
    "Worker": "engine.models.worker",
}
OF_THE_ENGINE = {"is_old_milestone"}
MODULES = ("requests", "schedules", "restart", "secrets", "failures", "workers", "pauses", "bulk")


def group(name: str) -> str:
    return "\n\n".join(part for entry in GROUPS[name] for part in _shown(entry))


def module(name: str) -> str:
    """Show the functions that a public module re-exports, and the classes that they return."""
    parts: list[str] = []
    for function, nodes in functions(name):
        parts += _function(f"{name}.{function}", nodes, "###")
    if name == "restart":
        for kind in ("RestartPlan", "PlannedStep"):
            parts += _class(Entry("engine.steer.restart_plan", kind))
    if name == "failures":
        for kind in ("FailureGroup", "Groups", "FailedInstances", "FailedAttempt"):
            parts += _class(Entry("engine.status.failures.found", kind))
        parts += _class(Entry("engine.status.failures.shares", "Share"))
        parts += _class(Entry("engine.status.failures.recovered", "Recovered"))
    if name == "pauses":
        for kind in ("WorkflowPause", "Resumed"):
            parts += _class(Entry("engine.steer.pauses", kind))
    if name == "bulk":
        for kind in ("Preview", "Skipped"):
            parts += _class(Entry("engine.jobs.previewing", kind))
        for kind in ("Job", "Item"):
            parts += _class(Entry("engine.jobs.reading", kind))
    if name == "workers":
        parts += _class(Entry("engine.steer.workers", "Drained"))
    return "\n\n".join(parts)


def functions(name: str) -> Iterator[tuple[str, list[source.Function]]]:
    home = import_module(f"engine.{name}")
    for one in home.__all__:
        nodes = source.functions_of(getattr(home, one).__module__, one)
        if nodes:  # not a class
            yield one, nodes


def fixtures() -> str:
    """List the fixtures of the pytest plugin."""
    nodes = [one for one in source.module_tree("engine.testing.plugin").body if _is_fixture(one)]
    rows = [(code(one.name), cell(source.docstring(one).split("\n\n")[0])) for one in nodes]
    return table(("fixture", "meaning"), rows)


def _is_fixture(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and any(
        "fixture" in ast.unparse(one) for one in node.decorator_list
    )


def signals() -> str:
    """List the signals, with the arguments that their receivers get."""
    fields = source.assigned(source.module_tree("engine.signals"))
    rows = [
        [code(one.name), *(cell(linked(part.strip(), LINKS)) for part in one.about.split("Arguments: "))]
        for one in fields
        if one.default == "NoticeSignal()"
    ]
    return table(("signal", "sent when", "arguments besides `sender`, `notice_id` and `at`"), rows)


def columns(name: str) -> str:
    """List the columns of a model that people may query: those that say what they hold."""
    fields = source.fields_of(source.class_of(MODELS[name], name))
    rows = [
        (code(one.name), cell(linked(one.about, LINKS)))
        for one in fields
        if one.about and one.name not in OF_THE_ENGINE
    ]
    return table(("column", "meaning"), rows)


def _shown(entry: Entry) -> list[str]:
    nodes = source.functions_of(entry.module, entry.name)
    if nodes:
        called = f"@{entry.name}" if entry.name == "workflow" else entry.name
        return _function(called, nodes, "###")
    return _methods(entry, entry.level) if entry.is_only_methods else _class(entry)


def _class(entry: Entry) -> list[str]:
    node = source.class_of(entry.module, entry.name)
    parts = [f"### {_heading(entry)}", linked(source.docstring(node), LINKS)]
    fields = [one for one in source.fields_of(node) if entry.fields and one.name not in entry.internal]
    rows = [
        (
            code(one.name),
            code(one.type),
            code(one.default if entry.has_defaults else ""),
            cell(linked(one.about, LINKS)),
        )
        for one in fields
        if one.about
    ]
    parts += [table(("field", "type", "default", "meaning"), rows)] if rows else []
    return [*parts, *_methods(entry, "####")]


def _heading(entry: Entry) -> str:
    return entry.title or code(entry.name)


def _methods(entry: Entry, level: str) -> list[str]:
    return [
        part
        for name, nodes in methods(entry)
        for part in _function(f"{entry.called}.{name}", nodes, level, twin=_twin(entry, name))
    ]


def methods(entry: Entry) -> Iterator[tuple[str, list[source.Function]]]:
    """Yield the methods that people call. The async twins are shown with the method of which they are twins."""
    found = source.methods_of(source.class_of(entry.module, entry.name))
    for name, nodes in found.items():
        if name not in entry.internal and not (name[0] == "a" and name[1:] in found):
            yield name, nodes


def _twin(entry: Entry, name: str) -> str:
    node = source.class_of(entry.module, entry.name)
    known = {*source.twins_of(node), *source.methods_of(node)}
    return f"Async: `await {entry.called}.a{name}(…)`." if f"a{name}" in known else ""


def _function(called: str, nodes: list[source.Function], level: str, *, twin: str = "") -> list[str]:
    shown = called.lstrip("@")
    text = linked(source.docstring(nodes[-1]), LINKS)
    written = f"```py\n{source.signature(called, nodes)}\n```"
    return [f"{level} `{shown}`", written, text, *([twin] if twin else [])]


def documented() -> Iterator[Documented]:
    """Yield every function, method and class on the page."""
    for entry in entries():
        nodes = source.functions_of(entry.module, entry.name)
        if nodes:
            yield Documented.of(entry.name, source.docstring(nodes[-1]))
            continue
        if not entry.is_only_methods:
            node = source.class_of(entry.module, entry.name)
            yield Documented.of(entry.name, source.docstring(node), heading=_heading(entry))
        for name, found in methods(entry):
            yield Documented.of(f"{entry.called}.{name}", source.docstring(found[-1]))
    for name in MODULES:
        for function, nodes in functions(name):
            yield Documented.of(f"{name}.{function}", source.docstring(nodes[-1]))


def entries() -> Iterator[Entry]:
    for group_entries in GROUPS.values():
        yield from group_entries


SECTIONS: Mapping[str, Callable[[], str]] = {
    **{f"api:{name}": partial(group, name) for name in GROUPS},
    **{f"api:{name}": partial(module, name) for name in MODULES},
    **{f"columns:{name}": partial(columns, name) for name in MODELS},
    "api:fixtures": fixtures,
    "api:signals": signals,
    "options:workflow": defaults.of_workflow,
    "options:step": defaults.of_step,
    "options:start": defaults.of_start,
}
