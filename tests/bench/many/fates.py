"""What becomes of an instance: how far it gets, and the state in which it is now."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType

from tests.bench.many import failures, people
from tests.bench.many.flows import BURST_STEP, Call
from tests.bench.many.life import HOUR, SECOND, Life
from tests.bench.many.lines import stored

WEEK = 7 * 24 * HOUR
LEASE = 60 * SECOND

Fate = Callable[[Life, tuple[Call, ...]], bool]


def complete(life: Life, calls: tuple[Call, ...]) -> bool:
    for call in calls:
        life.take(call)
    _return(life)
    return True


def complete_after_failures(life: Life, calls: tuple[Call, ...]) -> bool:
    """Fail one body once or twice, and complete."""
    chosen = _a_body(life, calls)
    kind = _passing(life)
    for index, call in enumerate(calls):
        if index == chosen:
            life.take_after_failures(call, kind, life.rng.randint(1, 2))
        else:
            life.take(call)
    _return(life)
    return True


def err(life: Life, calls: tuple[Call, ...]) -> bool:
    """Fail one body for good, and roll back what has a rollback."""
    bodies = [index for index, call in enumerate(calls) if call.kind == "do" and not call.is_undone]
    _err_at(life, calls, life.rng.choice(bodies), _deadly(life))
    return True


def err_in_burst(life: Life, calls: tuple[Call, ...]) -> bool:
    """Fail like many others of the last hour."""
    names = [call.name for call in calls]
    _err_at(life, calls, names.index(BURST_STEP), failures.BURST)
    return True


def restart(life: Life, calls: tuple[Call, ...]) -> bool:
    """Fail one body for good, be restarted from there, and complete."""
    if any(call.is_undone for call in calls):
        return False  # what is rolled back cannot be kept
    kinds = [call.kind for call in calls]
    # The key of a child that begins after the restart would be far from its time.
    begins_at = kinds.index("child") if "child" in kinds else 0
    bodies = [index for index, kind in enumerate(kinds) if kind == "do" and index >= begins_at]
    if not bodies:
        return False
    chosen = life.rng.choice(bodies)
    for call in calls[:chosen]:
        life.take(call)
    error = life.give_up(calls[chosen], _deadly(life))
    life.restart(chosen, error)
    for call in calls[chosen:]:
        life.take(call)
    _return(life)
    return True


def retry(life: Life, calls: tuple[Call, ...]) -> bool:
    """Wait for the next attempt of a body."""
    chosen = _a_body(life, calls)
    for call in calls[:chosen]:
        life.take(call)
    due = life.world.now + life.rng.randint(60, 3600) * SECOND
    kind = _passing(life)
    while kind.status == "lost":  # that is repeated at once
        kind = _passing(life)
    life.back_off(calls[chosen], kind, life.rng.randint(1, 2), due)
    life.close("waiting", waiting_for="retry", wake=due)
    return True


def sleep(life: Life, calls: tuple[Call, ...]) -> bool:
    due = _park(life, calls, "sleep")
    if due is None:
        return False
    if life.rng.random() < 0.05:  # nothing waits for it
        life.receive("note-added", f'{{"text":"note {life.number}"}}', "", life.at, None)
    life.close("waiting", waiting_for="sleep", wake=due)
    return True


def wait(life: Life, calls: tuple[Call, ...]) -> bool:
    """Wait for an event or a child."""
    chosen = _one_of(life, calls, "child") if life.rng.random() < 0.3 else None
    if chosen is not None:
        for call in calls[:chosen]:
            life.take(call)
        life.wait_for_child(calls[chosen])
        life.close("waiting", waiting_for="child")
        return True
    return _wait_for_event(life, calls, "event")


def ask(life: Life, calls: tuple[Call, ...]) -> bool:
    """Wait for an answer."""
    return _wait_for_event(life, calls, "request")


def pause(life: Life, calls: tuple[Call, ...]) -> bool:
    """Be paused while it waits: by a person, or by the engine because the code has changed."""
    if _park(life, calls, "event") is None:
        return False
    life.at += (life.world.now - life.at) >> 1
    if life.rng.random() < 0.2:
        life.close("paused", pause_reason=_other_code(life))
        return True
    reason = f"The customer of {life.id} has called."
    life.audit("pause", life.rng.choice(people.OPERATORS), life.at, "waiting", "paused", reason)
    life.close("paused")
    return True


def terminate(life: Life, calls: tuple[Call, ...]) -> bool:
    """Be terminated while it waits."""
    chosen = _one_of(life, calls, *(("request",) if life.key % 2 else ()), "event")
    if chosen is None:
        return False
    for call in calls[:chosen]:
        life.take(call)
    at = life.at + int(life.rng.random() * min(40 * HOUR, life.world.now - life.at))
    life.cancel(calls[chosen], at)
    life.fence += 1
    life.audit(
        "terminate", life.rng.choice(people.OPERATORS), at, "waiting", "terminated", "No longer needed."
    )
    life.close("terminated", ended=True)
    return True


def run(life: Life, calls: tuple[Call, ...]) -> bool:
    """Be held by a worker that runs a body."""
    chosen = _a_body(life, calls)
    for call in calls[:chosen]:
        life.take(call)
    life.hold(calls[chosen])
    life.close("running", wake=life.world.now + LEASE, is_held=True)
    return True


def queue(life: Life, calls: tuple[Call, ...]) -> bool:
    """Wait for a worker, not for long."""
    life.close("queued", wake=max(life.created, life.world.now - 10 * SECOND))
    return True


# How many of a thousand instances that are younger than a week, of those that fail and of the others; the rest of those
# that fail complete after all, the rest of the others complete at once.
FAILING: Mapping[Fate, int] = MappingProxyType({err: 340, retry: 90})
FAILING_LONG_AGO: Mapping[Fate, int] = MappingProxyType({err: 340, restart: 40})
RECENT: Mapping[Fate, int] = MappingProxyType({sleep: 50, wait: 50, ask: 120, pause: 30, terminate: 10})
LONG_AGO: Mapping[Fate, int] = MappingProxyType({terminate: 12})


def draw(life: Life, *, fails: bool) -> Fate:
    is_recent = life.world.now - life.created < WEEK
    if fails:
        shares, rest = FAILING if is_recent else FAILING_LONG_AGO, complete_after_failures
    else:
        shares, rest = RECENT if is_recent else LONG_AGO, complete
    drawn = life.rng.random() * 1000
    for fate, share in shares.items():
        drawn -= share
        if drawn < 0:
            return fate
    return rest


def _one_of(life: Life, calls: tuple[Call, ...], *kinds: str) -> int | None:
    found = [index for index, call in enumerate(calls) if call.kind in kinds]
    return life.rng.choice(found) if found else None


def _a_body(life: Life, calls: tuple[Call, ...]) -> int:
    return life.rng.choice([index for index, call in enumerate(calls) if call.kind == "do"])


def _park(life: Life, calls: tuple[Call, ...], kind: str) -> int | None:
    """Go to a wait of this kind, which ends some day; return when, or None if there is no such wait."""
    chosen = _one_of(life, calls, kind)
    if chosen is None:
        return None
    for call in calls[:chosen]:
        life.take(call)
    due = life.world.now + life.rng.randint(3600, 6 * 86_400) * SECOND
    life.park(calls[chosen], due)
    return due


def _wait_for_event(life: Life, calls: tuple[Call, ...], kind: str) -> bool:
    due = _park(life, calls, kind)
    if due is None:
        return False
    life.close("waiting", waiting_for="event", wake=due)
    return True


def _return(life: Life) -> None:
    life.close("complete", output=f'{{"id":"{life.id}","done":{life.seq}}}', ended=True)


def _err_at(life: Life, calls: tuple[Call, ...], index: int, kind: failures.Kind) -> None:
    for call in calls[:index]:
        life.take(call, is_undone=True)
    error = life.give_up(calls[index], kind)
    life.undo()
    life.close("errored", error=error, ended=True)


def _deadly(life: Life) -> failures.Kind:
    """Return an error that ends an instance: a lost attempt alone does not."""
    while (kind := failures.draw(life.rng)).status == "lost":
        pass
    return kind


def _passing(life: Life) -> failures.Kind:
    """Return an error that is retried."""
    while (kind := failures.draw(life.rng)).is_final:
        pass
    return kind


def _other_code(life: Life) -> str:
    codes = {"recorded": life.flow.code, "current": life.flow.code[::-1]}
    message = (
        f'The code of workflow "{life.flow.name}" has changed since this instance started. '
        f"Recorded: {codes['recorded']}. Now: {codes['current']}. "
        "Accept the new code, or deploy the old code again; the instance then continues."
    )
    details = {"workflow": life.flow.name, **codes}
    return stored(
        json.dumps({"type": "CodeChangedError", "message": message, "details": details, "traceback": ""})
    )
