"""Lay out the timeline: bars for steps and attempts, in percent of its width.

Pure: no database, no HTML. Long idle times are folded to a break mark.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import ceil, log
from statistics import median

from engine.values.durations import format_duration
from studio.display.times import between, whole
from studio.instance.timeline_labels import FOLD_WIDTH, Mark, fitted

NEAR_FOLD = 14.0  # percent of the line that the label of a fold takes on a narrow page
BEFORE_LABEL, AFTER_LABEL = 4.0, 12.0  # percent of the line, for the word "now" beside a label
FOLD_TIMES = 20  # fold a gap that is this many times the median duration of bodies
FOLD_SECONDS = 60.0  # and at least this long
MOST_FOLDS = 6  # the longest: each takes its share of the line, whatever is in it
THINNEST = 0.15  # percent of the line
ROOM = 1.06  # for what is to come: the line of an open instance ends later than now by this at least
GROWTH = 1.25  # it grows by this at a time, so that bars which have ended keep their places meanwhile
LATEST = 97.0  # percent of the line, for an attempt that is planned for a time beyond its end
APART = 2.6  # percent of the line between two numbers of attempts that can both be read
BUSY = ("solid", "undo", "group")
FAILED = ("errored", "timed_out", "lost")
LEGEND = {
    "queued": "queued",
    "solid": "runs",
    "fail": "failed attempt",
    "backoff": "back-off",
    "next": "attempt to come",
    "held": "waits for a decision",
    "sleep": "sleeps or waits",
    "undo": "rollback",
    "kept": "kept from an earlier generation",
}


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a step's life. Kinds: `solid` (a body runs), `undo` (its rollback runs), `group` (inner steps run),
    `backoff`, `next` (a planned attempt), `held` (its attempts are used up), `sleep`, `queued`, `mark` (a milestone),
    `kept` (it ran in an earlier generation; `number` says which)."""

    kind: str
    status: str
    start: datetime
    end: datetime
    number: int = 0
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """A stretch with its position."""

    kind: str
    status: str
    x: float
    width: float
    number: int
    title: str
    is_numbered: bool = False

    @property
    def middle(self) -> float:
        return round(self.x + self.width / 2, 2)

    @property
    def end(self) -> float:
        return round(self.x + self.width, 2)

    @property
    def is_failed(self) -> bool:
        """Whether it shows a failed attempt at a body."""
        return self.kind == "solid" and self.status in FAILED


@dataclass(frozen=True, slots=True)
class Line:
    """The bars of one step."""

    seq: int
    bars: tuple[Bar, ...]

    @property
    def end(self) -> float:
        return max((bar.end for bar in self.bars), default=0.0)


@dataclass(frozen=True, slots=True)
class Track:
    """The stretches of a step."""

    seq: int
    stretches: tuple[Stretch, ...]


class Scale:
    """Maps times to positions on the line, in percent."""

    def __init__(
        self,
        start: datetime,
        end: datetime,
        folds: Sequence[tuple[datetime, datetime]] = (),
        *,
        is_open: bool = False,
    ) -> None:
        """`end` is now if it `is_open`: then there is room for what is to come."""
        self.start = start
        self.end = max(end, start + timedelta(milliseconds=1))
        self.folds = list(folds)
        hidden = sum(((b - a) for a, b in self.folds), timedelta(0))
        shown = max((self.end - start - hidden).total_seconds(), 0.001)
        if is_open:
            shown = GROWTH ** ceil(log(shown * ROOM, GROWTH))
        self.seconds = shown
        self.is_open = is_open
        self._per_second = (100.0 - FOLD_WIDTH * len(self.folds)) / shown
        self._times: list[datetime] = [start]
        self._xs: list[float] = [0.0]
        for a, b in self.folds:
            at = self._xs[-1] + (a - self._times[-1]).total_seconds() * self._per_second
            self._times += [a, b]
            self._xs += [at, at + FOLD_WIDTH]

    def x(self, at: datetime) -> float:
        at = max(at, self.start) if self.is_open else min(max(at, self.start), self.end)
        i = bisect_right(self._times, at) - 1
        if i + 1 < len(self._times) and i % 2:  # inside a fold
            share = (at - self._times[i]) / (self._times[i + 1] - self._times[i])
            return round(self._xs[i] + share * FOLD_WIDTH, 2)
        passed = (at - self._times[i]).total_seconds()
        return round(min(self._xs[i] + passed * self._per_second, 100.0), 2)


@dataclass(frozen=True, slots=True)
class Timeline:
    """A timeline, ready to render."""

    lines: Mapping[int, Line]  # by the number of the step
    axis: tuple[Mark, ...]
    folds: tuple[Mark, ...]
    now: float | None

    @property
    def legend(self) -> list[tuple[str, str]]:
        """Return the kinds of bars that are drawn, each with its meaning."""
        bars = [bar for line in self.lines.values() for bar in line.bars]
        drawn = {bar.kind for bar in bars} | {"fail" for bar in bars if bar.is_failed}
        return [(kind, text) for kind, text in LEGEND.items() if kind in drawn]


def build(
    tracks: Sequence[Track],
    *,
    start: datetime,
    end: datetime,
    is_open: bool,
    origin: datetime | None = None,
    is_unfolded: bool = False,
) -> Timeline:
    """Lay out the tracks between `start` and `end`, which is now while the instance is open.

    The labels of the axis count from `origin`, by default from `start`.
    """
    stretches = [stretch for track in tracks for stretch in track.stretches]
    folds = [] if is_unfolded else idle_gaps(stretches, start, end)
    scale = Scale(start, end, folds, is_open=is_open)
    now = scale.x(end) if is_open else None
    axis, marks = fitted(_axis(scale, origin or start, now), _marks(folds, scale), now)
    return Timeline(
        lines={track.seq: Line(track.seq, tuple(_bars(track, scale))) for track in tracks},
        axis=tuple(axis),
        folds=tuple(marks),
        now=now,
    )


def _marks(folds: Sequence[tuple[datetime, datetime]], scale: Scale) -> Iterator[Mark]:
    """Yield the marks of folded gaps. Those too close to another have no text."""
    last = -NEAR_FOLD
    for a, b in folds:
        x = scale.x(a)
        is_free = x - last >= NEAR_FOLD
        last = x if is_free else last
        yield Mark(x, format_duration(b - a) if is_free else "", folded=True)


def idle_gaps(
    stretches: Iterable[Stretch], start: datetime, end: datetime
) -> list[tuple[datetime, datetime]]:
    """Find times without a running body that are so long that they would hide everything else."""
    busy = sorted((s.start, s.end) for s in stretches if s.kind in BUSY)
    if not busy:
        return []
    usual = median((b - a).total_seconds() for a, b in busy)
    least = max(usual * FOLD_TIMES, FOLD_SECONDS)
    gaps, reached = [], start
    for a, b in [*busy, (end, end)]:
        if (a - reached).total_seconds() > least:
            # Keep the edges of a gap readable: up to a tenth on either side is to scale.
            edge = min((a - reached) / 10, timedelta(seconds=max(usual * 2, 0.2)))
            gaps.append((reached + edge, a - edge))
        reached = max(reached, b)
    longest = sorted(gaps, key=lambda gap: gap[1] - gap[0], reverse=True)[:MOST_FOLDS]
    return sorted(longest)


def _bars(track: Track, scale: Scale) -> Iterator[Bar]:
    """Yield its bars. Attempts are numbered if there are several, as far as their numbers do not overlap."""
    bars = [_bar(stretch, scale) for stretch in track.stretches]
    numbers = [bar.number for bar in bars if bar.kind in ("solid", "next")]
    free = -APART
    for bar in bars:
        is_free = bar.middle - free >= APART and bar.kind in ("solid", "next")
        if is_free and (len(numbers) > 1 or bar.is_failed):
            free, bar = bar.middle, replace(bar, is_numbered=True)
        yield bar


_SAID = {
    "backoff": "back-off",
    "held": "waits for a decision",
    "sleep": "waited",
    "queued": "queued",
    "mark": "said",
    "group": "nested steps",
}


def _bar(stretch: Stretch, scale: Scale) -> Bar:
    x = scale.x(stretch.start)
    # Bars of zero duration are visible, too.
    width = max(round(scale.x(stretch.end) - x, 2), THINNEST if stretch.kind in (*BUSY, "sleep") else 0.0)
    took = format_duration(stretch.end - stretch.start)
    if stretch.kind == "next":
        title = f"attempt {stretch.number}, planned for {whole(stretch.start)}"
        return Bar("next", stretch.status, min(x, LATEST), 0.0, stretch.number, title)
    if stretch.kind == "kept":
        return Bar("kept", stretch.status, x, 0.0, 0, f"kept from generation {stretch.number}")
    what = "rollback attempt" if stretch.kind == "undo" else "attempt"
    said = f"{what} {stretch.number}" if stretch.number else _SAID.get(stretch.kind, stretch.kind)
    title = f"{said}: {stretch.status.replace('_', ' ')}, {took}{' so far' if stretch.is_open else ''}"
    title += (
        f", since {whole(stretch.start)}" if stretch.is_open else f", {between(stretch.start, stretch.end)}"
    )
    return Bar(stretch.kind, stretch.status, x, width, stretch.number, title)


def _short(duration: timedelta) -> str:
    """Return a round duration: `20 m` for 20 m 00 s."""
    return format_duration(duration).removesuffix(" 00 s").removesuffix(" 00 m")


_STEPS = (
    0.01,
    0.02,
    0.05,
    0.1,
    0.2,
    0.5,
    1,
    2,
    5,
    10,
    20,
    30,
    60,
    120,
    300,
    600,
    1200,
    1800,
    3600,
    7200,
    14400,
    43200,
)


def _axis(scale: Scale, origin: datetime, now: float | None) -> Iterable[Mark]:
    """Yield about six labels at round times since `origin`, none inside a fold or too close to another or to now."""
    shown = scale.seconds
    total = shown + sum((b - a).total_seconds() for a, b in scale.folds)
    step = next((s for s in _STEPS if shown / s <= 6), max(86_400.0, total / 6))
    before = max((scale.start - origin).total_seconds(), 0.0)
    last, said, at, count = -100.0, "", ceil(before / step) * step, 0
    while at <= before + total and count < 2_000:
        count += 1
        when = scale.start + timedelta(seconds=at - before)
        x = scale.x(when)
        text = "0" if at == 0 else f"+{_short(timedelta(seconds=at))}"
        is_free = (
            x - last >= 9 and x <= 96 and not any(abs(x - scale.x(a)) < NEAR_FOLD for a, _ in scale.folds)
        )
        is_free = is_free and (now is None or not -BEFORE_LABEL < now - x < AFTER_LABEL)
        if is_free and text != said:  # after a fold of days, the same text would be true of many
            yield Mark(x, text)
            last, said = x, text
        at += step
