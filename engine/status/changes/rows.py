"""Read rows by their places, as documents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from django.db.models import Q

from engine.models import Attempt, Audit, Event, Generation, Log, Step
from engine.status import documents
from engine.status.changes.cursor import Place
from engine.status.changes.kinds import KINDS, Kind
from engine.values.states import AttemptPhase

Documents = dict[Place, documents.Document]


def by_place(key: int, places: Sequence[Place]) -> Documents:
    """Return the documents of rows of an instance, with what says which row it is."""
    by_kind: dict[Kind, list[Place]] = defaultdict(list)
    for place in places:
        by_kind[KINDS[place.rank]].append(place)
    found: Documents = {}
    for kind, wanted in by_kind.items():
        if kind in _READERS:
            found |= _READERS[kind](key, wanted)
    return found


def _steps(key: int, places: Sequence[Place]) -> Documents:
    where = Q(pk__in=[])
    for generation, inside in _by_generation(places).items():
        where |= Q(generation=generation, seq__in=[place.a for place in inside])
    rows = {(row.generation, row.seq): row for row in Step.objects.filter(where, instance_id=key)}
    found = {}
    for place in places:
        row = rows[place.generation, place.a]
        document = documents.step(row, (), full=False) | {"generation": row.generation}
        del document["attempts"]  # they are changes of their own
        found[place] = document
    return found


def _attempts(key: int, places: Sequence[Place]) -> Documents:
    where = Q(pk__in=[])
    for generation, inside in _by_generation(places).items():
        where |= Q(generation=generation, step_seq__in={place.a for place in inside})
    rows = {
        (row.generation, row.step_seq, row.number * 2 + (row.phase == AttemptPhase.ROLLBACK)): row
        for row in Attempt.objects.filter(where, instance_id=key)
    }
    return {
        place: documents.attempt(row, full=False) | {"generation": row.generation, "step": row.step_seq}
        for place in places
        for row in [rows[place.generation, place.a, place.b]]
    }


def _events(key: int, places: Sequence[Place]) -> Documents:
    rows = Event.objects.filter(instance_id=key).defer("payload").in_bulk([place.a for place in places])
    return {place: documents.event(rows[place.a], full=False) | {"key": place.a} for place in places}


def _logs(key: int, places: Sequence[Place]) -> Documents:
    rows = Log.objects.filter(instance_id=key).in_bulk([place.a for place in places])
    return {place: documents.log(rows[place.a]) for place in places}


def _actions(key: int, places: Sequence[Place]) -> Documents:
    rows = Audit.objects.filter(instance_key=key).in_bulk([place.a for place in places])
    return {place: documents.action(rows[place.a]) for place in places}


def _generations(key: int, places: Sequence[Place]) -> Documents:
    numbers = [place.generation for place in places]
    rows = Generation.objects.filter(instance_id=key, number__in=numbers).defer("params", "output")
    by_number = {row.number: row for row in rows}
    return {place: documents.generation(by_number[place.generation]) for place in places}


def _by_generation(places: Sequence[Place]) -> Mapping[int, Sequence[Place]]:
    found: dict[int, list[Place]] = defaultdict(list)
    for place in places:
        found[place.generation].append(place)
    return found


_READERS: Mapping[Kind, Callable[[int, Sequence[Place]], Documents]] = {
    Kind.GENERATION: _generations,
    Kind.ACTION: _actions,
    Kind.EVENT: _events,
    Kind.STEP: _steps,
    Kind.ATTEMPT: _attempts,
    Kind.LOG: _logs,
}
