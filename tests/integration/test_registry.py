"""Declaring workflows and events: what is found, and which mistakes end the import."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

import engine
from engine import (
    DeclarationError,
    Event,
    InvalidParamsError,
    UnknownWorkflowError,
    WorkflowStep,
    workflow,
    workflows,
)
from engine.declare.messages import declared_events
from tests.sample.workflows import Approval, order_approved, process_order, tick


class Params(BaseModel):
    count: int


class Unvalidatable:
    pass


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test declares is gone after it."""
    monkeypatch.setattr(workflows, "_workflows", dict(workflows._workflows))
    monkeypatch.setattr("engine.declare.messages.declared_events", declared_events)
    for name in set(declared_events) - {"order-approved"}:
        monkeypatch.delitem(declared_events, name)


def test_workflows_of_installed_apps_are_found_by_name() -> None:
    assert workflows["process-order"] is process_order
    assert {"process-order", "tick", "nap", "listen-for"} <= set(workflows)


def test_a_workflow_says_what_the_studio_shows() -> None:
    assert process_order.name == "process-order"
    assert process_order.description == "Reserve the items, wait for somebody's approval, and ship."
    assert process_order.timeout == timedelta(days=1)
    assert process_order.handler_timeout == timedelta(minutes=5)
    assert process_order.max_steps == 10_000
    assert process_order.source[0].endswith("tests/sample/workflows.py")


def test_the_schema_is_that_of_the_params() -> None:
    schema = process_order.params_schema()
    assert schema is not None
    assert schema["required"] == ["customer", "items"]
    assert tick.params_schema() is None


def test_an_unknown_workflow_names_its_nearest() -> None:
    with pytest.raises(UnknownWorkflowError, match='Did you mean "process-order"'):
        workflows["proces-order"]


def test_an_unknown_workflow_is_a_missing_key_too() -> None:
    assert "nobody" not in workflows
    assert workflows.get("nobody") is None


def test_options_are_read() -> None:
    @workflow(
        "renamed", timeout=90, handler_timeout="10s", max_steps=5, step_identity="name", defaults={"delay": 2}
    )
    async def declared(step: WorkflowStep) -> None: ...

    assert (declared.name, workflows["renamed"]) == ("renamed", declared)
    assert (declared.timeout, declared.handler_timeout) == (timedelta(seconds=90), timedelta(seconds=10))
    assert (declared.max_steps, declared.step_identity) == (5, "name")
    assert declared.step_defaults.delay == timedelta(seconds=2)


def test_the_limits_are_those_of_the_workflows_that_have_one() -> None:
    @workflow(max_running=5)
    async def limited(step: WorkflowStep) -> None: ...

    @workflow(max_running=None)
    async def unlimited(step: WorkflowStep) -> None: ...

    assert (limited.max_running, unlimited.max_running, tick.max_running) == (5, None, None)
    assert (workflows.limits()["limited"], "unlimited" in workflows.limits()) == (5, False)


def test_search_paths_are_those_of_params_unless_they_name_the_output() -> None:
    longest = ".".join(["x" * 19] * 10)

    @workflow(search=("customer.id", "params.b", "output", "items.0.Größe x", "outputs", "params", longest))
    async def searched(step: WorkflowStep) -> None: ...

    given = ("customer.id", "b", "items.0.Größe x", "outputs", longest)
    assert {*searched.search} == {*(f"params.{path}" for path in given), "output", "params"}
    assert tick.search == ()


def test_a_name_may_be_given_by_keyword() -> None:
    @workflow(name="by-keyword")
    async def declared(step: WorkflowStep) -> None: ...

    assert declared.name == "by-keyword"


@pytest.mark.parametrize(
    ("options", "field", "rule"),
    [
        ({"timeout": "soon"}, "timeout", "soon"),
        ({"timeout": 0}, "timeout", "longer than 0"),
        ({"timeout": True}, "timeout", "True"),
        ({"handler_timeout": None}, "handler_timeout", "None"),
        ({"max_steps": 0}, "max_steps", "from 1"),
        ({"max_steps": "many"}, "max_steps", "integer"),
        ({"max_running": 0}, "max_running", "from 1 to 100,000, or None"),
        ({"max_running": 100_001}, "max_running", "from 1"),
        ({"max_running": True}, "max_running", "integer"),
        ({"step_identity": "place"}, "step_identity", "occurrence"),
        ({"defaults": {"max_attempts": 0}}, "defaults", "max_attempts"),
        ({"defaults": {"atempts": 3}}, "defaults", "atempts"),
        ({"defaults": 3}, "defaults", "dict"),
        ({"timout": "1h"}, "timout", 'Did you mean "timeout"'),
        ({"schedules": "0 9 * * *"}, "schedules", "list"),
        ({"search": "customer"}, "search", "list of paths"),
        ({"search": None}, "search", "list of paths"),
        ({"search": ["a", 7]}, "search", "not of type int"),
        ({"search": [f"k{n}" for n in range(21)]}, "search", "21 paths; the limit is 20"),
        ({"search": ["x" * 201]}, "search", "201 characters; the limit is 200"),
        ({"search": [".".join("abcdefghijk")]}, "search", "11 parts; the limit is 10"),
        ({"search": ["customer", "params.customer"]}, "search", '"params.customer" is declared twice'),
        ({"search": [""]}, "search", "empty part"),
        ({"search": ["a..b"]}, "search", '"a..b" has an empty part'),
        ({"search": ["items.-1"]}, "search", '"-1" is not a position'),
        ({"search": ["items.01"]}, "search", "leading zeros"),
        ({"search": ["token.$reprise-secret"]}, "search", "secrets are encrypted"),
        ({"search": ["a\0b"]}, "search", "NUL"),
        ({"search": ["\ud800"]}, "search", "surrogate"),
        ({"retention": {"completed": "30d"}}, "retention", "completed"),
        ({"retention": {"errored": "2 months"}}, "retention", "unknown unit"),
        ({"cron": "0 9 * * *"}, "cron", "no such option"),
        ({"name": "a b"}, "name", "a b"),
        ({"name": ""}, "name", "1 to 64"),
        ({"name": "x" * 65}, "name", "1 to 64"),
    ],
)
def test_a_wrong_option_is_named_at_import(options: dict[str, Any], field: str, rule: str) -> None:
    async def handler(step: WorkflowStep) -> None: ...

    with pytest.raises(DeclarationError, match=rule) as caught:
        workflow(**options)(handler)
    assert caught.value.field == field
    assert "handler" not in workflows


def not_async(step: WorkflowStep) -> None: ...


async def generator(step: WorkflowStep) -> Any:
    yield 1


async def nothing() -> None: ...


async def no_step(params: Params) -> None: ...


async def untyped(step: WorkflowStep, params) -> None: ...  # type: ignore[no-untyped-def]


async def three(step: WorkflowStep, params: Params, more: int) -> None: ...


async def with_default(step: WorkflowStep, params: Params | None = None) -> None: ...


async def keyword_only(step: WorkflowStep, *, params: Params) -> None: ...


async def any_number(step: WorkflowStep, *params: Params) -> None: ...


async def unresolved(step: WorkflowStep, params: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821


async def unvalidatable(step: WorkflowStep, params: Unvalidatable) -> None: ...


async def unvalidatable_return(step: WorkflowStep) -> Unvalidatable: ...  # type: ignore[empty-body]


@pytest.mark.parametrize(
    ("handler", "field", "rule"),
    [
        (not_async, "handler", "async def"),
        (generator, "handler", "async def"),
        (Params, "handler", "async def"),
        (17, "handler", "async def"),
        (nothing, "arguments", "step: WorkflowStep"),
        (no_step, "arguments", "step: WorkflowStep"),
        (untyped, "argument `params`", "needs a type"),
        (three, "arguments", "at most one more argument"),
        (with_default, "argument `params: 'Params | None' = None`", "no default"),
        (keyword_only, "argument `params: 'Params'`", "positional"),
        (any_number, "argument `*params: 'Params'`", "positional"),
        (unresolved, "argument `params`", "Missing"),
        (unvalidatable, "params", "pydantic"),
        (unvalidatable_return, "return type", "pydantic"),
    ],
)
def test_a_wrong_handler_is_named_at_import(handler: Any, field: str, rule: str) -> None:
    with pytest.raises(DeclarationError, match=rule) as caught:
        workflow(handler)
    assert caught.value.field == field


def test_two_workflows_of_one_name_are_refused() -> None:
    async def tick(step: WorkflowStep) -> None: ...

    with pytest.raises(
        DeclarationError, match=r"tests/sample/workflows\.py, line \d+, already has this name"
    ):
        workflow(tick)
    assert workflows["tick"].output is not None
    assert workflows["tick"].source[0].endswith("sample/workflows.py")


def test_a_module_imported_again_declares_the_same_workflow() -> None:
    again = workflow(timeout="1 day")(process_order.handler)
    assert workflows["process-order"] is again


def test_types_for_type_checkers_only_do_no_harm_to_step() -> None:
    namespace: dict[str, Any] = {"workflow": workflow, "Params": Params}
    exec(
        "from __future__ import annotations\n"
        "async def typed(step: NotThere, params: Params) -> Params: ...\n"
        "declared = workflow(typed)",
        namespace,
    )
    assert namespace["declared"].params.annotation is Params


def test_a_handler_within_a_function_may_name_itself() -> None:
    @dataclass
    class Depth:
        left: int

    @workflow
    async def descent(step: WorkflowStep, depth: Depth) -> None:
        await step.run_workflow("next", descent, Depth(depth.left - 1))

    assert descent.params.decode('{"left": 3}') == Depth(3)


def test_the_fingerprint_follows_the_handler_and_not_its_options() -> None:
    def declare(body: int, **options: Any) -> str:
        namespace: dict[str, Any] = {}
        exec(f"async def print_of(step) -> int:\n    return {body}", namespace)
        workflows._workflows.pop("print-of", None)
        return workflow(**options)(namespace["print_of"]).fingerprint

    assert declare(1) == declare(1, timeout="1h")
    assert declare(1) != declare(2)


def test_fingerprint_of_source_leaves_decorators_out() -> None:
    def with_one() -> Any:
        @workflow(name="same-source")
        async def handler(step: WorkflowStep) -> int:
            return 1

        return handler

    def with_more() -> Any:
        @workflow(name="same-source-2", timeout="1h")
        async def handler(step: WorkflowStep) -> int:
            return 1

        return handler

    assert with_one().fingerprint == with_more().fingerprint


def test_a_declared_event_validates_its_payload() -> None:
    assert order_approved.validate({"approved": True}) == Approval(approved=True)
    assert (
        order_approved.encode(Approval(approved=False, comment="no")) == '{"approved":false,"comment":"no"}'
    )
    assert order_approved.decode({"approved": True, "comment": "yes"}) == Approval(
        approved=True, comment="yes"
    )
    with pytest.raises(InvalidParamsError) as caught:
        order_approved.validate({"approved": "perhaps"})
    assert [error["path"] for error in caught.value.errors] == ["approved"]


def test_an_event_may_be_declared_again_with_the_same_type_only() -> None:
    Event("order-approved", Approval)
    with pytest.raises(DeclarationError, match="already declared"):
        Event("order-approved", Params)
    assert declared_events["order-approved"] is order_approved


def test_wrong_event_declarations_are_refused() -> None:
    with pytest.raises(DeclarationError, match="100 characters"):
        Event("x" * 101, Approval)
    with pytest.raises(DeclarationError, match="pydantic"):
        Event("strange", Unvalidatable)
    assert "strange" not in declared_events


def test_public_names_are_all_there() -> None:
    missing = [name for name in engine.__all__ if not hasattr(engine, name)]
    assert missing == []
    with pytest.raises(AttributeError, match="no attribute 'Workflo'"):
        engine.Workflo  # noqa: B018
