"""Become another program that does not outlive the worker: `python leash.py <worker's pid> program arguments…`.

A program of its own, for `preexec_fn` is not safe in a worker, which has threads. Linux only; elsewhere the program
runs to its end.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    worker, program, arguments = int(sys.argv[1]), sys.argv[2], sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        # The worker may have died before the request was made; then nobody would send the signal.
        if os.getppid() != worker:
            sys.exit(1)
    os.execv(program, arguments)  # noqa: S606 - the caller names the program


if __name__ == "__main__":
    main()
