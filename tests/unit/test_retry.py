"""Options of a step and the delays between its attempts."""

from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.values.errors import (
    InvalidValueError,
    LimitError,
    NonRetryableError,
    StepConfigError,
    StepError,
    StepTimeoutError,
)
from engine.values.retry import MAX_ATTEMPTS, Backoff, StepOptions, backoff_delay, default_delay, is_retryable

S = timedelta(seconds=1)


def test_the_defaults_are_the_contract_s():
    assert StepOptions.make() == StepOptions(
        max_attempts=5,
        delay=S,
        backoff=Backoff.EXPONENTIAL,
        max_delay=300 * S,
        jitter=0.0,
        timeout=600 * S,
        once=False,
        sensitive=False,
    )


def test_a_calls_options_go_over_the_workflows_defaults():
    defaults = StepOptions.make(max_attempts=3, delay="10s")
    merged = defaults.override(delay=2, backoff="linear")
    assert (merged.max_attempts, merged.delay, merged.backoff) == (3, 2 * S, Backoff.LINEAR)
    assert defaults.delay == 10 * S
    assert defaults.override() is defaults


def test_retries_without_a_backoff_are_exponential():
    """CF-19."""
    assert StepOptions.make(max_attempts=3, delay="1s").backoff is Backoff.EXPONENTIAL


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [
        ("max_attempts", 0, "It must be an integer from 1"),
        ("max_attempts", -1, "It must be an integer from 1"),
        ("max_attempts", 1001, "It must be an integer from 1"),
        ("max_attempts", 10**9, "It must be an integer from 1"),
        ("max_attempts", True, "It must be an integer from 1"),
        ("max_attempts", 3.0, "It must be an integer from 1"),
        ("max_attempts", None, "It must be an integer from 1"),
        ("delay", "soon", 'The delay "soon" is not a duration'),
        ("delay", -1, 'The delay "-1" is negative'),
        ("delay", None, "The delay (NoneType) is not a timedelta"),
        ("delay", "2 days", "The time between two attempts is limited to one day"),
        ("max_delay", "2 days", "The time between two attempts is limited to one day"),
        ("max_delay", lambda ctx, error: 1, "The delay (function) is not a timedelta"),
        ("backoff", "fast", 'It must be "exponential", "linear" or "constant"'),
        ("backoff", 1e308, 'It must be "exponential", "linear" or "constant"'),
        ("backoff", None, 'It must be "exponential", "linear" or "constant"'),
        ("jitter", 2, "It must be a number from 0 to 1"),
        ("jitter", -0.1, "It must be a number from 0 to 1"),
        ("jitter", float("nan"), "It must be a number from 0 to 1"),
        ("jitter", True, "It must be a number from 0 to 1"),
        ("timeout", 0, "It must be longer than 0"),
        ("timeout", "soon", 'The timeout "soon" is not a duration'),
        ("timeout", None, "The timeout (NoneType) is not a timedelta"),
        ("once", 1, "It must be True or False"),
        ("sensitive", "yes", "It must be True or False"),
        ("limit", 3, 'There is no such option. Did you mean "max_attempts"?'),
        ("max_attemps", 3, 'There is no such option. Did you mean "max_attempts"?'),
    ],
)
def test_a_wrong_option_is_refused_with_its_rule(option, value, rule):
    """CF-20."""
    with pytest.raises(StepConfigError) as refused:
        StepOptions.make('Step "charge"', **{option: value})
    assert (refused.value.option, rule in refused.value.rule) == (option, True)
    assert str(refused.value).startswith(f'Step "charge": "{option}" is ')


def test_a_long_delay_is_not_shortened_by_a_limit_that_nobody_set():
    assert StepOptions.make(delay="1h").max_delay == timedelta(hours=1)
    assert StepOptions.make(delay="1h", max_delay="1m").max_delay == timedelta(minutes=1)
    assert StepOptions.make(delay="1s").max_delay == timedelta(minutes=5)


@pytest.mark.parametrize(
    ("backoff", "seconds"),
    [("exponential", [2, 4, 8, 16, 30, 30]), ("linear", [2, 4, 6, 8, 10, 12]), ("constant", [2] * 6)],
)
def test_the_delays_of_a_backoff(backoff, seconds):
    """LC-10: d·2^(a-1), d·a, d; and never over max_delay."""
    options = StepOptions.make(delay="2s", backoff=backoff, max_delay="30s")
    assert [backoff_delay(options, attempt) for attempt in range(1, 7)] == [n * S for n in seconds]


def test_a_delay_function_must_be_called_first():
    with pytest.raises(TypeError, match="call it and use its result"):
        backoff_delay(StepOptions.make(delay=lambda ctx, error: 10), 1)


def test_without_an_answer_of_the_delay_function_the_default_delay_backs_off():
    options = StepOptions.make(delay=lambda ctx, error: 10, backoff="linear", max_delay="2s")
    assert [default_delay(options, n) for n in (1, 2, 3)] == [S, 2 * S, 2 * S]


def test_no_attempt_overflows():
    options = StepOptions.make(delay="1 day", max_delay="1 day", max_attempts=MAX_ATTEMPTS)
    assert backoff_delay(options, MAX_ATTEMPTS) == timedelta(days=1)
    assert backoff_delay(StepOptions.make(delay=0), MAX_ATTEMPTS) == timedelta(0)
    assert backoff_delay(options, 10**9) == timedelta(days=1)


@given(
    st.integers(1, MAX_ATTEMPTS),
    st.floats(0, 1),
    st.floats(0, 86_400),
    st.sampled_from(Backoff),
    st.integers(),
)
def test_jitter_stays_within_its_part_of_the_delay(attempt, jitter, delay, backoff, seed):
    options = StepOptions.make(delay=delay, jitter=jitter, backoff=backoff, max_delay="1 day")
    exact = backoff_delay(options, attempt)
    varied = backoff_delay(options, attempt, rng=Random(seed))
    spread = timedelta(microseconds=1 + jitter * (exact / timedelta(microseconds=1)))
    assert max(exact - spread, timedelta(0)) <= varied <= min(exact + spread, timedelta(days=1))


def test_jitter_goes_both_ways():
    options = StepOptions.make(delay="100s", jitter=0.5)
    rng = Random(1)
    delays = [backoff_delay(options, 1, rng=rng) for _ in range(200)]
    assert min(delays) < 60 * S
    assert max(delays) > 140 * S


def test_recorded_options_are_read_back():
    """CF-07: what was recorded stays in force, whatever the code says now."""
    options = StepOptions.make(max_attempts=2, delay="1.5s", jitter=0.25, timeout="250ms", once=True)
    assert StepOptions.from_json(options.to_json(), delay=9 * S) == options


def test_a_recorded_delay_function_is_bound_to_the_present_one():
    def wait(ctx, error):
        return 3

    recorded = StepOptions.make(delay=wait, max_attempts=2).to_json()
    assert recorded["delay"] == "function"
    assert StepOptions.from_json(recorded, delay=wait) == StepOptions.make(delay=wait, max_attempts=2)
    assert StepOptions.from_json(recorded).delay == S


def test_options_of_a_later_version_are_ignored():
    assert StepOptions.from_json({"max_attempts": 2, "rollback": "undo"}) == StepOptions.make(max_attempts=2)


class Declined(NonRetryableError):
    pass


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (ValueError("x"), True),
        (SystemExit(1), True),
        (StepTimeoutError(S), True),
        (NonRetryableError(""), False),
        (Declined("x"), False),
        (InvalidValueError("$", "cyclic", "x"), False),
        (LimitError("output", 2, 1), False),
        (StepError("inner", "ValueError", "x", 2, {}), False),
    ],
)
def test_which_errors_are_tried_again(error, answer):
    """CF-26, CF-91, KC-07: an empty message changes nothing; a nested step without attempts left ends its parent."""
    assert is_retryable(error) is answer


def test_rollback_is_recorded_by_its_options_and_read_back_with_the_codes_functions() -> None:
    def undo(ctx: object) -> None: ...

    options = StepOptions.make(
        rollback=undo, rollback_options={"max_attempts": 9, "delay": "3s"}, atomic=True
    )
    recorded = options.to_json()

    assert recorded["rollback"] == {
        "max_attempts": 9,
        "delay": 3.0,
        "backoff": "exponential",
        "max_delay": 300.0,
        "jitter": 0.0,
        "timeout": 600.0,
        "atomic": True,
    }
    assert StepOptions.from_json(recorded, rollback=undo) == options
    assert StepOptions.from_json(recorded).rollback is None
    assert not {"rollback", "atomic"} & StepOptions.make().to_json().keys()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rollback": "undo"}, "must be a function"),
        ({"rollback_options": {"max_attempts": 2}}, "needs rollback=fn"),
        ({"rollback": print, "rollback_options": {"once": True}}, "not 'once'"),
        ({"rollback": print, "rollback_options": {"max_attempts": 0}}, "integer from 1"),
        ({"rollback": print, "rollback_options": 3}, "mapping of options"),
        ({"atomic": 1}, "True or False"),
    ],
)
def test_wrong_rollback_options_are_refused_by_name(options: dict[str, object], said: str) -> None:
    with pytest.raises(StepConfigError, match=said):
        StepOptions.make('Step "charge"', **options)
