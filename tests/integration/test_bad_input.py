"""Values that JSON or PostgreSQL cannot hold, at every entry point of the engine.

The caller gets an error that names the place and the rule, nothing is half-written, and the worker goes on.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from engine import InvalidParamsError, InvalidValueError, LimitError, StepError, WorkflowStep, workflow
from engine.models import Event, Instance
from tests.records import outcomes, step
from tests.shifts import run_to_end, running_shift, wait_for

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")


class Thing:
    """Of a type that JSON does not have."""

    def __repr__(self) -> str:
        raise RuntimeError("no picture")


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def cyclic() -> list[Any]:
    value: list[Any] = []
    value.append({"again": value})
    return value


# What cannot be stored: how it is made, where it is wrong, and the part of the message that names the rule.
BAD: dict[str, tuple[Callable[[], Any], str, str]] = {
    "NUL": (lambda: {"a": "x\0y"}, "$.a", "NUL"),
    "NUL in a key": (lambda: {"x\0y": 1}, "$", "NUL"),
    "lone surrogate": (lambda: ["\ud800"], "$[0]", "surrogate"),
    "lone surrogate in a key": (lambda: {"\udc00": 1}, "$", "surrogate"),
    "NaN": (lambda: {"a": [1, math.nan]}, "$.a[1]", "NaN"),
    "infinity": (lambda: math.inf, "$", "inf"),
    "-infinity": (lambda: [-math.inf], "$[0]", "inf"),
    "integer over 64 bits": (lambda: 2**63, "$", "64"),
    "integer of 4,301 digits": (lambda: {"n": 10**4301}, "$.n", "64"),
    "nesting of 65": (lambda: nested(65), "$[0][0][0]", "64"),
    "nesting of 100,000": (lambda: nested(100_000), "$", "64"),
    "key of 257 characters": (lambda: {"k" * 257: 1}, "$", "256"),
    "set": (lambda: {1, 2}, "$", "set"),
    "bytes": (lambda: b"x", "$", "bytes"),
    "datetime": (lambda: [datetime.now(UTC)], "$[0]", "datetime"),
    "Decimal": (lambda: Decimal(1), "$", "Decimal"),
    "UUID": (lambda: {"id": UUID(int=1)}, "$.id", "UUID"),
    "object whose repr raises": (lambda: {"a": [Thing()]}, "$.a[0]", "Thing"),
    "generator": (lambda: (n for n in range(3)), "$", "generator"),
    "function": (lambda: [len], "$[0]", "builtin"),
    "model": (lambda: Instance(), "$", "Instance"),
    "list that holds itself": (lambda: cyclic(), "$[0].again", "contains itself"),
    "integer as key": (lambda: {1: "a"}, "$", "int"),
}
LARGE: dict[str, Callable[[], Any]] = {
    "one byte over 1 MiB": lambda: "x" * (2**20 - 1),
    "64 MB": lambda: "x" * 64_000_000,
    "64 MB in a list": lambda: ["x" * 1_000_000] * 64,
}
# What is stored and comes back unchanged.
GOOD: dict[str, tuple[Any, str]] = {
    "large float": (1e16, "1e+16"),
    "negative zero": (-0.0, "-0.0"),
    "long fraction": (0.1000000000000000055511151231257827, "0.1"),
    "beyond JavaScript": (2**53 + 1, "9007199254740993"),
    "64 bits": ([2**63 - 1, -(2**63)], "[9223372036854775807, -9223372036854775808]"),
    "nesting of 64": (nested(64), "[" * 64 + "]" * 64),
    "key order": ({"zz": 1, "b": 2, "": 3}, "{'zz': 1, 'b': 2, '': 3}"),
    "null": (None, "None"),
    "empty text": ("", "''"),
    "false": (False, "False"),
    "names of JavaScript": ({"__proto__": {}, "a.b[0]$": 1}, "{'__proto__': {}, 'a.b[0]$': 1}"),
    "tuple": ((1, ("a",)), "[1, ['a']]"),
}


@pytest.mark.parametrize("case", BAD)
def test_params_that_cannot_be_stored_start_nothing(case: str) -> None:
    make, _, rule = BAD[case]

    @workflow
    async def story(step: WorkflowStep, params: Any) -> None: ...

    with pytest.raises(InvalidParamsError) as caught:
        story.start(make())
    [error] = caught.value.errors
    assert rule in error["message"]
    assert len(str(caught.value)) < 2_000
    assert Instance.objects.count() == 0


@pytest.mark.parametrize("case", BAD)
def test_a_payload_that_cannot_be_stored_is_not_sent(case: str) -> None:
    make, path, rule = BAD[case]

    @workflow
    async def story(step: WorkflowStep) -> None: ...

    instance = story.start()
    with pytest.raises(InvalidValueError) as caught:
        instance.send_event("go", make())
    assert caught.value.path.startswith(path)
    assert rule in caught.value.message
    assert (Event.objects.count(), instance.refresh().signals) == (0, 0)


@pytest.mark.parametrize("case", LARGE)
def test_what_is_too_large_is_refused_with_its_size_and_the_limit(case: str) -> None:
    @workflow
    async def story(step: WorkflowStep, params: Any) -> None: ...

    value = LARGE[case]()
    instance = story.start(None)
    for call in (lambda: story.start(value), lambda: instance.send_event("go", value)):
        with pytest.raises(LimitError, match="1,048,576"):
            call()
    assert (Instance.objects.count(), Event.objects.count()) == (1, 0)


def test_an_output_that_cannot_be_stored_fails_its_step_at_once_and_nothing_else() -> None:
    """The step is not retried, its error names the place and the rule, and other instances continue."""

    @workflow
    async def story(step: WorkflowStep, params: str) -> list[Any]:
        make = BAD[params][0] if params in BAD else LARGE[params]
        try:
            await step.do("make", make)
        except StepError as error:
            return [error.type, error.message, error.attempts]
        return ["stored"]

    @workflow
    async def neighbour(step: WorkflowStep) -> str:
        await step.sleep("park", 0.01)
        return "done"

    instances = {case: story.start(case) for case in [*BAD, *LARGE]}
    with running_shift():
        ends = {case: wait_for(instance).output for case, instance in instances.items()}
        assert wait_for(neighbour.start()).output == "done"
    for case, (_, path, rule) in BAD.items():
        kind, message, attempts = ends[case]
        assert (kind, attempts) == ("InvalidValueError", 1), case
        assert message.startswith('The output of step "make" cannot be stored. At $'), case
        assert path in message, case
        assert rule in message, case
    for case in LARGE:
        kind, message, attempts = ends[case]
        assert (kind, attempts) == ("LimitError", 1), case
        assert "the limit is 1,048,576" in message, case
    assert {tuple(outcomes(instance, "make")) for instance in instances.values()} == {("errored",)}


def test_an_output_that_can_be_stored_comes_back_as_it_is_stored_live_and_replayed() -> None:
    seen: dict[str, list[str]] = {case: [] for case in GOOD}

    @workflow
    async def story(step: WorkflowStep, params: str) -> Any:
        value = await step.do("make", lambda: GOOD[params][0])
        seen[params].append(repr(value))
        await step.sleep("park", 0.01)
        return value

    instances = {case: story.start(case) for case in GOOD}
    with running_shift():
        for case, instance in instances.items():
            wait_for(instance)
            assert seen[case] == [GOOD[case][1]] * 2, case
            assert repr(instance.output) == GOOD[case][1], case
            assert repr(step(instance, "make").output) == GOOD[case][1], case


def test_params_and_payloads_come_back_as_they_went_in() -> None:
    """Through start and send_event."""
    seen: dict[str, list[str]] = {case: [] for case in GOOD}

    @workflow
    async def story(step: WorkflowStep, params: Any) -> None:
        event = await step.wait_for_event("go")
        seen[event.sent_by] += [repr(params), repr(event.payload)]

    instances = []
    for case, (value, _) in GOOD.items():
        instances.append(story.start(value))
        instances[-1].send_event("go", value, by=case)
    with running_shift():
        for instance in instances:
            wait_for(instance)
    assert seen == {case: [shown] * 2 for case, (_, shown) in GOOD.items()}


class NoText(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class ExitingText(Exception):
    def __str__(self) -> str:
        raise SystemExit(1)


class Unpicklable(Exception):
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.code = 7
        super().__init__("holds a lock")

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle")


def chain(length: int) -> Exception:
    error = ValueError("link 0")
    for number in range(1, length):
        link = ValueError(f"link {number}")
        link.__cause__ = error
        error = link
    return error


def endless() -> None:
    endless()


def raiser(error: BaseException) -> Callable[[], None]:
    def body() -> None:
        raise error

    return body


# What a body raises, and how the step's error reads then.
ERRORS: dict[str, tuple[Callable[[], None], str, str]] = {
    "10 MB": (raiser(ValueError("x" * 10_000_000)), "ValueError", "x… (cut, 10,000,000 characters)"),
    "NUL": (raiser(ValueError("a\0b")), "ValueError", "a\ufffdb"),
    "surrogate": (raiser(ValueError("a\ud800b")), "ValueError", "a\ufffdb"),
    "__str__ raises": (raiser(NoText()), "NoText", "(its text cannot be shown: __str__ raised RuntimeError)"),
    "__str__ exits": (
        raiser(ExitingText()),
        "ExitingText",
        "(its text cannot be shown: __str__ raised SystemExit)",
    ),
    "SystemExit": (raiser(SystemExit(3)), "SystemExit", "3"),
    "KeyboardInterrupt": (raiser(KeyboardInterrupt()), "KeyboardInterrupt", ""),
    "GeneratorExit": (raiser(GeneratorExit()), "GeneratorExit", ""),
    "CancelledError": (raiser(asyncio.CancelledError()), "CancelledError", ""),
    "StopIteration": (raiser(StopIteration(1)), "StopIteration", "1"),
    "unpicklable": (raiser(Unpicklable()), "Unpicklable", "holds a lock"),
    "1,000 causes": (raiser(chain(1_000)), "ValueError", "link 999"),
    "group": (
        raiser(ExceptionGroup("many", [chain(2), NoText()])),
        "ExceptionGroup",
        "many (2 sub-exceptions)",
    ),
    "recursion": (endless, "RecursionError", "maximum recursion depth exceeded"),
    "memory": (raiser(MemoryError()), "MemoryError", ""),
}


@pytest.mark.parametrize("is_async", [False, True])
def test_whatever_a_body_raises_is_a_failed_attempt_and_the_worker_goes_on(is_async: bool) -> None:

    @workflow
    async def story(step: WorkflowStep, params: str) -> list[Any]:
        body = ERRORS[params][0]

        async def abody() -> None:
            body()

        try:
            await step.do("fails", abody if is_async else body, max_attempts=2, delay=0)
        except StepError as error:
            return [error.type, error.message, error.attempts, error.details]
        return ["no error"]

    # A coroutine turns StopIteration into a RuntimeError before it can be caught.
    cases = [case for case in ERRORS if not (is_async and case == "StopIteration")]
    instances = {case: story.start(case) for case in cases}
    with running_shift():
        for case, instance in instances.items():
            kind, message, attempts, details = wait_for(instance).output
            assert (kind, attempts) == (ERRORS[case][1], 2), case
            assert message.endswith(ERRORS[case][2]), case
            assert len(message.encode()) <= 16 * 1024, case
            assert details == ({"code": 7} if case == "unpicklable" else details), case
            assert outcomes(instance, "fails") == ["errored", "errored"], case


def test_whatever_a_handler_raises_ends_its_instance_and_the_worker_goes_on() -> None:
    """Between steps."""

    @workflow
    async def story(step: WorkflowStep, params: str) -> None:
        await step.do("before", str)
        ERRORS[params][0]()

    cases = [case for case in ERRORS if case != "StopIteration"]
    instances = {case: story.start(case) for case in cases}
    with running_shift():
        for case, instance in instances.items():
            error = wait_for(instance, "errored").error
            assert error["type"] == ERRORS[case][1], case
            assert len(error["traceback"].encode()) <= 16 * 1024, case


def test_a_handlers_output_that_cannot_be_stored_ends_its_instance() -> None:

    @workflow
    async def story(step: WorkflowStep, params: str) -> Any:
        return BAD[params][0]()

    instances = {case: story.start(case) for case in BAD}
    with running_shift():
        for case, instance in instances.items():
            wait_for(instance)
            assert (instance.status, instance.output) == ("errored", None), case
            assert instance.error["type"] == "InvalidValueError", case
            assert instance.error["message"].startswith("The workflow's output cannot be stored. At $"), case


def test_a_line_of_the_log_takes_whatever_is_said() -> None:
    """A log call never fails the workflow"""

    @workflow
    async def story(step: WorkflowStep) -> str:
        for make, _, _ in BAD.values():
            step.log.info("value", value=make())
        step.log.info(Thing())  # type: ignore[arg-type]
        step.log.info("x" * 1_000_000)
        await step.do(
            "body",
            lambda ctx: [ctx.log.error("in body", value=make()) for make, _, _ in BAD.values()] and None,
        )
        return "done"

    instance = run_to_end(story.start())
    assert (instance.error, instance.output) == (None, "done")
    assert instance.logs.count() == 2 * len(BAD) + 2
