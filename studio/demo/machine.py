"""What the demos need of the worker's machine: folders under REPRISE_HOME, and programs that end with their step."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from engine import StepContext
from engine.configuration import setting
from engine.models import Instance
from engine.values.states import FINAL

# Become another program that the kernel (of Linux) kills when the worker dies.
LEASH = """
import ctypes, os, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


class ProgramFailed(Exception):
    """A program ended with an error. The message contains the end of its output."""


def run(ctx: StepContext, program: str | Path, *arguments: object, **environment: str) -> str:
    """Run a program to its end; return its output. It does not see the worker's environment, which holds secrets.

    Kills the program and its children when the step times out or the instance is terminated.
    """
    command = [sys.executable, "-IS", "-c", LEASH, os.getpid(), program, *arguments]
    process = subprocess.Popen(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": os.environ.get("PATH", os.defpath), **environment},
        start_new_session=True,
        text=True,
        errors="replace",
    )
    while True:
        try:
            output, errors = process.communicate(timeout=0.1)
            break
        except subprocess.TimeoutExpired:
            if ctx.cancelled.is_set():
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode != 0:
        lines = [f"{Path(program).name} ended with code {process.returncode}:", *errors.splitlines()[-12:]]
        raise ProgramFailed("\n".join(lines))
    return output


def folder(*parts: str) -> Path:
    """Return a folder under REPRISE_HOME. Make it if needed, for nobody else to read."""
    path = Path(setting("HOME"))
    for part in parts:
        path /= part
        path.mkdir(mode=0o700, exist_ok=True)
    return path


def left_behind(workflow: str, parent: Path) -> list[Path]:
    """Return the folders that are named after ended instances."""
    names = [path.name for path in parent.iterdir()]
    ended = Instance.objects.filter(workflow=workflow, id__in=names, status__in=FINAL)
    return [parent / name for name in sorted(ended.values_list("id", flat=True))]
