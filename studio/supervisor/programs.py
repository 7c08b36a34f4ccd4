"""The programs that the supervisor runs, each as it also runs alone in production."""

import os
import sys
from pathlib import Path

from studio.environment import Environment, Role
from studio.supervisor.child import Child

PROJECT = Path(__file__).resolve().parent.parent.parent

# What a socket takes and sends: daphne has one limit for both. Pages say nothing (the consumer closes on the second
# kilobyte); what they are sent is drawn steps, which may be many.
MAX_SOCKET_MESSAGE = 1024 * 1024


def web(environment: Environment, listener: int | None = None) -> Child:
    """The web process; it listens by itself, or uses the descriptor of a socket that listens already."""
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
    """The cluster gives running bodies 10 s; the rest is for giving the leases back."""
    command = [sys.executable, str(PROJECT / "manage.py"), "qcluster"]
    return Child("workers", command, variables(Role.CLUSTER), grace=15)


def variables(role: Role) -> dict[str, str]:
    """The environment of a program of ours."""
    path = os.pathsep.join([str(PROJECT), *filter(None, [os.environ.get("PYTHONPATH")])])
    # The first password is for the supervisor only.
    kept = {name: value for name, value in os.environ.items() if name != "REPRISE_ADMIN_PASSWORD"}
    # The supervisor says itself when everything is up.
    kept |= {"REPRISE_SUPERVISED": "1"}
    return kept | {"REPRISE_ROLE": role.value, "PYTHONUNBUFFERED": "1", "PYTHONPATH": path}
