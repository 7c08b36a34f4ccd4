"""`python -m tests.chaos --seed N --minutes 10`: exit code 0 for PASS, 1 for FAIL."""

from __future__ import annotations

import argparse
import json
import secrets
import shutil
import sys
from pathlib import Path

from tests.chaos.case import Case
from tests.chaos.figures import figures
from tests.chaos.plan import Plan
from tests.chaos.report import report
from tests.chaos.run import run
from tests.chaos.verdict import is_passed, judge
from tests.conftest import home_directory
from tests.live import PROJECT

KEPT = ("a/output.log", "b/output.log", "a/postgresql.log", "clients.log", "ledger/lines")


def main() -> int:
    asked = arguments()
    seed = secrets.randbelow(10**6) if asked.seed is None else asked.seed
    print(f"seed {seed}", flush=True)
    place = asked.into / f"{seed}-{asked.minutes:g}"
    place.mkdir(parents=True, exist_ok=True)
    with home_directory() as home:
        try:
            case = run(Plan.of(seed, asked.minutes), home)
        finally:
            keep(home, place)
    return tell(case, place)


def tell(case: Case, place: Path) -> int:
    """Print the report, and leave it there with all figures."""
    complaints = judge(case)
    passed = is_passed(complaints)
    told = figures(case) | {"complaints": complaints, "passed": passed}
    text = report(case, told, complaints)
    print(text)
    (place / "report.txt").write_text(text)
    (place / "report.json").write_text(json.dumps(told, indent=1, default=str))
    return 0 if passed else 1


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Load and chaos.")
    parser.add_argument(
        "--seed", type=int, help="makes the same load and faults again (default: a random one)"
    )
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument(
        "--into", type=Path, default=PROJECT / ".reprise" / "chaos", help="where report and logs go"
    )
    return parser.parse_args()


def keep(home: Path, place: Path) -> None:
    """Copy what a person wants to read after a failure."""
    for name in KEPT:
        if (home / name).exists():
            shutil.copy(home / name, place / name.replace("/", "-"))


if __name__ == "__main__":
    sys.exit(main())
