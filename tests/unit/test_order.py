"""Long tests begin early in each process, and no test is lost."""

from __future__ import annotations

import pytest

from tests.order import dealt

SHORT = [f"short {number}" for number in range(100)]


@pytest.mark.parametrize("processes", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("count", [0, 1, 3, 4, 9, 30])
def test_every_process_has_its_share_in_the_first_half_of_its_tests(processes: int, count: int) -> None:
    long = [f"long {number}" for number in range(count)]
    found = dealt(long, SHORT, processes)
    assert sorted(found) == sorted([*long, *SHORT])
    assert [one for one in found if one in SHORT] == SHORT
    left = [*found]
    for process in range(processes):
        size = len(left) // (processes - process)  # as xdist deals them
        part, left = left[:size], left[size:]
        places = [at for at, one in enumerate(part) if one in long]
        assert len(places) in (count // processes, -(-count // processes))
        assert all(at <= (size + len(places)) / 2 for at in places)


def test_without_short_ones_the_long_ones_are_all_there() -> None:
    assert sorted(dealt(["a", "b", "c"], [], 2)) == ["a", "b", "c"]
