"""The status line: one sentence about the state of an instance and what it waits for.

Pure: plain data in, a sentence in parts out. Pages and the command line share it; lists show its short form.
"""

from __future__ import annotations

from datetime import datetime

from engine.status.facts import Hold, LastAction, Rollback, Servers, StatusFacts
from engine.status.sentences.bidi import isolated
from engine.status.sentences.sentence import (
    Code,
    Moment,
    Sentence,
    Span,
    as_text,
    capital,
    error_text,
    first_line,
    many,
    quoted,
)
from engine.status.sentences.step_line import (
    DECIDE,
    because,
    first,
    label,
    leading,
    of_step,
    people,
    running_turn,
    turn,
    used_up,
    wanted,
)

HELD = "held: workflow paused"


def status_line(facts: StatusFacts) -> Sentence:
    """Return the state of an instance as a sentence."""
    said = _explain(facts)
    if facts.hold is not None and facts.status in ("running", "waiting"):
        is_at_work = facts.status == "running"
        stop = "" if as_text(said, facts.now).endswith(".") else "."
        said = (
            *said,
            f"{stop} After that, it is held: " if is_at_work else f"{stop} Held: ",
            *_held(facts, facts.hold),
        )
    return capital(said)


def _explain(facts: StatusFacts) -> Sentence:
    tell = {
        "queued": _queued,
        "running": _running,
        "waiting": _waiting,
        "waiting_for_pause": _pausing,
        "paused": _paused,
        "complete": _complete,
        "errored": _errored,
        "terminated": _terminated,
    }[facts.status]
    if facts.rollback is None:
        return tell(facts)
    is_at_it = facts.rollback.state == "running" and facts.status in ("running", "waiting")
    said: Sentence = ("Rolling back",) if is_at_it else tell(facts)
    stop = () if is_at_it or as_text(said, facts.now).endswith(".") else (".",)
    return (*said, *stop, *_rollback(facts.rollback, facts))


def _rollback(rollback: Rollback, facts: StatusFacts) -> Sentence:
    """Return the progress of the rollbacks, to follow the rest of the sentence."""
    done = f"{rollback.undone} of {many(rollback.of, 'step', 'steps')} undone"
    step = rollback.step
    if rollback.state == "complete":
        return (f" Rolled back: {done}.",)
    if rollback.state == "failed":
        where: Sentence = ("",) if step is None else (" at ", *label(step), *because(step))
        return (" The rollback failed", *where, f". {done}.")
    end = f"; {done}, then it is {rollback.ends_as}."
    if facts.status not in ("running", "waiting"):
        return (f" It is being rolled back{end}",)
    if step is None:
        return (f"{end}",)
    turn = running_turn(step)
    if not step.is_waiting:
        return (
            ": ",
            *label(step),
            " runs for ",
            Moment("since", step.started_at),
            turn,
            end,
        )
    wake = Moment("until", step.wake_at or facts.now)
    return (": ", *label(step), f" could not be undone{turn}", *because(step), ". Next attempt ", wake, end)


def _queued(facts: StatusFacts) -> Sentence:
    if (later := starts_later(facts)) is not None:
        return _to_start(facts, later)
    if facts.hold is not None:
        return ("Held: ", *_held(facts, facts.hold))
    since, servers = facts.wake_at or facts.created_at, facts.servers
    if not servers.count:
        return (
            "The workers of " if servers.is_starting else "No worker serves ",
            Code(facts.workflow),
            f"{' are starting' if servers.is_starting else ''}. It has waited for ",
            Moment("since", since),
            " and starts when one is available.",
        )
    if facts.capacity and facts.capacity.is_full:
        return (
            "Held back for ",
            Moment("since", since),
            f": {facts.capacity.held} of {facts.capacity.limit} ",
            Code(facts.workflow),
            " run (max_running). It continues when one of them ends or waits.",
        )
    return (
        "Waiting for a worker for ",
        Moment("since", since),
        f". {many(servers.count, 'worker serves', 'workers serve')} ",
        Code(facts.workflow),
        f", {busy(servers)}.",
    )


def starts_later(facts: StatusFacts) -> datetime | None:
    """Return when a queued instance is to start, if that time has not come."""
    is_to_come = facts.status == "queued" and facts.starts_at is not None and facts.starts_at > facts.now
    return facts.starts_at if is_to_come else None


def _to_start(facts: StatusFacts, at: datetime) -> Sentence:
    held: Sentence = () if facts.hold is None else (" It is held then: ", *_held(facts, facts.hold))
    return ("Starts ", Moment("until", at), " (", Moment("moment", at), ").", *held, *_nobody(facts))


def _held(facts: StatusFacts, hold: Hold) -> Sentence:
    """Return which pause holds an instance, to follow what it does to it."""
    who = isolated(hold.by) or "a program"
    reason = f": {quoted(hold.reason)}." if hold.reason else "."
    return (
        "workflow ",
        Code(facts.workflow),
        f" is paused by {who} since ",
        Moment("moment", hold.at),
        reason,
    )


def busy(servers: Servers) -> str:
    """Return how many of the workers' slots are taken."""
    of = f"{servers.slots:,}"
    return f"all {of} slots busy" if servers.is_full else f"{servers.held:,} of {of} slots busy"


def _running(facts: StatusFacts) -> Sentence:
    if not facts.steps:
        return ("The handler runs; no step is open.",)
    return (*of_step(leading(facts.steps), facts.now), *_beside(facts))


def _waiting(facts: StatusFacts) -> Sentence:
    step = first(facts.steps)
    if step is None:
        return ("Waiting", *_nobody(facts))
    return (*of_step(step, facts.now), *_beside(facts), *_nobody(facts))


def _pausing(facts: StatusFacts) -> Sentence:
    running = [step for step in facts.steps if not step.is_waiting]
    what: Sentence = ("nothing runs",) if not running else (*label(running[0]), " finishes first")
    return ("Pausing", *_by(facts.last_action), ": ", *what, ".")


def _paused(facts: StatusFacts) -> Sentence:
    exhausted = [step for step in facts.steps if step.is_exhausted]
    if exhausted:
        return ("Paused: ", *used_up(exhausted[0]), ". ", DECIDE, *_undecided(len(exhausted) - 1))
    if error_kind(facts.pause_reason) == "CodeChangedError":
        return (
            "Paused by the engine: the code has changed since it started. Nothing runs until the new code is accepted.",
        )
    if facts.pause_reason:
        return ("Paused by the engine: ", error_text(facts.pause_reason))
    return (
        "Paused",
        *_by(facts.last_action),
        ". Nothing new starts, and timers stop, until it is resumed.",
    )


def _undecided(more: int) -> Sentence:
    if not more:
        return ()
    return (f" {many(more, 'other step also waits', 'other steps also wait')} for a decision.",)


def _complete(facts: StatusFacts) -> Sentence:
    took = Span(facts.began_at or facts.created_at, facts.finished_at or facts.now)
    steps = f" with {many(facts.steps_complete, 'step', 'steps')}" if facts.steps_complete else ""
    return ("Completed in ", took, f"{steps}.")


def _errored(facts: StatusFacts) -> Sentence:
    error = facts.error or {}
    name, attempts = error.get("step"), error.get("attempts")
    where: Sentence = ("Failed at step ", Code(str(name))) if name else ("Failed",)
    after = (
        f" (after {many(attempts, 'attempt', 'attempts')})" if isinstance(attempts, int) and attempts else ""
    )
    return (*where, f"{after}: {error_text(error)}")


def _terminated(facts: StatusFacts) -> Sentence:
    count = facts.steps_complete
    is_kept = count and facts.rollback is None
    kept = f" {many(count, 'finished step stays', 'finished steps stay')} done." if is_kept else ""
    if facts.last_action is None:
        reason = abort_reason(facts)
        return ("The workflow ended itself", f": {reason}." if reason else ".", kept)
    return ("Terminated", *_by(facts.last_action), ".", kept)


def _beside(facts: StatusFacts) -> Sentence:
    more = len(facts.steps) - 1
    return (f" {many(more, 'other step is', 'other steps are')} also open.",) if more > 0 else ()


def _nobody(facts: StatusFacts) -> Sentence:
    is_served = facts.servers.count or facts.servers.is_starting or facts.hold is not None
    return () if is_served else (" No worker serves ", Code(facts.workflow), " now.")


def _by(last_action: LastAction | None) -> Sentence:
    if last_action is None:
        return ()
    reason = f": {quoted(last_action.reason)}" if last_action.reason else ""
    return (f" by {isolated(last_action.actor) or 'a program'} ", Moment("ago", last_action.at), reason)


def error_kind(error: dict[str, object] | None) -> str:
    return str((error or {}).get("type", ""))


def abort_reason(facts: StatusFacts) -> str:
    return str((facts.error or {}).get("message") or "")


def short_line(facts: StatusFacts) -> Sentence:
    """Return the state of an instance in a few words."""
    if facts.hold is None or facts.status != "waiting":
        return _short(facts)
    return (f"{HELD} · ", *said) if (said := _short(facts)) else (HELD,)


def _short(facts: StatusFacts) -> Sentence:
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
    exhausted = next((one for one in facts.steps if one.is_exhausted), None)
    if facts.status == "paused" and exhausted is not None:
        return used_up(exhausted)
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
    if (later := starts_later(facts)) is not None:
        return ("starts ", Moment("until", later))
    if facts.hold is not None:
        return (HELD,)
    if not facts.servers.count:
        return ("its workers are starting" if facts.servers.is_starting else "no worker serves it",)
    if facts.capacity and facts.capacity.is_full:
        return (f"held back: {facts.capacity.held} of {facts.capacity.limit} run",)
    return ("waits for a worker",)
