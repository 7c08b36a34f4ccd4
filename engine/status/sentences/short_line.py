"""A short status line, for a row of a list."""

from __future__ import annotations

from engine.status.facts import StatusFacts
from engine.status.sentences.bidi import isolated
from engine.status.sentences.sentence import Code, Moment, Sentence, error_text, first_line, quoted
from engine.status.sentences.status_line import abort_reason, error_kind
from engine.status.sentences.step_line import because, first, people, turn, wanted


def short_line(facts: StatusFacts) -> Sentence:
    """Return the state of an instance in a few words."""
    step = first(facts.steps)
    if facts.status == "queued":
        return _queued_short(facts)
    if facts.rollback is not None and facts.rollback.state == "failed":
        return (
            ("the rollback failed · ", error_text(facts.error)) if facts.error else ("the rollback failed",)
        )
    if facts.status == "errored":
        return (error_text(facts.error),)
    if facts.status == "terminated":
        return (
            quoted(facts.last_action.reason)
            if facts.last_action and facts.last_action.reason
            else abort_reason(facts),
        )
    if facts.status == "paused" and facts.pause_reason:
        has_changed = error_kind(facts.pause_reason) == "CodeChangedError"
        return ("the code has changed",) if has_changed else (error_text(facts.pause_reason),)
    if facts.status == "paused":
        return ("by ", isolated(facts.last_action.actor) or "a program") if facts.last_action else ("paused",)
    if facts.rollback is not None and facts.rollback.state == "running":
        return ("rolling back",)
    if facts.status == "complete" or step is None:
        return ()
    if step.is_waiting and step.kind == "do":
        return (
            f"{turn(step, step.counted + 1)} ",
            Moment("until", step.wake_at or facts.now),
            " · ",
            Code(step.name),
            *because(step),
        )
    if step.is_waiting and step.kind == "sleep":
        return ("until ", Moment("moment", step.wake_at or facts.now), " · ", Code(step.name))
    if step.is_waiting and step.is_asking:
        limit = (" · expires ", Moment("until", step.wake_at)) if step.wake_at else ()
        return (isolated(first_line(step.message, 80)), " · ", people(step.asked_of), *limit)
    if step.is_waiting and step.kind == "request":
        return ("answered · ", Code(step.name))
    if step.is_waiting:
        return ("for ", *wanted(step))
    return (Code(step.name), f" · attempt {step.counted}" if step.counted > 1 else "")


def _queued_short(facts: StatusFacts) -> Sentence:
    if not facts.servers.count:
        return ("its workers are starting" if facts.servers.is_starting else "no worker serves it",)
    if facts.capacity and facts.capacity.is_full:
        return (f"held back: {facts.capacity.held} of {facts.capacity.limit} run",)
    return ("waits for a worker",)
