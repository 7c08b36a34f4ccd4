"""The workflow behind bulk jobs: a step is a batch, committed together with what it did to its instances."""

from __future__ import annotations

from dataclasses import dataclass

from engine.decorators import workflow
from engine.jobs.batch import Batch, run
from engine.replay.step.workflow_step import WorkflowStep
from engine.values.system import BULK

NAME = BULK
LONGEST_WAIT = 30  # seconds until it looks again whether instances have ended
KEPT = "30d"  # as long as the rows of the job (`engine.jobs.removal`)


@dataclass(frozen=True, slots=True)
class BulkParams:
    """Which job."""

    job: int


# A batch that fails as a whole has done nothing. What an outage of the database interrupts goes on after it.
@workflow(
    NAME,
    max_steps=100_000,
    retention={"complete": KEPT, "errored": KEPT, "terminated": KEPT},
)
async def bulk(step: WorkflowStep, params: BulkParams) -> None:
    """Do something to many instances, 50 in a batch."""
    idle = 0
    while True:
        batch: Batch = await step.do(
            "batch", run, params.job, atomic=True, max_attempts=1_000, max_delay="1m"
        )
        if batch.is_last:
            return
        if batch.wait:
            await step.sleep("wait for locks", batch.wait)
        idle = idle + 1 if batch.is_idle else 0
        if idle:
            await step.sleep("wait for those under way", min(2**idle, LONGEST_WAIT))
