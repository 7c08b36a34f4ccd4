"""The workflow `rolling-release`: one server after the other, stopping at the first that fails."""

import asyncio
import hashlib
import json
import os
import shutil
import sys
import uuid
from collections.abc import Iterable
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote

from pydantic import BaseModel, Field, model_validator

from engine import NonRetryableError, StepContext, StepError, WorkflowStep, workflow
from studio.demo import machine

HERE = Path(__file__).parent


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


class Release(BaseModel):
    name: str
    version: str
    files: dict[str, str]  # path to SHA-256


class Server(BaseModel):
    name: str
    state: str = "released"
    serves: str


class ReleaseReport(BaseModel):
    release: str
    version: str
    servers: list[Server]


class ServerTrouble(Exception):
    """A server does not do what it should. The next attempt may succeed."""


@workflow("rolling-release", timeout="1 day", defaults={"max_attempts": 3, "delay": "1s", "timeout": "2m"})
async def rolling_release(step: WorkflowStep, params: ReleaseParams) -> ReleaseReport:
    """Release a folder to small web servers, one by one, and stop at the first that does not take it.

    Starts the servers on this machine with the former release. Copies the new release to one after the other,
    switches over at once, checks over HTTP that the server serves every file of it, and cools down before the next.
    At the end it finds out which server serves which version, and stops all of them.
    """
    await step.do("tidy", tidy)
    former = await step.do("prepare-former", prepare, "before")
    new = await step.do("prepare-release", prepare, params.release)
    names = [f"server-{number}" for number in range(1, params.servers + 1)]
    starts = [step.do(f"start:{name}", start, name, former) for name in names]
    started = await asyncio.gather(*starts, return_exceptions=True)  # wait for all, also when one fails
    problem = next((outcome for outcome in started if isinstance(outcome, StepError)), None)

    released: list[str] = []
    for name in names if problem is None else []:
        try:
            await step.do(f"release:{name}", release, name, new, name == f"server-{params.fail_on}")
            await step.do(f"check:{name}", check, name, new)
        except StepError as error:
            problem = error
            break
        released.append(name)
        await step.progress(f"{name} serves {new.version}", round(100 * len(released) / (len(names) + 1)))
        if name != names[-1]:
            await step.sleep("cool-down", params.cool_down)

    serves = await step.do("survey", survey, names, former, new)
    await step.do("stop-servers", stop)
    if problem is not None:
        failed = problem.step.partition(":")[2]
        left = [f"{name} (serves {serves[name]})" for name in names if name not in (*released, failed)]
        summary = f"Released: {', '.join(released) or 'none'}. Not released: {', '.join(left) or 'none'}."
        await step.fail(f"Stopped at {failed}: {problem.message} {summary}")
    await step.progress(f"Released {new.name} {new.version} to all {len(names)} servers", 100)
    servers = [Server(name=name, serves=serves[name]) for name in names]
    return ReleaseReport(release=new.name, version=new.version, servers=servers)


def tidy() -> list[str]:
    """Stop the servers that terminated instances left: they could not run a step for it."""
    fleets = machine.left_behind("rolling-release", machine.folder("demo", "fleets"))
    for fleet in fleets:
        shutil.rmtree(fleet)
    return [fleet.name for fleet in fleets]


def prepare(name: str) -> Release:
    """Read what is to be released. Another attempt would find the same folder, so the error is final."""
    folder = source(name)
    if not (folder / "index.html").is_file():
        raise NonRetryableError(f"There is no folder REPRISE_HOME/demo/releases/{name} with an index.html.")
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    files = {path.relative_to(folder).as_posix(): sha256(path.read_bytes()) for path in paths}
    return Release(name=name, version=version(files), files=files)


def start(server: str, former: Release, ctx: StepContext) -> str:
    """Start a server with the former release, or find it running; return its address."""
    if not (machine.folder("demo", "fleets", ctx.instance_id, server) / "current").exists():
        install(server, former, ctx)
    return f"http://127.0.0.1:{connect(server, ctx).port}"


def release(server: str, new: Release, is_damaged: bool, ctx: StepContext) -> str:
    """Copy the release to a server and switch over; return the version that it serves now."""
    copy = install(server, new, ctx)
    if is_damaged:
        os.truncate(copy / "index.html", 20)  # as a broken transfer would
    return served(server, new.files, ctx)


def check(server: str, new: Release, ctx: StepContext) -> dict[str, str | int]:
    """Fetch every file from a server, and compare what it serves with the release."""
    if (found := served(server, new.files, ctx)) != new.version:
        raise ServerTrouble(f"{server} serves version {found}, not {new.version}.")
    return {"version": found, "files": len(new.files)}


def survey(servers: list[str], former: Release, new: Release, ctx: StepContext) -> dict[str, str]:
    """Return the version that each server serves."""
    return {server: served(server, former.files | new.files, ctx) for server in servers}


def stop(ctx: StepContext) -> list[str]:
    """Delete the directories of the servers, which ends them."""
    fleet = machine.folder("demo", "fleets", ctx.instance_id)
    servers = sorted(path.name for path in fleet.iterdir())
    shutil.rmtree(fleet)
    return servers


def install(server: str, release: Release, ctx: StepContext) -> Path:
    """Copy a release to a server, anew at each attempt, and point the link to it: the switch is atomic."""
    copy = machine.folder("demo", "fleets", ctx.instance_id, server) / uuid.uuid4().hex
    shutil.copytree(source(release.name), copy)
    link = copy.with_suffix(".link")
    link.symlink_to(copy.name)
    link.replace(copy.with_name("current"))
    return copy


def connect(server: str, ctx: StepContext) -> HTTPConnection:
    """Start a server, or find it running: it ends with the worker that started it."""
    directory = machine.folder("demo", "fleets", ctx.instance_id, server)
    port = machine.run(ctx, sys.executable, HERE / "server.py", directory, os.getpid())
    return HTTPConnection("127.0.0.1", int(port), timeout=5)


def served(server: str, paths: Iterable[str], ctx: StepContext) -> str:
    """Fetch files from a server; return the version that they make."""
    files, connection = {}, connect(server, ctx)
    for path in paths:
        connection.request("GET", f"/{quote(path)}")
        answer = connection.getresponse()
        content = answer.read()
        if answer.status == 200:
            files[path] = sha256(content)
    return version(files)


def version(files: dict[str, str]) -> str:
    return sha256(json.dumps(sorted(files.items())).encode())[:12]


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def source(name: str) -> Path:
    own = machine.folder("demo", "releases") / name
    return own if own.exists() else HERE / "sites" / name
