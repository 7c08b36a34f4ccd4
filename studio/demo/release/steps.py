"""The steps of a release. A server is known by its directory alone, so every worker finds it again."""

import hashlib
import json
import os
import shutil
import sys
import time
import uuid
from collections.abc import Iterable
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote

from pydantic import BaseModel

from engine import NonRetryableError, StepContext
from studio.demo import machine

HERE = Path(__file__).parent
PATIENCE = 5.0  # seconds


class Release(BaseModel):
    name: str
    version: str
    files: dict[str, str]  # path to SHA-256


class ServerTrouble(Exception):
    """A server does not do what it should. The next attempt may succeed."""


def tidy() -> list[str]:
    """Stop the servers that terminated instances left behind: they cannot clean up after themselves."""
    fleets = machine.left_behind("rolling-release", machine.folder("demo", "fleets"))
    for fleet in fleets:
        shutil.rmtree(fleet)
    return [fleet.name for fleet in fleets]


def prepare(name: str) -> Release:
    """Read what is to be released. Another attempt would find the same folder, so the error is final."""
    folder = source(name)
    if not (folder / "index.html").is_file():
        raise NonRetryableError(f"There is no folder REPRISE_HOME/demo/releases/{name} with an index.html.")
    paths = sorted(path for path in folder.rglob("*") if path.is_symlink() or path.is_file())
    if link := next((path for path in paths if path.is_symlink()), None):
        raise NonRetryableError(f"{link} is a link: a release holds files only. Replace it by a file.")
    files = {path.relative_to(folder).as_posix(): sha256(path.read_bytes()) for path in paths}
    return Release(name=name, version=version(files), files=files)


def start(server: str, former: Release, ctx: StepContext) -> str:
    """Start a server with the former release, or find it running; return its address."""
    if not (machine.folder("demo", "fleets", ctx.instance_id, server) / "current").exists():
        install(server, former, ctx)
    return f"http://{address(server, ctx)}"


def release(server: str, new: Release, is_damaged: bool, ctx: StepContext) -> str:
    """Copy the release to a server and switch over; return the version that it serves now."""
    copy = install(server, new, ctx)
    if is_damaged:
        os.truncate(copy / "index.html", 20)  # as a broken transfer would
    return served(server, new.files, ctx)


def check(server: str, new: Release, ctx: StepContext) -> dict[str, str | int]:
    """Fetch every file from a server, and compare what it serves with the release."""
    began = time.monotonic()
    if (found := served(server, new.files, ctx)) != new.version:
        raise ServerTrouble(f"{server} serves version {found}, not {new.version}.")
    milliseconds = round((time.monotonic() - began) * 1000)
    return {"version": found, "files": len(new.files), "milliseconds": milliseconds}


def survey(servers: list[str], former: Release, new: Release, ctx: StepContext) -> dict[str, str]:
    """Return the version that each server serves."""
    found = {}
    for server in servers:
        try:
            found[server] = served(server, former.files | new.files, ctx)
        except ServerTrouble:
            found[server] = "no answer"
    return found


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


def address(server: str, ctx: StepContext) -> str:
    """Start a server, or find it running; return its address. It ends with the worker that started it."""
    directory = machine.folder("demo", "fleets", ctx.instance_id, server)
    port = machine.run(ctx, sys.executable, HERE / "server.py", directory, os.getpid())
    return f"127.0.0.1:{port}"


def served(server: str, paths: Iterable[str], ctx: StepContext) -> str:
    """Fetch files from a server; return the version that they make."""
    files = {}
    try:
        with closing(HTTPConnection(address(server, ctx), timeout=PATIENCE)) as connection:
            for path in paths:
                connection.request("GET", f"/{quote(path)}")
                answer = connection.getresponse()
                content = answer.read()
                if answer.status == 200:
                    files[path] = sha256(content)
    except (OSError, machine.ProgramFailed) as error:
        raise ServerTrouble(f"{server} does not answer: {error}") from error
    return version(files)


def version(files: dict[str, str]) -> str:
    return sha256(json.dumps(sorted(files.items())).encode())[:12]


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def source(name: str) -> Path:
    own = machine.folder("demo", "releases") / name
    return own if own.exists() else HERE / "sites" / name
