"""`make repeat`: tests with processes, threads or timing 30 times each beside a load, the others 3 times.

Each file of tests is run in a process of its own, two side by side, beside as many processes that only compute. The
report says how often each test ran and failed, and what the first failure said. It is written anew after each run, so
one that is broken off has its report, too.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

from studio.machine.mortal import dies_with_parent
from tests.repeat.report import Report

TESTS = Path(__file__).parents[1]
PROJECT = TESTS.parent

# If a file contains one of these, its tests depend on processes, threads or the time.
RACY = re.compile(
    r"running_shift|tests.shifts|threading|together\(|in_background|time\.sleep|subprocess|multiprocessing"
)
RACY_FOLDERS = ("process", "faults", "browser")
SIDE_BY_SIDE = 2


def main() -> int:
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    report = Report(options.report)
    work = deque(_rounds(options))
    with _load(options.load), ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        ends_at = time.monotonic() + options.hours * 3600
        running: set[Future[None]] = set()
        while (work and time.monotonic() < ends_at) or running:
            while work and len(running) < SIDE_BY_SIDE and time.monotonic() < ends_at:
                running.add(pool.submit(_run, work.popleft(), report))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for one in done:
                one.result()
    report.left_out = sorted({str(path.relative_to(PROJECT)) for path in work})
    report.write()
    print(report.summary())
    return 1 if report.failures else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.repeat", description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, help="files or folders of tests; all by default")
    parser.add_argument("--times", type=int, default=30, help="of what rests on processes, threads or timing")
    parser.add_argument("--others", type=int, default=3, help="of the other tests")
    parser.add_argument("--load", type=int, default=2, help="processes that only compute")
    parser.add_argument("--hours", type=float, default=24.0, help="then begin nothing more")
    parser.add_argument("--report", type=Path, default=PROJECT / "repeat-report.md")
    return parser.parse_args()


def _rounds(options: argparse.Namespace) -> Iterator[Path]:
    """Yield each file as often as it runs, round after round, each in another order."""
    files = sorted(_files(options.paths or [TESTS]))
    times = {path: options.times if is_racy(path) else options.others for path in files}
    order = random.Random(0)
    for number in range(max(times.values(), default=0)):
        turn = [path for path in files if times[path] > number]
        order.shuffle(turn)
        yield from turn


def _files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        yield from [path.resolve()] if path.is_file() else path.resolve().rglob("test_*.py")


def is_racy(path: Path) -> bool:
    """Return whether its tests depend on processes, threads or timing."""
    return path.relative_to(TESTS).parts[0] in RACY_FOLDERS or bool(RACY.search(path.read_text()))


def _run(path: Path, report: Report) -> None:
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.xml"
        style = ("-q", "-p", "no:cacheprovider", f"--junitxml={results}", "-o", "junit_family=xunit1")
        command = [sys.executable, "-m", "pytest", *style, str(path)]
        done = subprocess.run(
            command,
            cwd=PROJECT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=dies_with_parent(signal.SIGTERM),
        )
        name = str(path.relative_to(PROJECT))
        if results.exists():
            report.add(name, ElementTree.parse(results))
        else:
            report.add_crash(name, done.stdout + done.stderr)
        report.write()


@contextmanager
def _load(count: int) -> Iterator[None]:
    """Keep this many processes computing until the block ends."""
    busy = [multiprocessing.get_context("fork").Process(target=_compute, daemon=True) for _ in range(count)]
    for process in busy:
        process.start()
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.join()


def _compute() -> None:
    number = 1
    while True:
        number = number * 6_364_136_223_846_793_005 % 2**64 | 1


if __name__ == "__main__":
    sys.exit(main())
