"""The steps of a release at one server: start it, release to it, check it."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from urllib.parse import quote

from pydantic import BaseModel

from engine import StepContext
from studio.demo.release import fleet, folder
from studio.demo.release.contact import ServerTrouble, ask, ask_json
from studio.demo.release.contents import checksums, version
from studio.demo.release.folder import Release


@dataclass(frozen=True)
class Target:
    """A server to release to; `is_damaged` says that the release is to suffer on its way."""

    server: str
    is_damaged: bool = False


class Checked(BaseModel):
    """What a check over HTTP found good."""

    version: str
    files: int
    milliseconds: int


def start(server: str, before: Release, ctx: StepContext) -> str:
    """Start a server, or find it running, with the former release; return its address."""
    directory = fleet.home(ctx.instance_id, server)
    if not (directory / "current").exists():
        folder.switch(directory, folder.copy_to(directory, before))
    url = fleet.start(directory).url
    ctx.log.info("serving", server=server, url=url, version=before.version)
    return url


def release(target: Target, new: Release, ctx: StepContext) -> str:
    """Copy the release to the server, switch to it and let the server follow; return the version it now serves."""
    directory = fleet.home(ctx.instance_id, target.server)
    # It may have ended by itself while the instance was paused.
    fleet.start(directory)
    copy = folder.copy_to(directory, new)
    if target.is_damaged and version(checksums(copy)) == new.version:
        ctx.log.warning("damaged on purpose", server=target.server, file=folder.damage(copy))
    folder.switch(directory, copy)
    facts = ask_json(directory, "/reload", method="POST")
    return str(facts["version"])


def check(server: str, new: Release, ctx: StepContext) -> Checked:
    """Ask the server over HTTP whether it is well, which version it serves, and for every file of it."""
    began = time.monotonic()
    directory = fleet.home(ctx.instance_id, server)
    ask_json(directory, "/health")
    served = ask_json(directory, "/version")["version"]
    if served != new.version:
        raise ServerTrouble(f"{server} serves version {served}, not {new.version}.")
    for path, sha256 in new.files.items():
        status, body = ask(directory, f"/{quote(path)}")
        if status != 200 or hashlib.sha256(body).hexdigest() != sha256:
            raise ServerTrouble(
                f"{server} answers {path} with status {status} and other content than released."
            )
        if ctx.cancelled.is_set():
            raise TimeoutError(f"The check of {server} was not finished in time.")
    return Checked(
        version=served, files=len(new.files), milliseconds=round((time.monotonic() - began) * 1000)
    )


def survey(servers: list[str], ctx: StepContext) -> dict[str, str]:
    """Ask every server which version it serves; "no answer" for one that does not say."""
    versions = {}
    for server in servers:
        directory = fleet.home(ctx.instance_id, server)
        try:
            # One that has ended meanwhile serves what its link names, as before.
            fleet.start(directory)
            versions[server] = str(ask_json(directory, "/version")["version"])
        except ServerTrouble as trouble:
            ctx.log.warning(str(trouble), server=server)
            versions[server] = "no answer"
    return versions


def disband(ctx: StepContext) -> list[str]:
    """Stop all servers of this instance, and delete what they served."""
    return fleet.disband(ctx.instance_id)
