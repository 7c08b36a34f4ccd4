"""The workflow `rolling-release`: one server after the other, stopping at the first that fails."""

import asyncio

from pydantic import BaseModel, Field, model_validator

from engine import StepError, WorkflowStep, workflow
from studio.demo.release import steps


class ReleaseParams(BaseModel):
    """What to release, and to how many servers."""

    release: str = Field(
        "sample",
        pattern="^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$",
        description='A folder in REPRISE_HOME/demo/releases, or "sample".',
    )
    servers: int = Field(3, ge=1, le=10, description="How many servers to start on this machine.")
    cool_down: float = Field(5, ge=0, le=600, description="Seconds to wait before the next server.")
    fail_on: int | None = Field(None, ge=1, le=10, description="Damage the release at this server.")

    @model_validator(mode="after")
    def _fails_on_one_of_them(self) -> "ReleaseParams":
        if self.fail_on is not None and self.fail_on > self.servers:
            raise ValueError(f"fail_on is {self.fail_on}, and there are only {self.servers} servers.")
        return self


class Server(BaseModel):
    name: str
    state: str = "released"
    serves: str


class ReleaseReport(BaseModel):
    release: str
    version: str
    servers: list[Server]


@workflow("rolling-release", timeout="1 day", defaults={"max_attempts": 3, "delay": "1s", "timeout": "2m"})
async def rolling_release(step: WorkflowStep, params: ReleaseParams) -> ReleaseReport:
    """Release a folder to small web servers, one by one, and stop at the first that does not take it.

    Starts the servers on this machine with the former release. Copies the new release to one after the other,
    switches over at once, checks over HTTP that the server serves every file of it, and cools down before the next.
    At the end it finds out which server serves which version, and stops all of them.
    """
    await step.do("tidy", steps.tidy)
    former = await step.do("prepare-former", steps.prepare, "before")
    new = await step.do("prepare-release", steps.prepare, params.release)
    names = [f"server-{number}" for number in range(1, params.servers + 1)]
    released: list[str] = []
    problem: StepError | None = None
    try:
        await start_servers(step, names, former)
        for name in names:
            await step.do(f"release:{name}", steps.release, name, new, name == f"server-{params.fail_on}")
            await step.do(f"check:{name}", steps.check, name, new)
            released.append(name)
            await step.progress(f"{name} serves {new.version}", round(100 * len(released) / (len(names) + 1)))
            if name != names[-1]:
                await step.sleep("cool-down", params.cool_down)
    except StepError as error:
        problem = error

    serves = await step.do("survey", steps.survey, names, former, new)
    await step.do("stop-servers", steps.stop)
    if problem is not None:
        failed = problem.step.partition(":")[2]  # a step is called "release:server-2"
        left = [f"{name} (serves {serves[name]})" for name in names if name not in (*released, failed)]
        summary = f"Released: {', '.join(released) or 'none'}. Not released: {', '.join(left) or 'none'}."
        await step.fail(f"Stopped at {failed}: {problem.message} {summary}")
    await step.progress(f"Released {new.name} {new.version} to all {len(names)} servers", 100)
    servers = [Server(name=name, serves=serves[name]) for name in names]
    return ReleaseReport(release=new.name, version=new.version, servers=servers)


async def start_servers(step: WorkflowStep, names: list[str], former: steps.Release) -> None:
    """Start all servers at the same time. If one fails, wait for the others before raising its error."""
    starts = [step.do(f"start:{name}", steps.start, name, former) for name in names]
    for outcome in await asyncio.gather(*starts, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
