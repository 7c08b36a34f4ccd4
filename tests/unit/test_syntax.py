"""Several threads parse sources: those of pages and of shifts."""

from __future__ import annotations

import gc
import time
from concurrent.futures import ThreadPoolExecutor

from engine.values.syntax import parse

MODULE = "\n".join(f"def f{i}(a):\n    return [a + {i} * (a - {i}), (a, [a, (a, a)])]" for i in range(50))


class Slow:
    """Garbage that lets other threads run when it is collected."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        time.sleep(0.001)


def test_threads_that_parse_at_once_do_not_get_in_each_others_way() -> None:
    def work() -> list[int]:
        found = []
        for _ in range(5):
            gc.disable()
            for _ in range(5):
                Slow()
            gc.enable()
            found.append(len(parse(MODULE).body))
        return found

    with ThreadPoolExecutor(4) as pool:
        results = [pool.submit(work) for _ in range(4)]
        assert [one.result() for one in results] == [[50] * 5] * 4
