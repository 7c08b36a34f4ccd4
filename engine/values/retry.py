"""The options of a step: their rules, how they merge, and when the next attempt is due."""

import difflib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from enum import StrEnum
from random import Random
from typing import TYPE_CHECKING, Any

from engine.values.durations import parse_duration
from engine.values.errors import (
    InvalidNameError,
    InvalidParamsError,
    InvalidValueError,
    LimitError,
    NonDeterminismError,
    NonRetryableError,
    NotAwaitedError,
    ParkingError,
    StepArgumentsError,
    StepConfigError,
    StepError,
    UnknownWorkflowError,
)
from engine.values.signatures import misfit, shown

if TYPE_CHECKING:
    from engine.values.serialization import JSON

MAX_ATTEMPTS = 1000
MAX_DELAY = timedelta(days=1)
DEFAULT_DELAY = timedelta(seconds=1)
ROLLBACK_OPTIONS = ("max_attempts", "delay", "backoff", "max_delay", "jitter", "timeout", "atomic")
RETRIED_AFTER = (
    "retried_after"  # recorded with the options: the number of attempts when an operator last gave new ones
)
DECISION = "decision"  # recorded with the options: what a person has decided of the step, and who

# Errors that a second attempt cannot fix; a nested step that failed for good would fail again as recorded.
_NOT_RETRIED = (
    NonRetryableError,
    NotAwaitedError,
    InvalidNameError,
    InvalidParamsError,
    InvalidValueError,
    LimitError,
    NonDeterminismError,
    ParkingError,
    StepArgumentsError,
    StepConfigError,
    StepError,
    UnknownWorkflowError,
)

# Called with (StepContext, error); returns the time until the next attempt. May be async.
DelayFunction = Callable[[Any, BaseException], Any]

# Called with a RollbackContext; may be async.
RollbackFunction = Callable[[Any], Any]


class Backoff(StrEnum):
    EXPONENTIAL = "exponential"
    LINEAR = "linear"
    CONSTANT = "constant"


class OnExhausted(StrEnum):
    """What follows when the attempts of a step are used up."""

    FAIL = "fail"
    PAUSE = "pause"


@dataclass(frozen=True, slots=True)
class StepOptions:
    """The options in force for a step. Those recorded at its first start apply to all its attempts."""

    max_attempts: int = 5
    delay: timedelta | DelayFunction = DEFAULT_DELAY
    backoff: Backoff = Backoff.EXPONENTIAL
    max_delay: timedelta = timedelta(minutes=5)
    jitter: float = 0.0
    timeout: timedelta = timedelta(minutes=10)
    once: bool = False
    sensitive: bool = False
    atomic: bool = False
    on_exhausted: OnExhausted = OnExhausted.FAIL
    rollback: RollbackFunction | None = None
    rollback_options: "StepOptions | None" = None  # None: the defaults

    @classmethod
    def make(cls, what: str = "Step options", /, **options: object) -> "StepOptions":
        """Return the defaults with these options, validated. Error messages begin with `what`."""
        return cls().override(what, **options)

    def override(self, what: str = "Step options", /, **options: object) -> "StepOptions":
        """Return these options (a workflow's defaults) with those of a call, validated."""
        if not options:
            return self
        checked: dict[str, Any] = {}
        for option, value in options.items():
            try:
                checked[option] = _READERS[option](value)
            except KeyError:
                raise StepConfigError(option, value, _unknown(option), what=what) from None
            except ValueError as problem:
                raise StepConfigError(option, value, str(problem), what=what) from None
        delay = checked.get("delay")
        if isinstance(delay, timedelta) and "max_delay" not in checked and delay > self.max_delay:
            checked["max_delay"] = (
                delay  # otherwise the default cap would silently shorten the requested delay
            )
        made = replace(self, **checked)
        if made.rollback_options is not None and made.rollback is None:
            rule = "It needs rollback=fn, which is missing."
            raise StepConfigError("rollback_options", options.get("rollback_options"), rule, what=what)
        return made._with_atomic_rollback(what, options.get("rollback_options", self.rollback_options))

    def _with_atomic_rollback(self, what: str, given: object) -> "StepOptions":
        """Make the rollback of an atomic step atomic too, unless it is async or its options say otherwise."""
        own = self.rollback_options
        if isinstance(given, Mapping) and given.get("atomic") and _is_async(self.rollback):
            rule = "An atomic rollback needs a sync function: a transaction belongs to one thread."
            raise StepConfigError("rollback_options", given, rule, what=what)
        says_nothing = given is None or (isinstance(given, Mapping) and "atomic" not in given)
        if not (self.atomic and says_nothing) or self.rollback is None or _is_async(self.rollback):
            return self
        return replace(self, rollback_options=replace(own or StepOptions(), atomic=True))

    def copy(self) -> "StepOptions":
        own = self.rollback_options
        return replace(self, rollback_options=None if own is None else own.copy())

    def to_json(self) -> "dict[str, JSON]":
        """Return the options as they are recorded: durations in seconds, a delay function as `"function"`.

        `atomic`, `on_exhausted` and `rollback`, with the rollback's own options, are present only if the step has them.
        """
        recorded: dict[str, JSON] = {
            "max_attempts": self.max_attempts,
            "delay": self.delay.total_seconds() if isinstance(self.delay, timedelta) else "function",
            "backoff": self.backoff.value,
            "max_delay": self.max_delay.total_seconds(),
            "jitter": self.jitter,
            "timeout": self.timeout.total_seconds(),
            "once": self.once,
            "sensitive": self.sensitive,
        }
        if self.atomic:
            recorded["atomic"] = True
        if self.on_exhausted is OnExhausted.PAUSE:
            recorded["on_exhausted"] = self.on_exhausted.value
        if self.rollback is not None:
            own = (self.rollback_options or StepOptions()).to_json()
            recorded["rollback"] = {option: own[option] for option in ROLLBACK_OPTIONS if option in own}
        return recorded

    @classmethod
    def from_json(
        cls,
        data: "Mapping[str, JSON]",
        *,
        delay: timedelta | DelayFunction | None = None,
        rollback: RollbackFunction | None = None,
        rollback_delay: timedelta | DelayFunction | None = None,
    ) -> "StepOptions":
        """Read recorded options. The functions come from the current code, and are used only if one was recorded."""
        known: dict[str, object] = {option: value for option, value in data.items() if option in _READERS}
        if known.get("delay") == "function":
            known["delay"] = cls().delay if delay is None else delay
        own = known.pop("rollback", None)
        if rollback is not None and isinstance(own, Mapping):
            known["rollback"] = rollback
            known["rollback_options"] = cls.from_json(own, delay=rollback_delay)
        return cls().override("Recorded options", **known)


def backoff_delay(
    options: StepOptions, attempt: int, *, base: timedelta | None = None, rng: Random | None = None
) -> timedelta:
    """Return how long to wait after `attempt` (from 1) failed; between 0 and `max_delay`, jitter included.

    `base` replaces the options' delay if that is a function. The result of a delay function is used as it is, never
    as a base.
    """
    if base is None:
        if not isinstance(options.delay, timedelta):
            raise TypeError("The delay is a function: call it and use its result.")
        base = options.delay
    limit = _micros(options.max_delay)
    micros = min(_micros(base) * _factor(options.backoff, attempt), limit)
    if options.jitter and rng is not None:
        micros = min(round(micros * (1 + options.jitter * rng.uniform(-1, 1))), limit)
    return timedelta(microseconds=max(micros, 0))


def default_delay(options: StepOptions, attempt: int, *, rng: Random | None = None) -> timedelta:
    """Return how long to wait if the delay function has not answered: as if there were none."""
    return backoff_delay(options, attempt, base=DEFAULT_DELAY, rng=rng)


def is_option(name: str) -> bool:
    """Return whether steps have an option of that name."""
    return name in _READERS


def is_retryable(error: BaseException) -> bool:
    """Return whether a further attempt may help: not after a NonRetryableError or an unstorable value."""
    return not any(isinstance(one, _NOT_RETRIED) for one in _each(error))


def _each(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, or the errors of a group: a TaskGroup raises its tasks' errors as one."""
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if isinstance(one, BaseExceptionGroup):
            waiting.extend(one.exceptions)
        else:
            yield one


def _is_async(fn: object) -> bool:
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(fn, "__call__", None))  # noqa: B004


def _factor(backoff: Backoff, attempt: int) -> int:
    if backoff is Backoff.EXPONENTIAL:
        return 1 << min(attempt - 1, MAX_ATTEMPTS)  # an integer, so that it never overflows
    return attempt if backoff is Backoff.LINEAR else 1


def _micros(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1)


def _read_max_attempts(value: object) -> int:
    if type(value) is not int or not 1 <= value <= MAX_ATTEMPTS:
        raise ValueError(f"It must be an integer from 1 (no retry) to {MAX_ATTEMPTS:,}.")
    return value


def _read_delay(value: object) -> timedelta | DelayFunction:
    if callable(value):
        return _called_with(value, "ctx, error")
    return _read_pause(value)


def _read_pause(value: object) -> timedelta:
    delay = parse_duration(value, what="delay")  # type: ignore[arg-type]  # it refuses every other type itself
    if delay > MAX_DELAY:
        raise ValueError("The time between two attempts is limited to one day.")
    return delay


def _read_timeout(value: object) -> timedelta:
    timeout = parse_duration(value, what="timeout")  # type: ignore[arg-type]  # it refuses every other type itself
    if not timeout:
        raise ValueError("It must be longer than 0: otherwise no body could end in time.")
    return timeout


def _read_function(value: object) -> RollbackFunction | None:
    if value is None:
        return None
    if callable(value):
        return _called_with(value, "ctx")
    raise ValueError(
        "It must be a function that takes a RollbackContext. Did you call it? Pass the function itself."
    )


def _called_with(fn: Callable[..., Any], parameters: str) -> Callable[..., Any]:
    """Check that the function accepts these positional arguments."""
    problem = misfit(fn, parameters.split(", "))
    if problem:
        raise ValueError(f"It is called as fn({parameters}), which {shown(fn)} does not accept: {problem}.")
    return fn


def _read_rollback_options(value: object) -> StepOptions | None:
    if value is None or isinstance(value, StepOptions):
        return value
    if not isinstance(value, Mapping):
        rule = "It must be a mapping of options, such as {'max_attempts': 10}."
        raise ValueError(rule)  # noqa: TRY004 - every reader raises ValueError
    for option in value:
        if option not in ROLLBACK_OPTIONS:
            raise ValueError(f"A rollback takes {', '.join(ROLLBACK_OPTIONS)}; not {option!r}.")
    return StepOptions.make("rollback_options", **value)


def _read_backoff(value: object) -> Backoff:
    if isinstance(value, str) and value in list(Backoff):
        return Backoff(value)
    raise ValueError('It must be "exponential", "linear" or "constant".')


def _read_on_exhausted(value: object) -> OnExhausted:
    if isinstance(value, str) and value in list(OnExhausted):
        return OnExhausted(value)
    raise ValueError('It must be "fail" or "pause".')


def _read_jitter(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError("It must be a number from 0 to 1: the fraction by which the delay varies.")
    return float(value)


def _read_flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("It must be True or False.")  # noqa: TRY004 - every reader raises ValueError
    return value


_READERS: dict[str, Callable[[object], object]] = {
    "max_attempts": _read_max_attempts,
    "delay": _read_delay,
    "backoff": _read_backoff,
    "max_delay": _read_pause,
    "jitter": _read_jitter,
    "timeout": _read_timeout,
    "once": _read_flag,
    "sensitive": _read_flag,
    "atomic": _read_flag,
    "on_exhausted": _read_on_exhausted,
    "rollback": _read_function,
    "rollback_options": _read_rollback_options,
}

# Option names of other systems.
_TWINS = {"limit": "max_attempts", "retries": "max_attempts", "attempts": "max_attempts"}


def _unknown(option: str) -> str:
    near = _TWINS.get(option) or next(iter(difflib.get_close_matches(option, _READERS, n=1)), None)
    hint = f' Did you mean "{near}"?' if near else ""
    known = ", ".join(field.name for field in fields(StepOptions))
    return f"There is no such option.{hint} A step takes {known}."
