"""The workflow `rolling-release`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, Field, model_validator

from engine import StepContext, StepError, WorkflowStep, workflow
from studio.demo.release import at_server, fleet, folder
from studio.demo.release.at_server import Target
from studio.demo.release.folder import Release

NAME = "rolling-release"

FILES = {"max_attempts": 3, "delay": "1s", "timeout": "2m"}
# A server that has just changed over may need a moment.
SERVER = {"max_attempts": 3, "delay": "1s", "backoff": "linear", "timeout": "1m"}


class ReleaseParams(BaseModel):
    """What to release, and to how many servers."""

    release: str = Field(
        folder.SAMPLE,
        description="A folder under REPRISE_HOME/demo/releases; the sample is made up.",
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$",
        max_length=63,
    )
    servers: int = Field(3, ge=1, le=10, description="How many servers to start on this machine.")
    cool_down: float = Field(
        5, ge=0, le=600, description="Seconds to wait after each server, before the next one."
    )
    fail_on: int | None = Field(
        None,
        ge=1,
        le=10,
        description="Damage the release on its way to this server, to see the release stop there.",
    )

    @model_validator(mode="after")
    def _fails_on_one_of_them(self) -> ReleaseParams:
        if self.fail_on is not None and self.fail_on > self.servers:
            raise ValueError(f"fail_on is {self.fail_on}, and there are only {self.servers} servers.")
        return self


State = Literal["released", "failed", "untouched"]


class Server(BaseModel):
    """How a server ended: `serves` is the version that it served last."""

    name: str
    state: State
    serves: str


@dataclass(frozen=True)
class Rollout:
    """How far a release came, and what stopped it there; no problem when nothing did."""

    released: list[str]
    failed: str = ""
    problem: str = ""

    def state(self, server: str) -> State:
        if server in self.released:
            return "released"
        return "failed" if server == self.failed else "untouched"


class ReleaseReport(BaseModel):
    release: str
    version: str
    servers: list[Server]


@workflow(NAME, timeout="1 day")
async def rolling_release(step: WorkflowStep, params: ReleaseParams) -> ReleaseReport:
    """Release a folder to a few small web servers, one by one, and stop at the first that does not take it.

    Starts the servers on this machine, each with the former release. To one after the other it copies the new one,
    switches over at once, and checks over HTTP that the server is well and serves every file as it was released; then
    it cools down before the next. Whatever happens, it says who serves what, and stops the servers.
    """
    await step.do("tidy", tidy, **FILES)
    before = await step.do("prepare-former", folder.prepare, folder.BEFORE, **FILES)
    new = await step.do("prepare-release", folder.prepare, params.release, **FILES)

    names = [f"server-{number}" for number in range(1, params.servers + 1)]
    rollout = await _roll_out(step, params, names, before, new)
    serves = await step.do("survey", at_server.survey, names, **SERVER)
    await step.do("stop-servers", at_server.disband, **SERVER)

    servers = [Server(name=name, state=rollout.state(name), serves=serves[name]) for name in names]
    if rollout.problem:
        await step.fail(f"{rollout.problem} {_summary(servers)}")
    await step.progress(f"Released {new.name} {new.version} to all {len(names)} servers", 100)
    return ReleaseReport(release=new.name, version=new.version, servers=servers)


def tidy(ctx: StepContext) -> list[str]:
    """Stop the servers of terminated instances of this workflow: they were not asked to do so themselves."""
    disbanded = fleet.disband_left_behind(NAME)
    if disbanded:
        ctx.log.info("stopped what terminated releases left", instances=disbanded)
    return disbanded


async def _roll_out(
    step: WorkflowStep, params: ReleaseParams, names: list[str], before: Release, new: Release
) -> Rollout:
    """Start all servers, then release to one after the other, up to the first that does not take it."""
    starts = [step.do(f"start:{name}", at_server.start, name, before, **SERVER) for name in names]
    # All of them end before anything else: a server that is still starting could not be stopped.
    for name, outcome in zip(names, await asyncio.gather(*starts, return_exceptions=True), strict=True):
        if isinstance(outcome, StepError):
            return Rollout([], name, f"{name} did not start: {outcome.message}")

    released: list[str] = []
    for number, name in enumerate(names, start=1):
        target = Target(name, is_damaged=number == params.fail_on)
        try:
            await step.do(f"release:{name}", at_server.release, target, new, **SERVER)
            await step.do(f"check:{name}", at_server.check, name, new, **SERVER)
        except StepError as error:
            return Rollout(released, name, f"Stopped at {name}: {error.message}")
        released.append(name)
        await step.progress(f"{name} serves {new.version}", round(100 * number / (len(names) + 1)))
        if number < len(names):
            await step.sleep("cool-down", params.cool_down)
    return Rollout(released)


def _summary(servers: list[Server]) -> str:
    done = ", ".join(server.name for server in servers if server.state == "released")
    left = ", ".join(
        f"{server.name} (serves {server.serves})" for server in servers if server.state == "untouched"
    )
    return f"Released: {done or 'none'}. Not released: {left or 'none'}."
