"""`make test`: all tests, shared by three processes side by side; a third of the time each waits for something.

Each has servers of its own. What the others say is shown when the first one is done. Arguments are given to all.

Tests of time and of killed processes may fail where three of them fight for two cores. So the few that failed are done
again, with the machine to themselves: what fails then has failed, and what passes is named, for somebody to look at.
"""

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from types import FrameType

import pytest

from tests.sharing import failures

PROJECT = Path(__file__).parent.parent

OTHERS = 2
DONE_AGAIN = 6  # more than so many failures are no accident

# A sample of the conformance cases also with workers that forget and with wake-ups that come twice; `make conformance`
# runs all of them so.
PROFILES = {"REPRISE_TEST_PROFILE": "plain,forgetful,duplicate", "REPRISE_TEST_SAMPLE": "32"}


def main() -> int:
    # Also where whoever started us ignores SIGINT, as a shell does in the background.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    with tempfile.TemporaryDirectory() as name:
        shared = Path(name) / "taken"
        shared.touch()
        said = [Path(name) / f"said-{number}" for number in range(OTHERS)]
        runs = [_start(shared)]
        runs += [_start(shared, "--from-the-end", output=output) for output in said]
        codes = [_wait(runs, run) for run in runs]
        for output in said:
            sys.stdout.buffer.write(output.read_bytes())
            sys.stdout.flush()
        code = max(map(abs, codes))  # below zero for one that was killed
        failed = failures(shared)
        if code == pytest.ExitCode.TESTS_FAILED and 0 < len(failed) <= DONE_AGAIN:
            return _once_more(failed)
    return code


def _once_more(failed: list[str]) -> int:
    print(f"\nOnce more, alone: {', '.join(failed)}", flush=True)
    run = _pytest(*failed)
    code = abs(_wait([run], run))
    if code == 0:
        print(f"Failed beside other tests, and passed alone: {', '.join(failed)}", flush=True)
    return code


def _start(shared: Path, *options: str, output: Path | None = None) -> subprocess.Popen[bytes]:
    return _pytest("-p", "tests.sharing", f"--shared={shared}", *options, *sys.argv[1:], output=output)


def _pytest(*arguments: str, output: Path | None = None) -> subprocess.Popen[bytes]:
    # What each will run is not known in advance: no percentage of it is told, and no list of failures kept.
    style = ("-q", "-o", "console_output_style=classic", "-p", "no:cacheprovider")
    with output.open("wb") if output else nullcontext() as file:
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", *style, *arguments],
            cwd=PROJECT,
            env={**os.environ, **PROFILES},
            stdout=file,
            stderr=file and subprocess.STDOUT,
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
