"""`finally:` code of a handler, which runs at every park: it has no more time than the rest of the handler."""

from __future__ import annotations

import pytest

from engine import WorkflowStep, workflow
from tests.integration.test_replay_foreign import run_in_main_thread

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")

LINGERING = """
    import os
    import django
    django.setup()
    from django.conf import settings
    from django.db import connection
    settings.DATABASES["default"].update(HOST=os.environ["TEST_HOST"], NAME=os.environ["TEST_NAME"])
    connection.settings_dict.update(HOST=os.environ["TEST_HOST"], NAME=os.environ["TEST_NAME"])
    from engine import workflow
    from engine.worker import shift

    parked = []

    @workflow(handler_timeout="300ms")
    async def lingering(step, params: str) -> str:
        try:
            await step.do("before", str)
            await step.sleep("nap", "1s")
        finally:
            is_first = params not in parked
            parked.append(params)
            while is_first:
                try:
                    while True:
                        pass
                except BaseException:
                    if params != "stubborn":
                        raise
                    is_first = False
        return params

    @workflow
    async def neighbour(step) -> str:
        return await step.do("work", lambda: "done")

    shift.run(shift.Terms(slots=8, name="lingering", should_stop=lambda: False, idle_seconds=2))
"""


@pytest.mark.second_tier
def test_a_finally_that_never_returns_is_interrupted_at_a_park() -> None:
    """Or the whole worker would stand still until its heart ends it."""

    @workflow(handler_timeout="300ms")
    async def lingering(step: WorkflowStep, params: str) -> str: ...

    @workflow
    async def neighbour(step: WorkflowStep) -> str: ...

    instances = [lingering.start(how) for how in ("plain", "stubborn")]
    other = neighbour.start()
    done = run_in_main_thread(LINGERING)
    assert done.returncode == 0, done.stderr
    assert [one.refresh().output for one in instances] == ["plain", "stubborn"]
    assert other.refresh().output == "done"
