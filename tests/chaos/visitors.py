"""People who look at the Studio: some ask for a page every two seconds, some leave one open."""

from __future__ import annotations

import random
import re
import threading
import time

from tests.chaos.browser import Browser
from tests.chaos.sockets import watch_for_ever

EVERY = 2.0
LINK = re.compile(r'href="(/workflows/kitchen-sink/instances/[^"/]+/)"')
PLACES = ("/", "/workflows/", "/workflows/kitchen-sink/", "/instances/", "/instances/?status=errored")


def visit_for_ever(browsers: list[Browser], watchers: dict[str, Browser]) -> None:
    """Return never: whoever starts them ends their process."""
    threads = [threading.Thread(target=visit, args=(browser, seed)) for seed, browser in enumerate(browsers)]
    threads += [threading.Thread(target=watch_for_ever, args=(one, name)) for name, one in watchers.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def visit(browser: Browser, seed: int) -> None:
    """Go from the lists to the instances that they show."""
    rng = random.Random(seed)
    known: list[str] = []
    while True:
        began = time.monotonic()
        path = rng.choice(known) if known and rng.random() < 0.6 else rng.choice(PLACES)
        known = LINK.findall(browser.get(path).text)[:30] or known
        time.sleep(max(0.2, EVERY - (time.monotonic() - began)))
