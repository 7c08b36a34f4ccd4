"""`make test`: all tests, in two processes side by side; most of the time one of them waits for something.

Each has servers of its own. What the second one says is shown when it is done. Arguments are given to both.
"""

import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import IO

TESTS = Path(__file__).parent
PROJECT = TESTS.parent

# As long as all the others together.
BESIDE = [str(TESTS / name) for name in ("process", "chaos", "faults", "browser") if (TESTS / name).is_dir()]

NO_TESTS = 5  # as pytest says it, where arguments choose none of one half


def main() -> int:
    # Also where whoever started us ignores SIGINT, as a shell does in the background.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    with tempfile.TemporaryFile() as said:
        runs = [
            _start(*(f"--ignore={directory}" for directory in BESIDE), *sys.argv[1:]),
            _start(*BESIDE, "-o", "cache_dir=.pytest_cache/beside", *sys.argv[1:], output=said),
        ]
        codes = [_wait(runs, run) for run in runs]
        said.seek(0)
        shutil.copyfileobj(said, sys.stdout.buffer)
    return max((code for code in codes if code != NO_TESTS), default=NO_TESTS)


def _start(*arguments: str, output: IO[bytes] | None = None) -> subprocess.Popen[bytes]:
    # In a session of its own: it is interrupted once, by us, whoever sent the signal.
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    return subprocess.Popen(
        command, cwd=PROJECT, stdout=output, stderr=output and subprocess.STDOUT, start_new_session=True
    )


def _wait(runs: list[subprocess.Popen[bytes]], run: subprocess.Popen[bytes]) -> int:
    while True:
        try:
            return run.wait()
        except KeyboardInterrupt:
            for one in runs:
                one.send_signal(signal.SIGINT)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
