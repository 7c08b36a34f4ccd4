"""A process that has everything imported and forks the parts that tests kill: one takes 20 ms, not 2 s.

`python -m tests.process.nursery [MODULE]` reads one JSON line a part, `{"part": "worker", "options": {…}}`, forks a
process that calls the function of that name in the module, `tests.process.parts` by default, and answers with its id.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from importlib import import_module
from typing import Any

PARTS = "tests.process.parts"


class Nursery:
    """The other end of its pipes, for whoever has launched one."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        assert self._answer() == "ready"

    def start(self, part: str, /, **options: Any) -> int:
        """Fork a process that does what the function of that name does; return its id."""
        order = json.dumps({"part": part, "options": options})
        assert self.process.stdin is not None
        self.process.stdin.write(order.encode() + b"\n")
        self.process.stdin.flush()
        return int(self._answer())

    def close(self) -> None:
        """End it; its parts end with it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()

    def _answer(self) -> str:
        assert self.process.stdout is not None
        answer: bytes = self.process.stdout.readline()
        assert answer, "the nursery is gone; its log says why"
        return answer.decode().strip()


def main() -> None:
    import django

    django.setup()
    from engine.worker import shift  # noqa: F401 - what the parts would import, each anew

    parts = import_module(sys.argv[1] if len(sys.argv) > 1 else PARTS)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nothing waits for dead children
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            _live(getattr(parts, order["part"]), order["options"], parent)
        print(pid, flush=True)


def _live(part: object, options: dict[str, object], parent: int) -> None:
    """Be a part, from here to the end of the process."""
    from engine.worker.cluster.guardian import die_with

    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        die_with(parent)
        os.close(0)
        part(**options)  # type: ignore[operator]
        code = 0
    except BaseException:  # noqa: BLE001 - said, and told by the exit code
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
