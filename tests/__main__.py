"""`make test`: all tests, in three processes side by side; most of the time each waits for something.

The third one runs the conformance cases again, under the other profiles. Each has servers of its own. What the others
say is shown when they are done. Arguments are given to all.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import IO

TESTS = Path(__file__).parent
PROJECT = TESTS.parent

# As long as all the others together.
BESIDE = [str(TESTS / name) for name in ("process", "chaos", "faults", "browser") if (TESTS / name).is_dir()]

# The cases once more, with workers that forget and with wake-ups that come twice: see tests/conformance/profiles.py.
AGAIN = str(TESTS / "conformance")
PROFILES = {"REPRISE_TEST_PROFILE": "forgetful,duplicate"}

NO_TESTS = 5  # as pytest says it, where arguments choose none of one part


def main() -> int:
    # Also where whoever started us ignores SIGINT, as a shell does in the background.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    with tempfile.TemporaryFile() as beside, tempfile.TemporaryFile() as again:
        runs = [
            _start(*(f"--ignore={directory}" for directory in BESIDE)),
            _start(*BESIDE, "-o", "cache_dir=.pytest_cache/beside", output=beside),
            _start(AGAIN, "-o", "cache_dir=.pytest_cache/again", output=again, environment=PROFILES),
        ]
        codes = [_wait(runs, run) for run in runs]
        for said in (beside, again):
            said.seek(0)
            shutil.copyfileobj(said, sys.stdout.buffer)
    return max((code for code in codes if code != NO_TESTS), default=NO_TESTS)


def _start(
    *arguments: str, output: IO[bytes] | None = None, environment: Mapping[str, str] = MappingProxyType({})
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", *arguments, *sys.argv[1:]],
        cwd=PROJECT,
        env={**os.environ, **environment},
        stdout=output,
        stderr=output and subprocess.STDOUT,
        # In a session of its own: it is interrupted once, by us, whoever sent the signal.
        start_new_session=True,
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
