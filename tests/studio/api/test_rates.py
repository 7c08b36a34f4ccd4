"""Limits on the number of requests of a token, counted over all processes."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator

import pytest
from django.http import HttpResponse
from django.test import override_settings

from studio.api import rates
from studio.models import Throttle
from tests.integration.sessions import together
from tests.studio.api.conftest import Program, Programs

LimitedTo = Callable[[int], None]


@pytest.fixture
def limited_to() -> Iterator[LimitedTo]:
    """Set the limit, and let this process begin anew."""
    overrides = []

    def limit(most: int) -> None:
        overrides.append(override_settings(REPRISE={"API_RATE": most}))
        overrides[-1].enable()
        rates._drawn.clear()

    yield limit
    for one in reversed(overrides):
        one.disable()
    rates._drawn.clear()


def other_process() -> None:
    """Forget what this process has drawn: the next request is that of another one."""
    rates._drawn.clear()


def numbers(answer: HttpResponse) -> tuple[int, int]:
    """Return what is left, and for how long."""
    found = re.fullmatch(r'"default";r=(\d+);t=(\d+)', answer["RateLimit"])
    assert found, answer["RateLimit"]
    return int(found[1]), int(found[2])


@pytest.mark.django_db
class TestRates:
    def test_answers_say_what_is_left(self, program: Program, limited_to: LimitedTo) -> None:
        limited_to(100)
        first, second = program.get("/me"), program.get("/nothing")
        assert first["RateLimit-Policy"] == '"default";q=100;w=60'
        assert (numbers(first)[0], numbers(second)[0]) == (99, 98)
        assert 0 < numbers(first)[1] <= 60

    @pytest.mark.parametrize("most", [1, 2, 49, 120])
    def test_exactly_so_many_are_answered(self, program: Program, limited_to: LimitedTo, most: int) -> None:
        """E42"""
        limited_to(most)
        answers = [program.get("/me") for _ in range(most + 3)]
        assert [answer.status_code for answer in answers] == [200] * most + [429] * 3
        assert [numbers(answer)[0] for answer in answers] == [*range(most - 1, -1, -1), 0, 0, 0]
        last = answers[-1]
        assert json.loads(last.content)["code"] == "too_many_requests"
        assert int(last["Retry-After"]) == numbers(last)[1]
        assert last["Content-Type"] == "application/problem+json"

    def test_others_are_not_affected(self, program_of: Programs, limited_to: LimitedTo) -> None:
        limited_to(1)
        greedy, modest = program_of(), program_of()
        assert [greedy.get("/me").status_code for _ in range(3)] == [200, 429, 429]
        assert modest.get("/me").status_code == 200

    def test_refused_requests_do_nothing(self, program: Program, limited_to: LimitedTo) -> None:
        limited_to(1)
        program.get("/me")
        assert program.post("/workflows/tick/instances").status_code == 429
        assert program.send("PUT", "/me").status_code == 429

    def test_all_processes_count_together(self, program: Program, limited_to: LimitedTo) -> None:
        limited_to(10)
        statuses = []
        for _ in range(12):
            other_process()  # each draws one permit, as a fiftieth of ten is less
            statuses.append(program.get("/me").status_code)
        assert statuses == [200] * 10 + [429] * 2

    def test_batches_never_exceed_the_limit(self, program: Program, limited_to: LimitedTo) -> None:
        limited_to(100)
        statuses = []
        for number in range(160):
            if number % 3 == 0:
                other_process()
            statuses.append(program.get("/me").status_code)
        assert 40 <= statuses.count(200) <= 100

    def test_the_next_minute_begins_anew(
        self, program: Program, limited_to: LimitedTo, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        limited_to(1)
        assert [program.get("/me").status_code for _ in range(2)] == [200, 429]
        now = time.monotonic()
        Throttle.objects.all().delete()  # as after its end
        monkeypatch.setattr(rates.time, "monotonic", lambda: now + 61)
        assert [program.get("/me").status_code for _ in range(2)] == [200, 429]

    def test_few_requests_write(self, program: Program, limited_to: LimitedTo) -> None:
        limited_to(1_000)
        for _ in range(40):
            program.get("/me")
        assert Throttle.objects.get().n == 40  # two batches of twenty

    def test_what_a_process_remembers_is_bounded(
        self, program_of: Programs, limited_to: LimitedTo, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        limited_to(100)
        monkeypatch.setattr(rates, "MOST_KNOWN", 2)
        programs = [program_of() for _ in range(3)]
        for program in programs:
            program.get("/me")
        assert len(rates._drawn) == 3  # none has expired
        now = time.monotonic()
        monkeypatch.setattr(rates.time, "monotonic", lambda: now + 61)
        program_of().get("/me")
        assert len(rates._drawn) == 1


@pytest.mark.usefixtures("engine_db")
def test_requests_at_once_are_each_counted(program: Program, limited_to: LimitedTo) -> None:
    limited_to(20)
    answers = together(8, lambda number: [program.get("/me").status_code for _ in range(5)])
    statuses = [status for answer in answers if isinstance(answer, list) for status in answer]
    assert sorted(statuses) == [200] * 20 + [429] * 20
