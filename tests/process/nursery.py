"""A process that has everything imported and forks the parts that tests kill: one takes 20 ms, not 2 s.

It reads one JSON line a part, `{"part": "worker", "options": {…}}`, and answers with the process id.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback


def main() -> None:
    import django

    django.setup()
    from engine.worker import shift  # noqa: F401 - what the parts would import, each anew
    from tests.process import parts

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the dead
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
    from engine.worker.guardian import die_with

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
