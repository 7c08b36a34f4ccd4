"""The part of the status line about an open step: what it does, or what it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from engine.status.facts import OpenStep
from engine.status.sentences.bidi import isolated
from engine.status.sentences.sentence import Code, Moment, Part, Sentence, first_line, many, quoted

MOST_PEOPLE = 4
DECIDE = "Retry, skip or fail it."


def of_step(step: OpenStep, now: datetime) -> Sentence:
    """Return what an open step does, or what it waits for."""
    if not step.is_waiting:
        where = f" on {step.worker}" if step.worker else ""
        since = Moment("since", step.started_at)
        return (*label(step), f" runs{where} for ", since, f"{running_turn(step)}.")
    if step.is_exhausted:
        return (*used_up(step), ". ", DECIDE)
    if step.kind == "do":
        return _backing_off(step, step.wake_at or now)
    if step.kind == "sleep":
        return ("Sleeps at ", *label(step), *_until(step.wake_at or now), ".")
    if step.kind == "request":
        return _request(step)
    return ("Waits for ", *wanted(step), " at ", *label(step), *_limit(step), ".")


def used_up(step: OpenStep) -> Sentence:
    """Return that the attempts of a step are used up, and its last error."""
    number = "only attempt" if step.counted <= 1 and not step.lost else f"{_spent(step):,} attempts"
    return (*label(step), f" used up its {number}", *because(step))


def _spent(step: OpenStep) -> int:
    return step.counted or step.lost


def _backing_off(step: OpenStep, wake_at: datetime) -> Sentence:
    times = {0: "lost its worker", 1: "failed once"}.get(step.counted, f"failed {step.counted} times")
    wake, after = Moment("until", wake_at), f" ({turn(step, step.counted + 1)})."
    return (*label(step), f" {times}", *because(step), ". Next attempt ", wake, after)


def _limit(step: OpenStep) -> Sentence:
    if step.wake_at is not None:
        return _until(step.wake_at)
    return () if step.kind in ("child", "parallel") else (" without a time limit",)


def _until(at: datetime) -> Sentence:
    return (" until ", Moment("moment", at), " (", Moment("until", at), ")")


def _request(step: OpenStep) -> Sentence:
    if not step.is_asking:
        return (*label(step), " no longer takes answers. A worker continues from it next.")
    expires: Sentence = ()
    if step.wake_at is not None:
        expires = (" Expires ", Moment("moment", step.wake_at), " (", Moment("until", step.wake_at), ").")
    asked = quoted(first_line(step.message, 200))
    return ("Needs an answer from ", people(step.asked_of), " at ", *label(step), f": {asked}", *expires)


def wanted(step: OpenStep) -> Sentence:
    if step.kind == "parallel":
        return (_branches(step),)
    if step.kind == "child":
        if not step.relative:
            return ("a child" if step.is_child else "another instance",)
        return ("child " if step.is_child else "instance ", Code(step.relative))
    return _types(step)


def _branches(step: OpenStep) -> str:
    if not step.left:
        return "its children"  # all have ended, and the step does not know it yet
    of = f"{step.left} of " if step.left < step.branches else ""
    return f"{of}{many(step.branches, 'child', 'children')}"


def _types(step: OpenStep) -> Sentence:
    names = step.event_types or (step.name,)
    parts: list[Part] = ["event "]
    for index, name in enumerate(names):
        parts += [" or ", Code(name)] if index else [Code(name)]
    return tuple(parts)


def people(assignees: Sequence[str]) -> str:
    """Return the names of a request's assignees."""
    names = [isolated(one.removeprefix("group:")) for one in assignees]
    if not names:
        return "an approver"
    if len(names) > MOST_PEOPLE:
        return f"{', '.join(names[:MOST_PEOPLE])} or {many(len(names) - MOST_PEOPLE, 'other', 'others')}"
    return " or ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def leading(steps: Sequence[OpenStep]) -> OpenStep:
    """Return the step to describe while it runs: a body before a back-off before a wait, the innermost of those."""
    bodies = [step for step in steps if not step.is_waiting]
    return bodies[-1] if bodies else first(steps) or steps[0]


def first(steps: Sequence[OpenStep]) -> OpenStep | None:
    """Return the step to describe first: one that runs, then a request to people, then what is due next."""
    return min(steps, key=_due, default=None)


def _due(step: OpenStep) -> tuple[bool, bool, float, int]:
    return (
        step.is_waiting,
        not step.is_asking,
        step.wake_at.timestamp() if step.wake_at else float("inf"),
        step.seq,
    )


def label(step: OpenStep) -> Sentence:
    return (f"step {step.seq} ", Code(step.name))


def running_turn(step: OpenStep) -> str:
    return f", {turn(step, step.counted)}" if step.attempts > 1 else ""


def turn(step: OpenStep, number: int) -> str:
    """Return an attempt's number among those that count: attempts lost with their worker have a separate budget."""
    of = f" of {step.max_attempts}" if step.max_attempts else ""
    lost = f", not counting {step.lost:,} lost" if step.lost else ""
    return f"attempt {number}{of}{lost}"


def because(step: OpenStep) -> Sentence:
    return (f" · {isolated(step.error.rstrip('.'))}",) if step.error else ()
