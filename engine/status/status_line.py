"""The why-line: one sentence that says where an instance stands and what it waits for.

Pure: plain data in, a sentence in parts out. The same sentence serves the page, the list and whoever asks later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.durations import format_duration
from engine.errors import ENGINE_PAUSES
from engine.status.bidi import isolated
from engine.status.facts import Deed, OpenStep, Rollback, Servers, Situation


@dataclass(frozen=True, slots=True)
class Moment:
    """A time that ticks in the browser: `until`, `since`, `ago` or `moment`."""

    kind: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Code:
    """A name from somebody's program."""

    text: str


MOST_PEOPLE = 4

Part = str | Moment | Code
Sentence = tuple[Part, ...]


def explain(facts: Situation) -> Sentence:
    """Say it in one sentence."""
    return _capital(_explain(facts))


def _explain(facts: Situation) -> Sentence:
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


def _rollback(rollback: Rollback, facts: Situation) -> Sentence:
    """Say how far the rollbacks are, after what is said anyway."""
    done = f"{rollback.undone} of {_many(rollback.of, 'step', 'steps')} undone"
    step = rollback.step
    if rollback.state == "complete":
        return (f" Rolled back: {done}.",)
    if rollback.state == "failed":
        where: Sentence = ("",) if step is None else (" at ", *_label(step), *_because(step))
        return (" The rollback failed", *where, f". {done}.")
    end = f"; {done}, then it is {rollback.ends_as}."
    if facts.status not in ("running", "waiting"):
        return (f" It is being rolled back{end}",)
    if step is None:
        return (f"{end}",)
    turn = _running_turn(step)
    if not step.is_waiting:
        return (": ", *_label(step), " is undone for ", Moment("since", step.started_at), turn, end)
    wake = Moment("until", step.wake_at or facts.now)
    return (": ", *_label(step), f" could not be undone{turn}", *_because(step), ". Next attempt ", wake, end)


def in_short(facts: Situation) -> Sentence:
    """Say it in a few words, for a row of a list."""
    step = _first(facts.steps)
    if facts.status == "queued":
        return _queued_in_short(facts)
    if facts.rollback is not None and facts.rollback.state == "failed":
        return (
            ("the rollback failed · ", _error_text(facts.error)) if facts.error else ("the rollback failed",)
        )
    if facts.status == "errored":
        return (_error_text(facts.error),)
    if facts.status == "terminated":
        return (quoted(facts.deed.reason) if facts.deed and facts.deed.reason else _abort_reason(facts),)
    if facts.status == "paused" and _kind(facts.error) in ENGINE_PAUSES:
        has_changed = _kind(facts.error) == "CodeChangedError"
        return ("the code has changed",) if has_changed else (_error_text(facts.error),)
    if facts.status == "paused":
        return ("by ", isolated(facts.deed.actor) or "a program") if facts.deed else ("paused",)
    if facts.rollback is not None and facts.rollback.state == "running":
        return ("rolling back",)
    if facts.status == "complete" or step is None:
        return ()
    if step.is_waiting and step.kind == "do":
        return (
            f"{_turn(step, step.counted + 1)} ",
            Moment("until", step.wake_at or facts.now),
            " · ",
            Code(step.name),
            *_because(step),
        )
    if step.is_waiting and step.kind == "sleep":
        return ("until ", Moment("moment", step.wake_at or facts.now), " · ", Code(step.name))
    if step.is_waiting and step.is_asking:
        limit = (" · expires ", Moment("until", step.wake_at)) if step.wake_at else ()
        return (isolated(_first_line(step.message, 80)), " · ", _people(step.asked_of), *limit)
    if step.is_waiting and step.kind == "request":
        return ("answered · ", Code(step.name))
    if step.is_waiting:
        return ("for ", *_wanted(step))
    return (Code(step.name), f" · attempt {step.counted}" if step.counted > 1 else "")


def _queued_in_short(facts: Situation) -> Sentence:
    if not facts.servers.count:
        return ("its workers are starting" if facts.servers.is_starting else "no worker serves it",)
    if facts.places and facts.places.is_full:
        return (f"held back: {facts.places.held} of {facts.places.limit} run",)
    return ("waits for a worker",)


def _capital(sentence: Sentence) -> Sentence:
    first, *rest = sentence
    return (first[:1].upper() + first[1:], *rest) if isinstance(first, str) else sentence


def as_text(sentence: Sentence, now: datetime) -> str:
    """Write the sentence out as plain text."""
    return "".join(_word(part, now) for part in sentence)


def _word(part: Part, now: datetime) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Code):
        return quoted(part.text)
    if part.kind == "until":
        return f"in {format_duration(part.at - now)}" if part.at > now else "due"
    if part.kind == "moment":
        return f"{part.at:%Y-%m-%d %H:%M:%S} UTC"
    passed = format_duration(max(now - part.at, timedelta(0)))
    return f"{passed} ago" if part.kind == "ago" else passed


def _queued(facts: Situation) -> Sentence:
    since, servers = facts.wake_at or facts.created_at, facts.servers
    if not servers.count:
        return (
            "The workers of " if servers.is_starting else "No worker serves ",
            Code(facts.workflow),
            f"{' are starting' if servers.is_starting else ''}. It has waited for ",
            Moment("since", since),
            " and starts when one comes.",
        )
    if facts.places and facts.places.is_full:
        return (
            "Held back for ",
            Moment("since", since),
            f": {facts.places.held} of {facts.places.limit} ",
            Code(facts.workflow),
            " run (max_running). It goes on when one of them ends or waits.",
        )
    return (
        "Waiting for a worker for ",
        Moment("since", since),
        f". {_many(servers.count, 'worker serves', 'workers serve')} ",
        Code(facts.workflow),
        f", {busy(servers)}.",
    )


def busy(servers: Servers) -> str:
    """Say how many of the workers' slots are taken."""
    of = f"{servers.slots:,}"
    return f"all {of} slots busy" if servers.is_full else f"{servers.held:,} of {of} slots busy"


def _running(facts: Situation) -> Sentence:
    if not facts.steps:
        return ("The handler runs; no step is open.",)
    return (*_step(_leading(facts.steps), facts), *_beside(facts))


def _waiting(facts: Situation) -> Sentence:
    step = _first(facts.steps)
    if step is None:
        return ("Waiting", *_nobody(facts))
    return (*_step(step, facts), *_beside(facts), *_nobody(facts))


def _pausing(facts: Situation) -> Sentence:
    running = [step for step in facts.steps if not step.is_waiting]
    what: Sentence = ("it stands still",) if not running else _label(running[0])
    return ("Pausing", *_by(facts.deed), ": what runs is finished first, ", *what, ".")


def _paused(facts: Situation) -> Sentence:
    if _kind(facts.error) == "CodeChangedError":
        return (
            "Paused by the engine: the code has changed since it started. Nothing runs until that is accepted.",
        )
    if _kind(facts.error) in ENGINE_PAUSES:
        return ("Paused by the engine: ", _error_text(facts.error))
    return ("Paused", *_by(facts.deed), ". Nothing new starts and timers stand still until it is resumed.")


def _complete(facts: Situation) -> Sentence:
    took = (facts.finished_at or facts.now) - (facts.began_at or facts.created_at)
    steps = f" with {_many(facts.steps_complete, 'step', 'steps')}" if facts.steps_complete else ""
    return (f"Completed in {format_duration(took)}{steps}.",)


def _errored(facts: Situation) -> Sentence:
    error = facts.error or {}
    name, attempts = error.get("step"), error.get("attempts")
    where: Sentence = ("Failed at step ", Code(str(name))) if name else ("Failed",)
    after = (
        f" (after {_many(attempts, 'attempt', 'attempts')})" if isinstance(attempts, int) and attempts else ""
    )
    return (*where, f"{after}: {_error_text(error)}")


def _terminated(facts: Situation) -> Sentence:
    count = facts.steps_complete
    is_kept = count and facts.rollback is None
    kept = f" {_many(count, 'finished step stays', 'finished steps stay')} done." if is_kept else ""
    if facts.deed is None:
        reason = _abort_reason(facts)
        return ("The workflow ended itself", f": {reason}." if reason else ".", kept)
    return ("Terminated", *_by(facts.deed), ".", kept)


def _step(step: OpenStep, facts: Situation) -> Sentence:
    if not step.is_waiting:
        where = f" on {step.worker}" if step.worker else ""
        turn = _running_turn(step)
        return (*_label(step), f" runs{where} for ", Moment("since", step.started_at), f"{turn}.")
    if step.kind == "do":
        wake = step.wake_at or facts.now
        times = {0: "lost its worker", 1: "failed once"}.get(step.counted, f"failed {step.counted} times")
        failed = f" {times}"
        return (
            *_label(step),
            failed,
            *_because(step),
            ". Next attempt ",
            Moment("until", wake),
            f" ({_turn(step, step.counted + 1)}).",
        )
    if step.kind == "sleep":
        wake = step.wake_at or facts.now
        return (
            "Sleeps at ",
            *_label(step),
            " until ",
            Moment("moment", wake),
            " (",
            Moment("until", wake),
            ").",
        )
    if step.kind == "request":
        return _request(step)
    limit: Sentence = (" without a time limit",)
    if step.wake_at is not None:
        limit = (" until ", Moment("moment", step.wake_at), " (", Moment("until", step.wake_at), ")")
    if step.kind in ("child", "parallel") and step.wake_at is None:
        limit = ()
    return ("Waits for ", *_wanted(step), " at ", *_label(step), *limit, ".")


def _wanted(step: OpenStep) -> Sentence:
    if step.kind == "parallel":
        return (_branches(step),)
    if step.kind == "child":
        return ("child " if step.is_child else "instance ", Code(step.relative))
    return _types(step)


def _branches(step: OpenStep) -> str:
    if not step.left:
        return "its children"  # all have ended, and it has not heard of that yet
    of = f"{step.left} of " if step.left < step.branches else ""
    return f"{of}{_many(step.branches, 'child', 'children')}"


def _request(step: OpenStep) -> Sentence:
    if not step.is_asking:
        return (*_label(step), " takes no more answers. A worker goes on from it next.")
    expires: Sentence = ()
    if step.wake_at is not None:
        expires = (" Expires ", Moment("moment", step.wake_at), " (", Moment("until", step.wake_at), ").")
    asked = quoted(_first_line(step.message, 200))
    return ("Needs an answer from ", _people(step.asked_of), " at ", *_label(step), f": {asked}", *expires)


def _people(assignees: Sequence[str]) -> str:
    """Name whom a request was put to."""
    names = [isolated(one.removeprefix("group:")) for one in assignees]
    if not names:
        return "an approver"
    if len(names) > MOST_PEOPLE:
        return f"{', '.join(names[:MOST_PEOPLE])} or {_many(len(names) - MOST_PEOPLE, 'other', 'others')}"
    return " or ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def _first_line(text: str, length: int) -> str:
    line = text.strip().split("\n", 1)[0]
    return line if len(line) <= length else line[: length - 1] + "…"


def _leading(steps: Sequence[OpenStep]) -> OpenStep:
    """Choose what to speak of while it runs: a body before a back-off before a wait, the innermost of those."""
    bodies = [step for step in steps if not step.is_waiting]
    return bodies[-1] if bodies else _first(steps) or steps[0]


def _first(steps: Sequence[OpenStep]) -> OpenStep | None:
    """Choose what it waits for first: people, who can do something about it, then what comes due next; but what runs
    before all."""
    return min(steps, key=_due, default=None)


def _due(step: OpenStep) -> tuple[bool, bool, float, int]:
    return (
        step.is_waiting,
        not step.is_asking,
        step.wake_at.timestamp() if step.wake_at else float("inf"),
        step.seq,
    )


def _beside(facts: Situation) -> Sentence:
    more = len(facts.steps) - 1
    return (f" {_many(more, 'other step is', 'other steps are')} open beside it.",) if more > 0 else ()


def _nobody(facts: Situation) -> Sentence:
    is_served = facts.servers.count or facts.servers.is_starting
    return () if is_served else (" No worker serves ", Code(facts.workflow), " now.")


def _label(step: OpenStep) -> Sentence:
    return (f"step {step.seq} ", Code(step.name))


def _types(step: OpenStep) -> Sentence:
    names = step.event_types or (step.name,)
    parts: list[Part] = ["event "]
    for index, name in enumerate(names):
        parts += [" or ", Code(name)] if index else [Code(name)]
    return tuple(parts)


def _running_turn(step: OpenStep) -> str:
    return f", {_turn(step, step.counted)}" if step.attempts > 1 else ""


def _turn(step: OpenStep, number: int) -> str:
    """Name an attempt by its number among those that count: what a dying worker has lost has a budget of its own."""
    of = f" of {step.max_attempts}" if step.max_attempts else ""
    lost = f", not counting {step.lost:,} lost" if step.lost else ""
    return f"attempt {number}{of}{lost}"


def _because(step: OpenStep) -> Sentence:
    return (f" · {isolated(step.error.rstrip('.'))}",) if step.error else ()


def _by(deed: Deed | None) -> Sentence:
    if deed is None:
        return ()
    reason = f": {quoted(deed.reason)}" if deed.reason else ""
    return (f" by {isolated(deed.actor) or 'a program'} ", Moment("ago", deed.at), reason)


def _kind(error: dict[str, object] | None) -> str:
    return str((error or {}).get("type", ""))


def _abort_reason(facts: Situation) -> str:
    return str((facts.error or {}).get("message") or "")


def _error_text(error: dict[str, object] | None) -> str:
    kind, message = (error or {}).get("type") or "an unknown error", (error or {}).get("message")
    # step.fail() says all in its message.
    text = f"{kind}: {message}" if message and kind != "WorkflowFailed" else f"{message or kind}"
    return isolated(text if len(text) <= 300 else text[:299] + "…")


def quoted(text: str) -> str:
    """Quote what somebody wrote, so that it turns only itself around."""
    return f"“{isolated(text)}”"


def _many(count: int, one: str, more: str) -> str:
    return f"{count} {one if count == 1 else more}"
