"""Time the pages, lists and searches of the Studio on the database that tests.bench.many has filled.

A daphne answers them, as in production; the requests come one after another over one connection, by turns. The
database is that of DATABASE_URL, or the embedded one of REPRISE_HOME. What takes longer than 100 ms in the median or
250 ms at p95 is marked. The least time is near to what a machine without other work takes.
"""

from __future__ import annotations

import argparse
import sys
from statistics import median

from tests.bench.figures import percentile
from tests.bench.machine import Foreign
from tests.bench.many.place import opened
from tests.bench.pages.asked import ASKED, Asked
from tests.bench.pages.visitor import Answered, Visitor, addressed, visiting
from tests.bench.web import serving

MEDIAN_MS, P95_MS = 100, 250


def main() -> int:
    """Return 0, or 1 if a request failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.pages", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, metavar="N", help="how often each is asked for (20)")
    parser.add_argument("--only", default="", metavar="TEXT", help="those whose address contains it")
    chosen = parser.parse_args()
    with opened() as stack:
        addresses = {
            one: at for one, at in addressed(ASKED).items() if chosen.only in f"{one.path}?{one.query}"
        }
        with serving(stack) as web, visiting(web.port, web.token) as visitor:
            others = Foreign(lambda: 0.0)
            answers = _ask(visitor, addresses, chosen.runs)
            share = others.share()
    failed = _report(answers, addresses)
    print(f"Others used {share:.0%} of the machine.")
    return int(failed > 0)


def _ask(visitor: Visitor, addresses: dict[Asked, str], runs: int) -> dict[Asked, list[Answered]]:
    """Ask by turns, so that what disturbs one disturbs all; the first round only warms up."""
    answers: dict[Asked, list[Answered]] = {one: [] for one in addresses}
    for number in range(runs + 1):
        for one, address in addresses.items():
            answer = visitor.get(address, by_token=one.by_token)
            if number or answer.status >= 300:
                answers[one].append(answer)
        print(f"Round {number} of {runs}", file=sys.stderr, flush=True)
    return answers


def _report(answers: dict[Asked, list[Answered]], addresses: dict[Asked, str]) -> int:
    """Print the figures, and return how many requests failed."""
    print(f"{'least ms':>9} {'median':>8} {'p95':>8} {'bytes':>8}    address")
    failed = slow = 0
    for one, found in answers.items():
        times = [answer.ms for answer in found]
        middle, late = median(times), percentile(times, 95)
        is_slow = middle > MEDIAN_MS or late > P95_MS
        bad = next((answer.status for answer in found if answer.status >= 300), None)
        mark = f"answered {bad}" if bad else "SLOW" if is_slow else ""
        slow, failed = slow + is_slow, failed + bool(bad)
        line = f"{min(times):9.1f} {middle:8.1f} {late:8.1f} {found[-1].size:8,}    {addresses[one]}"
        print(f"{line}    {mark}".rstrip())
    print(
        f"{len(answers)} requests, {slow} over {MEDIAN_MS} ms in the median or {P95_MS} ms at p95, {failed} failed."
    )
    return failed


if __name__ == "__main__":
    sys.exit(main())
