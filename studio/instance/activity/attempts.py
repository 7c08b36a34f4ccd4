"""Read attempts by when they ended, or began if they run.

No index has them in that order, and one that had would cost every checkpoint. So they are sorted in blocks of steps,
the newest block first: in an instance with fewer steps, that is the order of time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce

from engine.models import Attempt, Instance
from engine.status.errors import beginning_of_error, error_line
from engine.status.snapshot import with_prefixes
from studio.instance.activity.entry import Entry, Kind, Place, Source, micros_of, moment_of
from studio.instance.activity.wanted import Wanted

BLOCK = 20_000  # steps, of which an instance rarely has as many
PREFIX = 2_000  # characters that are read of an error
SHOWN = 160  # and shown
_PHASES = ("do", "rollback")  # in the order of the alphabet, as the database has it

Number = tuple[int, int, str, int]  # of an attempt: generation, step, phase, number


def read(instance: Instance, wanted: Wanted, below: Place | None, limit: int) -> list[Entry]:
    """Return the newest attempts of all generations below a place."""
    found = list(islice(_numbers(instance, below, limit), limit))
    rows = with_prefixes(_these(instance, found), "error", length=PREFIX) if found else ()
    made = {(row.generation, row.step_seq, row.phase, row.number): row for row in rows}
    return [_entry(made[number]) for number in found if number in made]


def ended_since(instance: Instance, newest: Place, oldest: Place, limit: int) -> list[Entry]:
    """Return attempts that ran when the stream was read between two places, and have ended since."""
    began, read_at = moment_of(oldest[2]), moment_of(newest[2])
    rows = Attempt.objects.filter(instance_id=instance.key, finished_at__gte=read_at)
    ran = rows.filter(started_at__gte=began, started_at__lte=read_at).order_by("-finished_at")
    return [_entry(row) for row in with_prefixes(ran, "error", length=PREFIX)[:limit]]


def _numbers(instance: Instance, below: Place | None, limit: int) -> Iterator[Number]:
    """Yield the attempts in order, a block at a time, without their errors."""
    rows = Attempt.objects.filter(instance_id=instance.key)
    block = _newest_block(rows.filter(_in_block_or_before(below)) if below else rows)
    while block is not None:
        generation, number = block
        start = number * BLOCK
        in_block = rows.filter(generation=generation, step_seq__gte=start, step_seq__lt=start + BLOCK)
        ordered = in_block.alias(moment=Coalesce("finished_at", "started_at"))
        if below and block == below[:2]:
            ordered = ordered.filter(_is_below(below))
        newest = ordered.order_by("-moment", "-step_seq", "-phase", "-number")
        yield from newest.values_list("generation", "step_seq", "phase", "number")[:limit]
        block = _newest_block(rows.filter(_is_before(generation, start)))


def _newest_block(rows: QuerySet[Attempt]) -> tuple[int, int] | None:
    found = rows.order_by("-generation", "-step_seq").values_list("generation", "step_seq").first()
    return (found[0], found[1] // BLOCK) if found else None


def _in_block_or_before(place: Place) -> Q:
    return _is_before(place[0], min((place[1] + 1) * BLOCK, 2**31 - 1))


def _is_before(generation: int, seq: int) -> Q:
    generation = min(generation, 2**31 - 1)
    return Q(generation__lt=generation) | Q(generation=generation, step_seq__lt=seq)


def _is_below(place: Place) -> Q:
    """Return the condition for what comes after a place in its block."""
    _, _, micros, seq, phase, number = place
    moment, name = moment_of(micros), _PHASES[min(phase, 1)]
    seq, number = (min(one, 2**31 - 1) for one in (seq, number))
    return (
        Q(moment__lt=moment)
        | Q(moment=moment, step_seq__lt=seq)
        | Q(moment=moment, step_seq=seq, phase__lt=name)
        | Q(moment=moment, step_seq=seq, phase=name, number__lt=number)
    )


def _these(instance: Instance, found: Sequence[Number]) -> Any:
    """Return the query for attempts of these steps; it may find others of them, too."""
    steps = Q(pk__in=[])
    for generation in {number[0] for number in found}:
        seqs = {seq for of, seq, _, _ in found if of == generation}
        numbers = {number for of, _, _, number in found if of == generation}
        steps |= Q(generation=generation, step_seq__in=seqs, number__in=numbers)
    return Attempt.objects.filter(steps, instance_id=instance.key)


def _entry(row: Any) -> Entry:
    at = row.finished_at or row.started_at
    block = row.step_seq // BLOCK
    place = (row.generation, block, micros_of(at), row.step_seq, _PHASES.index(row.phase), row.number)
    text = error_line(beginning_of_error(row.error_text), SHOWN)
    return Entry(Source.ATTEMPT, Kind.ATTEMPTS, place, at, row, text=text)
