"""Keep many tabs open while instances change: how late each tab is right, and what that costs the web process.

The database is that of DATABASE_URL, or the embedded one of REPRISE_HOME. A process of its own starts instances at a
steady rate, and nothing claims them. A tab is right when it shows at least as many as had been started.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import time
from collections.abc import Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.bench.figures import percentile
from tests.bench.machine import cpu_seconds
from tests.bench.many.place import opened
from tests.bench.tabs.people import signed_in
from tests.bench.tabs.socket import Tab
from tests.bench.web import Web, serving
from tests.live import PROJECT, LiveStack

TOPICS = ("list", "list", "list", "list", "home", "home", "workflows", "workflow:nap", "errors", "workers")
SHOWN = {
    "list": rb'open\s*<span class="num">([\d,]+)',
    "home": rb'id="w-nap".*?#circle-dashed"/></svg><span class="num">([\d,]+)',
    "workflows": rb'id="w-nap".*?#circle-dashed"/></svg><span class="num">([\d,]+)',
    "workflow:nap": rb'#circle-dashed"/></svg>queued <span class="num">([\d,]+)',
}  # where a tab shows how many instances are open
SETTLES_S = 5.0
STARTS = """
import time
from tests.bench.workflows import nap
began = time.time()
for number in range({count}):
    time.sleep(max(0.0, began + number / {rate} - time.time()))
    nap.start({{"inst": "tab", "secs": 60}})
    print(time.time(), flush=True)
"""


@dataclass
class Result:
    """What came of it."""

    changes: list[float]  # when each was committed
    share: float  # of a core, that the web process used
    closed: int
    late: dict[str, list[float]] = field(default_factory=dict)  # by topic, of each change and tab, in seconds
    missed: int = 0

    def look(self, tabs: Sequence[Tab], before: int) -> None:
        """Look when each tab showed each change; `before` instances were there before."""
        for tab in (tab for tab in tabs if tab.topic in SHOWN):
            found = ((at, re.search(SHOWN[tab.topic], frame, re.DOTALL)) for at, frame in tab.heard)
            shown = [(at, int(number[1].replace(b",", b""))) for at, number in found if number]
            for number, made_at in enumerate(self.changes, before + 1):
                seen_at = next((at for at, count in shown if count >= number), None)
                if seen_at is None:
                    self.missed += 1
                else:
                    self.late.setdefault(tab.topic, []).append(seen_at - made_at)


def main() -> int:
    """Return 0, or 1 if a tab never showed a change, or was closed."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.tabs", description=__doc__)
    parser.add_argument("--tabs", type=int, default=200, metavar="N", help="open tabs (200)")
    parser.add_argument("--people", type=int, default=8, metavar="N", help="who have them open (8)")
    parser.add_argument("--rate", type=float, default=50.0, metavar="N", help="changes a second (50)")
    parser.add_argument("--seconds", type=float, default=20.0, metavar="N", help="for how long (20)")
    chosen = parser.parse_args()
    with opened() as stack, serving(stack) as web, signed_in(chosen.people) as sessions:
        share = -(-chosen.tabs // chosen.people)
        tabs = [Tab(TOPICS[n % len(TOPICS)], sessions[n // share]) for n in range(chosen.tabs)]
        starts = STARTS.format(rate=chosen.rate, count=round(chosen.rate * chosen.seconds))
        result = asyncio.run(_measure(stack, web, tabs, starts))
    for topic, late in result.late.items():
        median, p95 = percentile(late, 50), percentile(late, 95)
        print(
            f"{topic:>12}: right after {median:.2f} s (median), {p95:.2f} s (p95), {max(late):.2f} s at most"
        )
    print(f"{len(result.changes)} changes, {len(tabs)} tabs of {chosen.people} people.")
    print(f"The web process used {result.share:.0%} of a core.")
    print(f"Changes that a tab never showed: {result.missed}; tabs that were closed: {result.closed}.")
    return int(bool(result.missed or result.closed))


async def _measure(stack: LiveStack, web: Web, tabs: Sequence[Tab], starts: str) -> Result:
    from engine.models import Instance

    async with _open(web, tabs) as tasks:
        before = await Instance.objects.acount()
        used, began = cpu_seconds([web.pid]), time.monotonic()
        command = (sys.executable, "manage.py", "shell", "--no-imports", "-c", starts)
        driver = await asyncio.create_subprocess_exec(
            *command, cwd=PROJECT, env=stack.variables, stdout=asyncio.subprocess.PIPE
        )
        said, _ = await driver.communicate()
        share = (cpu_seconds([web.pid]) - used) / (time.monotonic() - began)
        await asyncio.sleep(SETTLES_S)
        result = Result([float(line) for line in said.split()], share, sum(task.done() for task in tasks))
    result.look(tabs, before)
    return result


@asynccontextmanager
async def _open(web: Web, tabs: Sequence[Tab]) -> Any:
    from django.conf import settings
    from django.urls import reverse

    path, cookie = reverse("studio:socket"), settings.SESSION_COOKIE_NAME
    tasks = [await tab.connect(web.port, path, cookie) for tab in tabs]
    await asyncio.sleep(SETTLES_S)
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


if __name__ == "__main__":
    sys.exit(main())
