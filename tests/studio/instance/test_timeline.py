"""The timeline: bars at their place, idle time folded."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from django.template.loader import render_to_string

from studio.instance.timeline import (
    LATEST,
    MOST_FOLDS,
    NEAR_FOLD,
    THINNEST,
    Scale,
    Stretch,
    Track,
    build,
    idle_gaps,
)
from studio.instance.timeline_labels import FOLD_WIDTH

START = datetime(2026, 11, 21, 14, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def body(start: float, end: float, status: str = "complete", number: int = 1) -> Stretch:
    return Stretch("solid", status, at(start), at(end), number)


def track(*stretches: Stretch, seq: int = 1) -> Track:
    return Track(seq, stretches)


def test_bars_stand_where_their_time_is() -> None:
    drawn = build([track(body(0, 2)), track(body(5, 10), seq=2)], start=START, end=at(10), is_open=False)
    bars = [(bar.x, bar.width) for line in drawn.lines.values() for bar in line.bars]
    assert bars == [(0.0, 20.0), (50.0, 50.0)]
    assert drawn.now is None


def test_an_open_instance_has_a_line_at_now_and_room_for_what_is_to_come() -> None:
    drawn = build([track(body(0, 4))], start=START, end=at(8), is_open=True)
    assert drawn.now is not None
    assert 74 <= drawn.now <= 95


def test_no_label_is_where_now_is() -> None:
    for seconds in range(5, 200):
        drawn = build([track(body(0, 4))], start=START, end=at(seconds), is_open=True)
        assert drawn.now is not None
        assert not [mark.x for mark in drawn.axis if -4 < drawn.now - mark.x < 9]
        assert drawn.axis


def test_bars_that_have_ended_keep_their_places_while_time_goes_on() -> None:
    """Their rows need not be sent again; only now and then the line gets a longer scale."""
    at_8, at_8_4 = (build([track(body(0, 4))], start=START, end=at(now), is_open=True) for now in (8, 8.4))
    assert at_8.lines == at_8_4.lines
    assert at_8.now != at_8_4.now


def test_the_attempt_to_come_stands_after_now_and_is_numbered() -> None:
    planned = Stretch("next", "retrying", at(9), at(9), 2)
    drawn = build([track(body(0, 1, "errored"), planned)], start=START, end=at(8), is_open=True)
    first, to_come = drawn.lines[1].bars
    assert drawn.now is not None
    assert to_come.x > drawn.now
    assert [(bar.number, bar.is_numbered) for bar in (first, to_come)] == [(1, True), (2, True)]
    later = Stretch("next", "retrying", at(9_000), at(9_000), 2)
    drawn = build([track(body(0, 1, "errored"), later)], start=START, end=at(8), is_open=True)
    assert drawn.lines[1].bars[1].x == LATEST


def test_attempts_too_close_to_read_their_numbers_are_not_all_numbered() -> None:
    tries = [body(n / 10, n / 10 + 0.05, "errored", n + 1) for n in range(20)]
    drawn = build([track(*tries, body(40, 50))], start=START, end=at(50), is_open=False)
    assert [bar.number for bar in drawn.lines[1].bars if bar.is_numbered] == [1, 14, 1]


def test_a_long_idle_gap_is_folded_to_a_mark() -> None:
    stretches = [body(0, 1), body(2, 3), body(86_400, 86_401)]
    drawn = build([track(*stretches)], start=START, end=at(86_401), is_open=False)
    assert [fold.text for fold in drawn.folds] == ["23 h 59 m"]
    first, second, last = drawn.lines[1].bars
    assert first.width > 8
    assert last.x - second.end == pytest.approx(FOLD_WIDTH + 2 * 2 * first.width, abs=1)
    unfolded = build([track(*stretches)], start=START, end=at(86_401), is_open=False, is_unfolded=True)
    assert unfolded.folds == ()
    assert last.end == pytest.approx(100, abs=0.1)


def test_of_many_gaps_the_longest_are_folded() -> None:
    hours = [body(hour * (3600 + hour), hour * (3600 + hour) + 1) for hour in range(40)]
    drawn = build([track(*hours)], start=START, end=hours[-1].end, is_open=False)
    assert len(drawn.folds) == MOST_FOLDS
    labelled = [fold.x for fold in drawn.folds if fold.text]
    assert labelled
    assert all(later - one >= NEAR_FOLD for one, later in pairwise(labelled))  # no text covers another
    assert all(0 <= bar.x <= 100 for bar in drawn.lines[1].bars)
    xs = [bar.x for bar in drawn.lines[1].bars]
    assert xs == sorted(xs)


def test_the_axis_of_later_steps_counts_from_the_start_of_the_instance() -> None:
    drawn = build([track(body(7, 9))], start=at(7), end=at(11), is_open=False, origin=START)
    assert [(mark.text, mark.x) for mark in drawn.axis] == [
        ("+7 s", 0.0),
        ("+8 s", 25.0),
        ("+9 s", 50.0),
        ("+10 s", 75.0),
    ]


def test_gaps_in_proportion_to_the_work_stay_as_they_are() -> None:
    assert idle_gaps([body(0, 1), body(5, 6), body(11, 12)], START, at(12)) == []
    assert idle_gaps([body(0, 1), body(60, 61)], START, at(61)) == []  # less than a minute
    assert idle_gaps([body(0, 5), body(90, 95)], START, at(95)) == []  # less than 20 times as long as a body
    assert len(idle_gaps([body(0, 1), body(63, 64)], START, at(64))) == 1


def test_time_never_goes_backwards_across_folds() -> None:
    scale = Scale(START, at(1000), [(at(10), at(500)), (at(510), at(990))])
    xs = [scale.x(at(second)) for second in range(0, 1001, 5)]
    assert xs == sorted(xs)
    assert xs[0] == 0.0
    assert xs[-1] == 100.0


def test_what_lies_outside_is_drawn_at_the_edge() -> None:
    scale = Scale(START, at(10))
    assert (scale.x(at(-5)), scale.x(at(50))) == (0.0, 100.0)


def test_an_instance_without_duration_can_be_drawn() -> None:
    drawn = build([track(body(0, 0))], start=START, end=START, is_open=False)
    assert drawn.lines[1].bars[0].width == THINNEST


def test_the_axis_names_about_six_round_times() -> None:
    drawn = build([track(body(0, 30))], start=START, end=at(30), is_open=False)
    assert [mark.text for mark in drawn.axis] == ["0", "+5 s", "+10 s", "+15 s", "+20 s", "+25 s"]


def test_labels_without_room_on_a_narrow_line_are_known() -> None:
    drawn = build([track(body(0, 0.6))], start=START, end=at(0.6), is_open=False)
    assert [mark.text for mark in drawn.axis if mark.is_tight] == ["+200 ms", "+400 ms", "+500 ms"]
    html = render_to_string("studio/instance/pieces/timeline.html", {"d": {"timeline": drawn}})
    assert re.findall(r'<text class="tight"[^>]*>([^<]*)', html) == ["+200 ms", "+400 ms", "+500 ms"]


@pytest.mark.parametrize("took", [0.01, 0.5, 2, 10, 30])
@pytest.mark.parametrize("waited", [3, 20, 70, 240, 900, 4_000, 90_000])
def test_no_label_covers_another_while_somebody_waits(took: float, waited: float) -> None:
    bodies = [body(n * (took + 0.1), n * (took + 0.1) + took) for n in range(4)]
    end = bodies[-1].end + timedelta(seconds=waited)
    wait = Stretch("sleep", "waiting", bodies[-1].end, end, is_open=True)
    drawn = build([track(*bodies, wait)], start=START, end=end, is_open=True)
    assert drawn.now is not None
    marks = [mark for mark in (*drawn.axis, *drawn.folds) if mark.text]
    narrow = [mark.span for mark in marks if not mark.is_tight] + [(drawn.now - 4, drawn.now + 4)]
    half = [(mark.x, mark.x + (mark.span[1] - mark.span[0]) / 2) for mark in marks if not mark.is_before]
    wide = [*half, (drawn.now - 2, drawn.now + 2)]
    for spans in (narrow, wide):
        assert all(one[1] <= other[0] for one, other in pairwise(sorted(spans))), spans
    assert [fold.text for fold in drawn.folds if fold.is_tight] == []


def test_each_bar_says_in_words_what_it_shows() -> None:
    drawn = build([track(body(0, 5, "timed_out", 2))], start=START, end=at(10), is_open=False)
    assert drawn.lines[1].bars[0].title == (
        "attempt 2: timed out, 5 s, 2026-11-21 14:00:00.000 to 2026-11-21 14:00:05.000 UTC"
    )


def test_the_legend_lists_only_what_is_drawn() -> None:
    lost, wait = body(2, 3, "lost"), Stretch("backoff", "retrying", at(3), at(4))
    drawn = build([track(body(0, 1)), track(lost, wait, seq=2)], start=START, end=at(10), is_open=False)
    assert [text for _, text in drawn.legend] == ["runs", "failed attempt", "back-off"]
    html = render_to_string("studio/instance/pieces/legend.html", {"d": {"timeline": drawn}})
    assert re.findall(r'<i class="k (\w+)">', html) == ["solid", "fail", "backoff"]


def test_round_times_are_said_shortly() -> None:
    drawn = build([track(body(0, 3_000))], start=START, end=at(3_000), is_open=False)
    assert [mark.text for mark in drawn.axis][:3] == ["0", "+10 m", "+20 m"]
