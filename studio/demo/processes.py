"""Run a program to its end, from an async body, so that it never outlives that body."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

LEASH = Path(__file__).with_name("leash.py")
PATIENCE = 3.0  # seconds between asking a program to end and killing it
KEPT_LINES = 12


class ProgramFailed(Exception):
    """A program ended with an error; the message holds the end of what it said."""

    def __init__(self, program: str, code: int, said: str) -> None:
        self.program = program
        self.code = code
        how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        lines = said.strip().splitlines()[-KEPT_LINES:]
        super().__init__("\n".join([f"{program} {how}{':' if lines else '.'}", *lines]))


async def run(program: Path, arguments: Sequence[str] = (), *, environment: Mapping[str, str]) -> str:
    """Return what the program wrote to its standard output.

    Cancelled, it ends the program and its children before it raises. Raises ProgramFailed, or OSError when the
    program cannot be started.
    """
    leash = [sys.executable, "-I", "-S", str(LEASH), str(os.getpid())]
    process = await asyncio.create_subprocess_exec(
        *leash,
        str(program),
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(environment),
        start_new_session=True,
    )
    try:
        output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            await _end(process)
    if process.returncode != 0:
        raise ProgramFailed(program.name, process.returncode or 0, errors.decode(errors="replace"))
    return output.decode(errors="replace")


async def _end(process: asyncio.subprocess.Process) -> None:
    try:
        _signal(process, signal.SIGTERM)
        await asyncio.wait_for(process.wait(), PATIENCE)
    except TimeoutError:
        pass
    finally:
        # Also when this wait is cancelled in its turn.
        if process.returncode is None:
            _signal(process, signal.SIGKILL)
            await process.wait()


def _signal(process: asyncio.subprocess.Process, sign: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, sign)
