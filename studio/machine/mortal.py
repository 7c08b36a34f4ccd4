"""Child processes that end with their parent, even if it is killed."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable

PR_SET_PDEATHSIG = 1


def dies_with_parent(sign: signal.Signals) -> Callable[[], None]:
    """Return a `preexec_fn` that makes the kernel send `sign` to the child when the parent ends.

    Linux only; elsewhere the function does nothing. "Parent" is the thread that forks: start children from the main
    thread. Subprocess calls it after it changed the user, which is needed: that change clears the request.
    """
    parent = os.getpid()
    if sys.platform != "linux":
        return lambda: None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def ask() -> None:
        prctl(PR_SET_PDEATHSIG, int(sign), 0, 0, 0)
        # If the parent ended before this request, nobody would send the signal.
        if os.getppid() != parent:
            os._exit(1)

    return ask
