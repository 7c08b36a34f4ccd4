"""One of the two runs that are compared: an instance in a generation, with its steps but without their outputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from engine.models import Instance
from engine.status.gathering import starts_of_generations
from engine.status.snapshot import Snapshot, snapshot, with_prefixes
from engine.values.identity import TOP
from engine.values.serialization import Unreadable, decode, envelope
from engine.values.shown import display_status
from studio.display import payloads
from studio.instance.compare.path import StepRow

MOST_STEPS = 10_000  # of the handler, from the first
COMPARED_UP_TO = payloads.FULL_UP_TO  # characters of params or a result
OUTPUTS = 500  # steps
OUTPUT_UP_TO = 64 * 1024  # bytes as stored; larger outputs are not compared
OUTPUT_PREFIX = 2_000  # characters

# Without what the handler says of its progress: such a text is no step of its path, and differs with each run.
_STEPS = """
SELECT seq, kind, name, count, status, attempts, kept_from,
       (greatest(extract(epoch FROM finished_at - started_at), 0) * 1000000)::bigint
  FROM engine_step
 WHERE instance_id = %(key)s AND generation = %(generation)s AND parent = %(top)s AND kind <> 'progress'
 ORDER BY seq
 LIMIT %(most)s
"""
_OUTPUTS = """
SELECT seq, md5(output::text), left(output::text, %(prefix)s), strpos(output::text, %(mark)s) > 0
  FROM engine_step
 WHERE instance_id = %(key)s AND generation = %(generation)s AND seq = ANY (%(seqs)s) AND status = 'complete'
   AND NOT sensitive AND output IS NOT NULL AND pg_column_size(output) <= %(most)s
"""


@dataclass(frozen=True, slots=True)
class Value:
    """A stored value, or the beginning of one that is too large to compare."""

    text: str
    size: int

    @property
    def is_whole(self) -> bool:
        return self.size <= COMPARED_UP_TO

    @property
    def is_readable(self) -> bool:
        """Whether it is what the engine writes, as far as it was read."""
        return not self.is_whole or not isinstance(self.decoded, Unreadable)

    @property
    def decoded(self) -> object:
        return decode(self.text)


@dataclass(frozen=True, slots=True)
class Side:
    """A run as it is compared."""

    snapped: Snapshot
    steps: tuple[StepRow, ...]
    has_more_steps: bool
    began_at: datetime

    @property
    def instance(self) -> Any:
        return self.snapped.instance

    @property
    def generation(self) -> int:
        return self.snapped.generations.shown

    @property
    def status(self) -> str:
        return display_status(self.instance.status, self.instance.waiting_for)

    @property
    def took(self) -> timedelta | None:
        finished_at = self.instance.finished_at
        return max(finished_at - self.began_at, timedelta(0)) if finished_at is not None else None

    @property
    def params(self) -> Value:
        return Value(self.instance.params_text or "null", self.instance.params_size or 4)

    @property
    def output(self) -> Value | None:
        if self.instance.status != "complete":
            return None
        return Value(self.instance.output_text or "null", self.instance.output_size or 4)

    @property
    def address(self) -> str:
        """The address of its page."""
        past = f"?generation={self.generation}" if self.snapped.generations.is_past else ""
        return f"{self.instance.get_absolute_url()}{past}"


def read_side(workflow: str, id: str, generation: int | None = None) -> Side:
    """Read a run. Raises Instance.DoesNotExist and GenerationNotFoundError."""
    rows: Any = with_prefixes(Instance.objects, "params", "output", length=COMPARED_UP_TO)
    snapped = snapshot(rows.get(workflow=workflow, id=id), generation, output_up_to=COMPARED_UP_TO)
    return side_of(snapped)


def side_of(snapped: Snapshot) -> Side:
    """Read the steps of a run whose params and output were read as prefixes."""
    values = {
        "key": snapped.instance.key,
        "generation": snapped.instance.generation,
        "top": TOP,
        "most": MOST_STEPS + 1,
    }
    with connection.cursor() as cursor:
        cursor.execute(_STEPS, values)
        steps = [StepRow._make(row) for row in cursor.fetchall()]
    return Side(snapped, tuple(steps[:MOST_STEPS]), len(steps) > MOST_STEPS, _began_at(snapped))


def _began_at(snapped: Snapshot) -> datetime:
    instance, those = snapped.instance, snapped.generations
    if not those.is_past:
        return starts_of_generations([instance])[instance.key]
    return (those.began.at if those.began is not None else instance.started_at) or instance.created_at


@dataclass(frozen=True, slots=True)
class Output:
    """What a step returned, as far as it is compared."""

    digest: str
    beginning: str
    has_secret: bool


def outputs_of(side: Side, seqs: Collection[int]) -> Mapping[int, Output]:
    """Read what these steps returned. Sensitive and large outputs are left out."""
    if not seqs:
        return {}
    values = {
        "key": side.instance.key,
        "generation": side.generation,
        "seqs": [*seqs],
        "most": OUTPUT_UP_TO,
        "prefix": OUTPUT_PREFIX,
        "mark": envelope.MARK,
    }
    with connection.cursor() as cursor:
        cursor.execute(_OUTPUTS, values)
        return {seq: Output(*row) for seq, *row in cursor.fetchall()}
