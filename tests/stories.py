"""Stories without races, on virtual time: nothing waits, and nothing depends on how busy the machine is.

The functions have the names and the meaning of those of `tests.shifts`. Where those poll what a shift does in its
thread, these let a worker of `engine.testing` do in the thread of the test what is due; then the clock jumps to what is
due next. So a story whose bodies wait for the test, or which kills its shift, belongs in a real shift.

The second tier runs each story of tests/conformance in a real shift as well (see tests/conformance/profiles.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime

from django.db.models import Max, Min
from django.utils import timezone

from engine.models import Instance, Step
from engine.testing import WorkflowTest, workflow_test
from engine.values.states import InstanceStatus
from tests import shifts

is_virtual = True


def whenever_idle() -> None:
    """Do nothing: a profile may look at what is recorded whenever nothing more is due."""


@contextmanager
def running_shift() -> Iterator[None]:
    """Do what is due whenever the block waits for something."""
    with nullcontext() if is_virtual else shifts.running_shift():
        yield


def wait_until(condition: Callable[[], bool], *, what: str = "the condition") -> None:
    """Do what is due, each at its time, until the condition holds."""
    if shifts.running:
        shifts.wait_until(condition, what=what)
        return
    with _worker() as worker:
        whenever_idle()
        while not condition():
            due = _next_due()
            assert due is not None, f"{what} will never come true: {[str(one) for one in worker.waits_for]}"
            worker.time.travel_to(max(due, worker.time.now()))
            whenever_idle()


def wait_for(instance: Instance, *statuses: str) -> Instance:
    """Run until the instance has one of the statuses; by default, until it is finished."""
    wanted = statuses or ("complete", "errored", "terminated")
    what = f"{instance} being {' or '.join(wanted)}"
    wait_until(lambda: instance.refresh().status in wanted, what=what)
    return instance


def run_to_end(instance: Instance) -> Instance:
    """Run until the instance is finished."""
    with running_shift():
        return wait_for(instance)


@contextmanager
def _worker() -> Iterator[WorkflowTest]:
    """Let a worker do what is due now."""
    with workflow_test(now=_now(), skips_time=False) as worker:
        worker.time.travel_to(worker.time.now())
        yield worker


def _now() -> datetime:
    """Return a time that is not before what the story has recorded so far."""
    steps = Step.objects.aggregate(one=Max("started_at"), other=Max("finished_at"))
    instances = Instance.objects.aggregate(one=Max("started_at"), other=Max("finished_at"))
    known = [moment for moment in (*steps.values(), *instances.values()) if moment is not None]
    return max([timezone.now(), *known])


def _next_due() -> datetime | None:
    waiting = Instance.objects.filter(status=InstanceStatus.WAITING)
    return waiting.aggregate(first=Min("wake_at"))["first"]
