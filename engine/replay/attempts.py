"""The attempts of a `do` step: begin, start, settle, back off, give up."""

from __future__ import annotations

import functools
import json
from collections import deque
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from engine.errors import ErrorRecord, StepTimeoutError, WorkerLostError
from engine.replay import cancelling, outcomes, raised
from engine.replay.history import AttemptRecord, LogLine, StepRecord
from engine.replay.sensitive import MASK
from engine.retry import StepOptions, backoff_delay, default_delay, is_retryable
from engine.serialization import Stored
from engine.states import AttemptStatus, StepStatus

if TYPE_CHECKING:
    from engine.replay.cycle import Cycle
    from engine.replay.operation import DoOperation

MAX_CONVICTIONS = 3  # losses of a step that was alone in its worker
MICROSECOND = timedelta(microseconds=1)
_rng = Random()  # noqa: S311 - jitter, no secret


def begin(cycle: Cycle, operation: DoOperation) -> None:
    """Go on from what is recorded: a first attempt, the next one after a loss, or the rest of a back-off."""
    record = operation.record
    if not record.is_recorded:
        record.options = _options_json(operation.options)
        record.sensitive = operation.options.sensitive
    close_lost(cycle, record)
    if record.convicted >= MAX_CONVICTIONS:
        error = WorkerLostError(operation.label, record.convicted)
        _conclude(
            cycle,
            operation,
            error=outcomes.error_json(error, step=operation.label, attempts=record.attempts),
        )
    elif record.status == StepStatus.WAITING and record.wake_us is None:
        _ask_again(cycle, operation)
    elif record.status == StepStatus.WAITING:
        cycle.wait_until(operation, record.wake_us, is_new=False)
    else:
        start(cycle, operation)


def close_lost(cycle: Cycle, record: StepRecord) -> None:
    """Close the attempt that a dead worker left behind. It spends no attempt, and convicts the step only if alone."""
    attempt = cycle.history.running.pop(record.seq, None)
    if attempt is None:
        return
    attempt.status = AttemptStatus.LOST
    attempt.finished_us = cycle.host.now_us()
    record.lost += 1
    record.convicted += attempt.alone
    cycle.record(record, attempt)


def close_left_behind(cycle: Cycle) -> None:
    """Close what a dead worker left behind, where this one has not gone on with it: it leaves, maybe for long."""
    for record in cycle.history.steps.values():
        if record.seq in cycle.history.running:
            close_lost(cycle, record)
            wait_for_next(cycle, record)
        for attempt in cycle.history.undoing.get(record.seq, ()):
            if attempt.status == AttemptStatus.RUNNING:
                finish(cycle, attempt, AttemptStatus.LOST)
                cycle.record(record, attempt)


def wait_for_next(cycle: Cycle, record: StepRecord) -> None:
    """Say of a step whose attempt was lost that it waits: whoever goes on with it makes the next attempt at once."""
    if record.status == StepStatus.RUNNING:
        record.status, record.wake_us = StepStatus.WAITING, cycle.host.now_us()


def start(cycle: Cycle, operation: DoOperation) -> None:
    """Record an attempt; its body runs once that is committed."""
    # Where the cycle is leaving, whoever takes the instance next starts it, unless a pause is withdrawn before.
    if not operation.may_run or (cycle.isolated and not operation.is_alone):
        cycle.deferred.append(operation)
        return
    record = operation.record
    record.attempts += 1
    record.status = StepStatus.RUNNING
    record.wake_us = None
    now = cycle.host.now_us()
    is_alone = cycle.isolated and cycle.host.holds_only(cycle)
    if not is_alone:
        run_beside(cycle)
    attempt = AttemptRecord(record.seq, record.attempts, cycle.host.name, now, alone=is_alone)
    cycle.has_lone_body = is_alone
    cycle.bodies[record.seq] = attempt
    if record.is_nested:
        cycle.writes.committed.append(lambda: _started(cycle, operation, attempt, left_out=False))
    else:
        cycle.writes.starts.add(record.seq)
        cycle.writes.then.append(lambda left_out: _started(cycle, operation, attempt, left_out=left_out))
    cycle.record(record, attempt)


def _started(cycle: Cycle, operation: DoOperation, attempt: AttemptRecord, *, left_out: bool) -> None:
    if left_out:  # there is no such attempt then, even if it has been cancelled since
        cycle.writes.attempts.pop((attempt.step_seq, attempt.number), None)
        operation.record.attempts -= 1
    if cycle.bodies.get(attempt.step_seq) is not attempt:
        return
    if left_out:
        del cycle.bodies[attempt.step_seq]
        cycle.host.poke(cycle)
    elif not operation.may_run:
        cancel(cycle, attempt.step_seq, attempt)
        cycle.record(operation.record)
        cycle.deferred.append(operation)
        cycle.host.poke(cycle)
    elif operation.is_called_off:
        cancel(cycle, attempt.step_seq, attempt)
        cancelling.call_off(cycle, operation)
    else:
        cycle.host.run_body(cycle, operation, attempt)


def settle(
    cycle: Cycle,
    operation: DoOperation,
    attempt: AttemptRecord,
    *,
    stored: Stored | None = None,
    error: BaseException | None = None,
) -> None:
    """Take in how a body ended. A late result, of an attempt that is over, is refused here."""
    if cycle.bodies.get(attempt.step_seq) is not attempt:
        return
    forget_body(cycle, attempt)
    if cycle.is_ending:
        finish(cycle, attempt, AttemptStatus.CANCELLED)
        cycle.record(operation.record, attempt)
    elif operation.options.atomic and operation.record.seq not in cycle.open:
        # The handler gave it up when it was about to be committed, which came to nothing.
        finish(cycle, attempt, AttemptStatus.CANCELLED)
        cycle.writes.attempts[attempt.step_seq, attempt.number] = attempt
        cancelling.cancel_record(cycle, operation.record)
    elif error is None:
        finish(cycle, attempt, AttemptStatus.COMPLETE)
        cycle.writes.attempts[attempt.step_seq, attempt.number] = attempt
        operation.live = stored
        _say_dropped(cycle, operation, attempt, stored)
        _conclude(cycle, operation, output=stored.text if stored is not None else "null")
    else:
        _fail(cycle, operation, attempt, error)
    start_deferred(cycle)
    cycle.host.poke(cycle)


def take_in(
    cycle: Cycle, operation: DoOperation, attempt: AttemptRecord, stored: Stored, finished_us: int
) -> None:
    """Take in that an atomic body has recorded its success itself, whatever the cycle is about meanwhile."""
    if cycle.bodies.get(attempt.step_seq) is not attempt:
        return
    forget_body(cycle, attempt)
    attempt.status, attempt.finished_us = AttemptStatus.COMPLETE, finished_us
    operation.live = stored
    _say_dropped(cycle, operation, attempt, stored)
    cycle.take_in(operation, output=stored.text, finished_us=finished_us)
    start_deferred(cycle)
    cycle.host.poke(cycle)


def _say_dropped(cycle: Cycle, operation: DoOperation, attempt: AttemptRecord, stored: Stored | None) -> None:
    """Leave a line in the log where the output had keys for which its type has no place."""
    if stored is not None and stored.dropped:
        where = MASK if operation.options.sensitive else stored.dropped
        line = outcomes.log_line("warning", outcomes.not_kept(where), {}, cycle.host.now_us())
        cycle.add_log(LogLine(*line, step_seq=attempt.step_seq, attempt=attempt.number))


def _fail(cycle: Cycle, operation: DoOperation, attempt: AttemptRecord, error: BaseException) -> None:
    record = operation.record
    finish(
        cycle,
        attempt,
        AttemptStatus.TIMED_OUT if isinstance(error, StepTimeoutError) else AttemptStatus.ERRORED,
    )
    kept = ErrorRecord.of(error)
    attempt.error = outcomes.kept_json(kept, step=operation.label, attempts=record.attempts)
    record.spent += 1
    cycle.record(record, attempt)
    interrupt_inner(cycle, operation)
    if not is_retryable(error) or record.spent >= operation.options.max_attempts:
        _conclude(cycle, operation, error=attempt.error)
    elif callable(operation.options.delay):
        attempt.error = raised.with_class(attempt.error, error)
        record.status = StepStatus.WAITING
        _ask(cycle, operation, attempt, error)
    else:
        _wait(cycle, operation, attempt, backoff_delay(operation.options, record.spent, rng=_rng))


def _ask(cycle: Cycle, operation: DoOperation, attempt: AttemptRecord, error: BaseException) -> None:
    """Ask the delay function, once it is recorded that it has not answered: waiting, and for no moment."""
    record = operation.record
    record.wake_us = None
    cycle.history.unasked[record.seq] = attempt
    cycle.delaying.add(record.seq)
    if cycle.isolated:  # its worker may have died of the function: the next one shall not
        record.wake_us = after(attempt, default_delay(operation.options, record.spent, rng=_rng))
    cycle.writes.committed.append(lambda: _ask_now(cycle, operation, attempt, error))
    cycle.record(record)


def _ask_now(cycle: Cycle, operation: DoOperation, attempt: AttemptRecord, error: BaseException) -> None:
    if operation.record.seq in cycle.delaying:
        cycle.host.ask_delay(cycle, operation, attempt, error)


def _ask_again(cycle: Cycle, operation: DoOperation) -> None:
    """Go on where the function had not answered: an earlier worker died, or left."""
    record = operation.record
    attempt = cycle.history.unasked.get(record.seq)
    if attempt is None:
        start(cycle, operation)
    elif callable(operation.options.delay):
        _ask(cycle, operation, attempt, raised.again(attempt.error, operation.label))
    else:  # the code has changed
        _wait(cycle, operation, attempt, backoff_delay(operation.options, record.spent, rng=_rng))


def back_off(
    cycle: Cycle, operation: DoOperation, attempt: AttemptRecord, delay: timedelta | None = None
) -> None:
    """Take in what the delay function said: its answer as it is, or the default where there is none."""
    if _is_answered(cycle, operation):
        if delay is None:
            delay = default_delay(operation.options, operation.record.spent, rng=_rng)
        _wait(cycle, operation, attempt, delay)
        cycle.host.poke(cycle)


def give_up(
    cycle: Cycle, operation: DoOperation, attempt: AttemptRecord, error: BaseException | None = None
) -> None:
    """Take in that the delay function wants no further attempt, or has failed: then with that error."""
    if _is_answered(cycle, operation):
        record, text = operation.record, attempt.error
        if error is not None:
            text = outcomes.error_json(error, step=operation.label, attempts=record.attempts)
        _conclude(cycle, operation, error=text)
        cycle.host.poke(cycle)


def _is_answered(cycle: Cycle, operation: DoOperation) -> bool:
    """Note that the function was asked. False for an answer that nobody waits for any more."""
    seq = operation.record.seq
    if seq not in cycle.delaying or cycle.open.get(seq) is not operation:
        return False
    cycle.delaying.discard(seq)
    cycle.history.unasked.pop(seq, None)
    return True


def _wait(cycle: Cycle, operation: DoOperation, attempt: AttemptRecord, delay: timedelta) -> None:
    """Back off, counted from the failure, so that a crash in between makes it neither longer nor shorter."""
    operation.record.status = StepStatus.WAITING
    cycle.wait_until(operation, after(attempt, delay))


def after(attempt: AttemptRecord, delay: timedelta) -> int:
    """Return the moment so long after the attempt ended."""
    return (attempt.finished_us or attempt.started_us) + delay // MICROSECOND


def _conclude(
    cycle: Cycle, operation: DoOperation, *, output: str | None = None, error: str | None = None
) -> None:
    """The step has ended for good; what an earlier attempt began inside it, and the last one did not want, too."""
    if cycle.history.inner:
        cancelling.cancel_inner(cycle, operation)
    cycle.conclude(operation, output=output, error=error)


def interrupt_inner(cycle: Cycle, operation: DoOperation) -> None:
    """The attempt has failed: stop the steps that its body has called. They spend nothing, and are gone on with."""
    if not cycle.history.inner:
        return
    for record in list(operation.inner()):
        if not record.is_final:
            _interrupt(cycle, record)


def _interrupt(cycle: Cycle, record: StepRecord) -> None:
    cycle.delaying.discard(record.seq)
    attempt = cycle.bodies.get(record.seq)
    if attempt is not None:
        cycle.host.cancel_body(cycle, attempt)
        cancel(cycle, record.seq, attempt)
        cycle.record(record)
    operation = cycle.open.pop(record.seq, None)
    if operation is not None:
        operation.let_go()
    if not record.attempts:  # it was kept back while isolated: there is no such step
        cycle.history.forget_inner(record)
        cycle.step_count.forget_nested()


def cancel(cycle: Cycle, seq: int, attempt: AttemptRecord) -> None:
    """Close an attempt whose worker drains or whose instance is stopped: it spends nothing."""
    del cycle.bodies[seq]
    finish(cycle, attempt, AttemptStatus.CANCELLED)
    cycle.writes.attempts[seq, attempt.number] = attempt


def drop(cycle: Cycle, record: StepRecord) -> bool:
    """The handler has cancelled the step: stop its body and refuse its result. False if it is too late for that."""
    cycle.delaying.discard(record.seq)
    attempt = cycle.bodies.get(record.seq)
    if attempt is not None:
        if not cycle.host.cancel_body(cycle, attempt):
            return False
        cancel(cycle, record.seq, attempt)
        start_deferred(cycle)
    return True


def finish(cycle: Cycle, attempt: AttemptRecord, status: AttemptStatus) -> None:
    attempt.status = status
    attempt.finished_us = cycle.host.now_us()


def _options_json(options: StepOptions) -> str:
    return _cached_options_json(_without_functions(options))


def _without_functions(options: StepOptions) -> StepOptions:
    """Put a stand-in for each function: the text is the same, and the cache holds nothing of the handler's."""
    own, changed = options.rollback_options, dict[str, Any]()
    if callable(options.delay):
        changed["delay"] = _stand_in
    if options.rollback is not None:
        changed["rollback"] = _stand_in
        changed["rollback_options"] = None if own is None else _without_functions(own)
    return replace(options, **changed) if changed else options


def _stand_in(*_: Any) -> None:
    raise AssertionError("nobody calls this")


@functools.lru_cache(maxsize=1024)
def _cached_options_json(options: StepOptions) -> str:
    return json.dumps(options.to_json())


def forget_body(cycle: Cycle, attempt: AttemptRecord) -> None:
    """A body has ended and the worker lives: the instance need not run alone any more."""
    del cycle.bodies[attempt.step_seq]
    if cycle.isolated:
        acquit(cycle)
    if not cycle.bodies:
        cycle.host.rested(cycle)


def acquit(cycle: Cycle) -> None:
    """The instance has shown that it does not kill its worker: others may run beside it."""
    cycle.isolated = False
    cycle.host.acquitted(cycle)


def run_beside(cycle: Cycle) -> None:
    """Another body begins in this worker: whichever kills it, one that runs by now was not alone."""
    if not cycle.has_lone_body:
        return
    cycle.has_lone_body = False
    for attempt in cycle.bodies.values():
        attempt.alone = False
        cycle.writes.attempts[attempt.step_seq, attempt.number] = attempt
    cycle.host.flush(cycle)


def start_deferred(cycle: Cycle) -> None:
    """Start what was kept back, as far as it may begin now."""
    waiting, cycle.deferred = cycle.deferred, deque()
    for operation in waiting:
        if cycle.open.get(operation.record.seq) is operation:
            start(cycle, operation)
