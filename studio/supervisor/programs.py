"""The programs that the supervisor runs, with the same commands as in production."""

import os
import sys
from pathlib import Path

from studio.environment import Environment, Role
from studio.supervisor.child import Child

PROJECT = Path(__file__).resolve().parent.parent.parent

# daphne has one limit for what a socket receives and sends. Pages send almost nothing (the consumer closes after one
# kilobyte) but receive many rendered steps.
MAX_SOCKET_MESSAGE = 1024 * 1024


def web(environment: Environment, listener: int | None = None) -> Child:
    """Return the web process. It listens by itself, or uses the descriptor of a listening socket."""
    command = [sys.executable, "-m", "daphne", "-v", "0", "--no-server-name"]
    command += (
        ["-b", environment.host, "-p", str(environment.port)] if listener is None else ["--fd", str(listener)]
    )
    command += ["--http-timeout", "60", "--application-close-timeout", "5"]
    command += ["--websocket-max-message-size", str(MAX_SOCKET_MESSAGE)]
    command += ["--websocket-max-frame-size", str(MAX_SOCKET_MESSAGE)]
    command += ["studio.asgi:application"]
    inherited = () if listener is None else (listener,)
    return Child("web", command, variables(Role.WEB), grace=5, inherited=inherited)


def cluster(environment: Environment) -> Child:
    """Return the cluster. When it stops, bodies get 10 s; the rest is for releasing leases."""
    command = [sys.executable, str(PROJECT / "manage.py"), "qcluster"]
    return Child("workers", command, variables(Role.CLUSTER), grace=15)


def variables(role: Role) -> dict[str, str]:
    """Return the environment of a program."""
    path = os.pathsep.join([str(PROJECT), *filter(None, [os.environ.get("PYTHONPATH")])])
    # The first password is for the supervisor only.
    kept = {name: value for name, value in os.environ.items() if name != "REPRISE_ADMIN_PASSWORD"}
    # The supervisor itself reports when everything is up.
    kept |= {"REPRISE_SUPERVISED": "1"}
    return kept | {"REPRISE_ROLE": role.value, "PYTHONUNBUFFERED": "1", "PYTHONPATH": path}
