"""`make bench`: what Reprise does on this machine, beside what its PostgreSQL can commit at all."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType

from tests.bench import driver, limit
from tests.bench.figures import Figure, Limit, table
from tests.bench.ground import Ground, opened
from tests.bench.machine import Foreign
from tests.bench.sizes import FULL, TINY, Sizes
from tests.bench.workloads import WORKLOADS

# More than this share of the machine used by others makes figures worthless.
TOO_BUSY = 0.1


class Bench:
    """Runs workloads and keeps what they said."""

    def __init__(self, ground: Ground, sizes: Sizes) -> None:
        self.ground = ground
        self.sizes = sizes
        self.runs: list[list[Figure]] = []
        self.failures: list[str] = []
        self.disturbed: dict[str, float] = {}

    def run(self, names: list[str]) -> None:
        figures: list[Figure] = []
        self.runs.append(figures)
        measured = limit.measure(self.ground.server, self.sizes.pgbench)
        figures.append(Figure("limit", "pgbench, 1 client", measured.one_client, "commits/s"))
        figures.append(Figure("limit", "pgbench, 8 clients", measured.eight_clients, "commits/s"))
        for name in names:
            self._try(name, figures, measured)

    def _try(self, name: str, figures: list[Figure], measured: Limit) -> None:
        began, others = time.monotonic(), Foreign(self.ground.lost_cpu)
        try:
            # One by one: what was measured before a failure stays.
            for figure in WORKLOADS[name](self.ground, self.sizes):
                ratio = measured.ratio(figure.value, figure.beside)
                figures.append(replace(figure, ratio=ratio))
        except (TimeoutError, AssertionError) as error:
            self.failures.append(f"{name} failed: {error}\n{self.ground.log_end()}")
            self.ground.kill_cluster()  # the next one starts afresh
            driver.clear()
        share = others.share()
        self.disturbed[name] = max(share, self.disturbed.get(name, 0.0))
        tell(f"{name}: {time.monotonic() - began:.1f} s, others used {share:.0%} of the machine")

    def report(self) -> None:
        print("\n".join(table(self.runs)))
        for failure in self.failures:
            print(failure)
        if busy := [name for name, share in self.disturbed.items() if share > TOO_BUSY]:
            print(
                f"Others used more than {TOO_BUSY:.0%} of the machine during {', '.join(busy)}: measure again."
            )

    def write(self, path: Path) -> None:
        runs = [[asdict(figure) for figure in run] for run in self.runs]
        content = {"runs": runs, "failures": self.failures, "used_by_others": self.disturbed}
        path.write_text(json.dumps(content, indent=1))


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def read_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("-w", metavar="W1,W2", default=",".join(WORKLOADS), help=f"of {', '.join(WORKLOADS)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure there, too")
    parser.add_argument("--runs", type=int, default=1, help="repeat, and print medians")
    parser.add_argument("--tiny", action="store_true", help="show that it works; the figures say nothing")
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.w.split(",")) - set(WORKLOADS):
        parser.error(f"no workload {', '.join(sorted(unknown))}; there are {', '.join(WORKLOADS)}")
    return chosen


def main() -> int:
    """Return 0, 1 when a workload failed, or 130 when it was interrupted; what was measured is printed in any case."""
    chosen = read_arguments(sys.argv[1:])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        with opened() as ground:
            return _measure(Bench(ground, TINY if chosen.tiny else FULL), chosen)
    except KeyboardInterrupt:
        return 130


def _measure(bench: Bench, chosen: argparse.Namespace) -> int:
    wanted = [name for name in WORKLOADS if name in chosen.w.split(",")]
    try:
        for number in range(chosen.runs):
            tell(f"Run {number + 1} of {chosen.runs}")
            bench.run(wanted)
    finally:
        bench.report()
        if chosen.json:
            bench.write(chosen.json)
    return int(bool(bench.failures))


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
