"""All that `workflow show` tells of an instance, read with a fixed number of queries and up to a limit of each kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q, QuerySet

from engine.command import output
from engine.command.events import newest as newest_events
from engine.errors import RepriseError
from engine.models import Attempt, Audit, Event, Generation, Instance, Step
from engine.status import status_line
from engine.status.children import children_of
from engine.status.facts import Situation
from engine.status.generations import Generations, as_it_was, explain, generations_of, situation

FOLDED = ("map", "parallel")
UNEVENTFUL = ("complete", "cancelled")


@dataclass(frozen=True, slots=True)
class Record:
    """One instance. Of steps, events, children and deeds it has the newest."""

    instance: Instance
    those: Generations
    facts: Situation
    steps: list[Step]
    steps_total: int
    items: dict[int, dict[str, int]]  # of maps and parallels: how many of their items have which status
    attempts: dict[int, list[Attempt]]
    events: list[Event]
    events_total: int
    children: list[Instance]
    children_total: int
    parent: Instance | None
    generations: list[Generation]
    audit: list[Audit]

    @property
    def why(self) -> str:
        return status_line.as_text(explain(self.facts, self.those), self.facts.now)

    @property
    def began_at(self) -> datetime:
        return self.facts.began_at or self.instance.created_at


class GenerationNotFoundError(RepriseError, LookupError):
    def __init__(self, instance: Instance, number: int) -> None:
        self.number = number
        super().__init__(f"{instance} has no generation {number}. The present one is {instance.generation}.")


def read(
    newest: Instance, limit: int, *, full: bool, generation: int | None = None, folds: bool = False
) -> Record:
    """Read up to `limit` of each kind; `folds` leaves out the items of maps and parallels that went well.

    With the number of an earlier generation, read it as that one left it. Raises GenerationNotFoundError.
    """
    those = generations_of(newest, generation)
    instance = _past(newest, those) if those.is_past else newest
    of_it = steps = Step.objects.filter(instance_id=instance.key, generation=instance.generation)
    folded = of_it.filter(kind__in=FOLDED)
    if folds:
        steps = of_it.exclude(parent__in=folded.values("seq"), status__in=UNEVENTFUL)
    shown = list((steps if full else steps.defer("output")).order_by("-seq")[:limit])[::-1]
    _read_old_milestones(of_it, shown)
    children = children_of(instance)
    relatives = Instance.objects.only("key", "workflow", "id", "status")
    return Record(
        instance=instance,
        those=those,
        facts=situation(instance, those),
        steps=shown,
        steps_total=steps.count(),
        items=_items(of_it, [step.seq for step in shown if step.kind in FOLDED]),
        attempts=_attempts(instance, shown),
        events=newest_events(instance, limit, full=full),
        events_total=Event.objects.filter(instance_id=instance.key).count(),
        children=list(children.order_by("-key")[:limit]),
        children_total=children.count(),
        parent=relatives.filter(key=instance.parent_key).first() if instance.parent_key else None,
        generations=list(Generation.objects.filter(instance_id=instance.key).order_by("-number")[:limit]),
        audit=list(Audit.objects.filter(instance_key=instance.key).order_by("-key")[:limit]),
    )


def _past(instance: Instance, those: Generations) -> Instance:
    kept = Generation.objects.filter(instance_id=instance.key, number=those.shown).first()
    if kept is None:
        raise GenerationNotFoundError(instance, those.shown)
    past: Instance = as_it_was(instance, kept)
    return past


def _read_old_milestones(steps: QuerySet[Step], shown: Sequence[Step]) -> None:
    """Read what those say whose name does not."""
    old = {step.seq: step for step in shown if step.is_old_milestone}
    for seq, said in steps.filter(seq__in=old).values_list("seq", "output") if old else ():
        old[seq].output = said


def _items(steps: QuerySet[Step], parents: Sequence[int]) -> dict[int, dict[str, int]]:
    found: dict[int, dict[str, int]] = {}
    inner = steps.filter(parent__in=parents).order_by("parent", "status").values_list("parent", "status")
    for parent, status, count in inner.annotate(number=Count("*")):
        found.setdefault(parent, {})[status] = count
    return found


def _attempts(instance: Instance, steps: Sequence[Step]) -> dict[int, list[Attempt]]:
    """Read the attempts at these steps. Those at a step that was kept are in the generation in which it ran."""
    where = Q(generation=instance.generation, phase="rollback", step_seq__in=[step.seq for step in steps])
    for generation in {_ran_in(step) for step in steps}:
        ran = [step.seq for step in steps if _ran_in(step) == generation and step.attempts]
        where |= Q(generation=generation, phase="do", step_seq__in=ran)
    found: dict[int, list[Attempt]] = {}
    rows = Attempt.objects.filter(where, instance_id=instance.key)
    for attempt in rows.order_by("step_seq", "phase", "number"):
        found.setdefault(attempt.step_seq, []).append(attempt)
    return found


def _ran_in(step: Step) -> int:
    return step.generation if step.kept_from is None else step.kept_from


def shape(record: Record, *, full: bool) -> output.Shape:
    instance, parent = record.instance, record.parent
    about = output.instance(instance) | {
        "why": record.why,
        "params": instance.params,
        "output": instance.output,
        "error": output.error(instance.error, full=full),
        "unreached": instance.unreached,
        "parent": output.relative(parent) if parent else None,
    }
    return {
        "instance": about,
        "steps": [output.step(step, record.attempts.get(step.seq, []), full=full) for step in record.steps],
        "steps_total": record.steps_total,
        "events": [output.event(event, full=full) for event in record.events],
        "events_total": record.events_total,
        "children": [output.relative(child) for child in record.children],
        "children_total": record.children_total,
        "generations": [output.generation(one) for one in record.generations],
        "audit": [output.deed(deed) for deed in record.audit],
    }
