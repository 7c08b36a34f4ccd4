"""Conformance: mocks in tests of workflows (`engine.testing`). tests/testing has the other tests."""

from __future__ import annotations

import time

from engine import WorkflowStep, workflow
from engine.testing import workflow_test


def never() -> str:
    raise AssertionError("the real body ran")


@workflow(name="mocked")
async def mocked(step: WorkflowStep) -> str:
    first = await step.do("first", lambda: "real")
    return first + await step.do("mocked", never, delay="1h", max_delay="1 day")


def test_two_mocked_errors_and_then_a_mocked_result_take_no_time() -> None:
    """CF-97: the third attempt returns the mock, and its back-offs of hours pass at once"""
    began = time.monotonic()
    with workflow_test(mocked) as test:
        test.mock("mocked", error=ConnectionError("away"), times=2)
        test.mock("mocked", result=" and mocked")
        assert test.run().output == "real and mocked"
        found = test.attempts("mocked")
        assert [one.status for one in found] == ["errored", "errored", "complete"]
        assert round((found[2].started_at - found[0].started_at).total_seconds()) == 3 * 3600
    assert time.monotonic() - began < 60


def test_mocks_survive_a_restart() -> None:
    """CF-98: those without `times` hold in each generation, the others until they are used up"""
    with workflow_test(mocked) as test:
        test.mock("mocked", error=ConnectionError("away"), times=6)
        test.mock("mocked", result=" and mocked")
        instance = test.run()
        assert (instance.status, len(test.attempts("mocked"))) == ("errored", 5)
        instance.restart()
        assert test.run().output == "real and mocked"
        assert (test.instance.generation, len(test.attempts("mocked"))) == (2, 2)
        instance.refresh().restart(from_step="mocked")
        assert test.run().output == "real and mocked"
        assert (test.instance.generation, len(test.attempts("mocked"))) == (3, 1)
