"""One sentence about what differs between two runs, the most important first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from engine.status.sentences.sentence import Code, Part, Sentence, capital, many
from engine.values.durations import format_duration
from studio.instance.compare.comparison import Comparison, ValueDiff
from studio.instance.compare.path import Pair, is_notable

NAMED = 2  # of a kind; the others are counted


def summary(compared: Comparison) -> Sentence:
    """Return it, such as: Same path; `charge` took 12 s instead of 0.6 s; params differ in `amount`."""
    clauses = [clause for clause in _clauses(compared) if clause]
    parts: list[Part] = []
    for at, clause in enumerate(clauses):
        parts += ["; " if at else "", *clause]
    return capital((*parts, ".")[1:]) if parts else ("Nothing to compare yet.",)


def _clauses(compared: Comparison) -> Iterator[Sentence]:
    here, there = compared.here, compared.there
    if here.instance.status != there.instance.status:
        yield (f"this one is {_word(here.status)}, the other {_word(there.status)}",)
    yield _path(compared)
    yield _durations(compared)
    yield _value("params", compared.params)
    if compared.result.found is not None or compared.result.is_unreadable:
        yield _value("the result", compared.result) if not compared.result.is_same else ("same result",)
    yield _outputs(compared)
    if not compared.has_same_code:
        yield ("different code",)


def _word(status: str) -> str:
    return status.replace("_", " ")


def _path(compared: Comparison) -> Sentence:
    if compared.is_of_generations:
        return _generations(compared)
    only_here, only_there = compared.only_here, compared.only_there
    if not only_here and not only_there:
        return ("same path",) if compared.lines else ("no steps yet",)
    parts: list[Part] = []
    if only_here:
        parts += ["only here: ", *_names(only_here)]
    if only_there:
        parts += [", " if parts else "", "only there: ", *_names(only_there)]
    return tuple(parts)


def _generations(compared: Comparison) -> Sentence:
    words = [line.word for line in compared.lines]
    counts = [(words.count(word), word) for word in ("kept", "ran again", "new", "gone")]
    said = [f"{many(count, 'step', 'steps')} {word}" for count, word in counts if count]
    return (", ".join(said) if said else "no steps yet",)


def _durations(compared: Comparison) -> Sentence:
    slow = [line.pair for line in compared.differing if line.pair.is_slower_or_faster]
    slow.sort(key=lambda pair: abs(pair.more or timedelta(0)), reverse=True)
    parts: list[Part] = []
    for pair in slow[:NAMED]:
        mine, other = (side.took if side is not None else None for side in (pair.here, pair.there))
        parts += [", " if parts else "", Code(pair.label), f" took {_took(mine)} instead of {_took(other)}"]
    if len(slow) > NAMED:
        parts.append(f", and {len(slow) - NAMED} more differ in duration")
    if not parts and is_notable(*(_micros(side.took) for side in (compared.here, compared.there))):
        parts.append(f"it took {_took(compared.here.took)} instead of {_took(compared.there.took)}")
    return tuple(parts)


def _value(what: str, diff: ValueDiff) -> Sentence:
    if diff.is_unreadable:
        return (f"{what} cannot be read",)
    if diff.is_too_large:
        return (f"{what} too large to compare",)
    if diff.found is None:
        return ()
    rows = diff.found.rows
    if not rows:
        return (f"same {what}",)
    if rows[0].path == "$":
        return (f"{what} differ" if what == "params" else f"{what} differs",)
    parts: list[Part] = [f"{what} differ in " if what == "params" else f"{what} differs in "]
    for at, row in enumerate(rows[:NAMED]):
        parts += [", " if at else "", Code(row.path)]
    if len(rows) > NAMED:
        parts.append(f" and {len(rows) - NAMED}{'+' if diff.found.has_more else ''} more")
    return tuple(parts)


def _outputs(compared: Comparison) -> Sentence:
    found = [line.pair for line in compared.differing if line.output is not None]
    if not found:
        return ()
    return ("the output of " if len(found) == 1 else "the outputs of ", *_names(found), _verb(found))


def _verb(found: Sequence[Pair]) -> str:
    return " differs" if len(found) == 1 else " differ"


def _names(pairs: Sequence[Pair]) -> Sentence:
    parts: list[Part] = []
    for at, pair in enumerate(pairs[:NAMED]):
        parts += [", " if at else "", Code(pair.label)]
    left = len(pairs) - NAMED
    return (*parts, f" and {left} more") if left > 0 else tuple(parts)


def _micros(duration: timedelta | None) -> int | None:
    return None if duration is None else duration // timedelta(microseconds=1)


def _took(duration: timedelta | None) -> str:
    return format_duration(duration or timedelta(0))
