"""The function of a step: its options, its arguments, and the codec of its result."""

from __future__ import annotations

import functools
import inspect
import json
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from engine.declare.defined_step import DefinedStep
from engine.replay.calls.unawaited import check_awaited
from engine.replay.records.history import StepRecord
from engine.replay.records.sensitive import arguments_masked
from engine.values import signatures
from engine.values.errors import InvalidParamsError, StepArgumentsError, StepConfigError
from engine.values.retry import StepOptions, is_option
from engine.values.serialization import Codec, is_local, return_annotation


def options_in_force(record: StepRecord, options: StepOptions) -> StepOptions:
    """Return the options recorded when the step first started, with the functions of the current code."""
    if record.options is None or record.is_final:
        return options
    own = options.rollback_options
    return StepOptions.from_json(
        json.loads(record.options),
        delay=options.delay,
        rollback=options.rollback,
        rollback_delay=None if own is None else own.delay,
    )


def options_json(options: StepOptions) -> str:
    """Return options as they are recorded."""
    return _cached_options_json(_without_functions(options))


def _without_functions(options: StepOptions) -> StepOptions:
    """Replace each function: the text stays the same, and the cache keeps nothing of the handler in memory."""
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


def check_arguments(
    label: str, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Refuse arguments that the function does not accept, before the first attempt."""
    placed, named = signatures.with_context(fn, args, kwargs, None)
    problem = signatures.misfit(fn, placed, named)
    if problem:
        raise StepArgumentsError(label, signatures.shown(fn), len(args) + len(kwargs), problem)


def check_options(what: str, fn: Callable[..., Any], options: dict[str, Any], *, way: str) -> None:
    """Refuse an argument of the function that is given as an option, and say how to pass it: `way`, with its name."""
    for name, value in options.items():
        if not is_option(name) and signatures.takes(fn, name):
            rule = (
                f"It is not an option of a step but an argument of {signatures.shown(fn)}. "
                f"Give it by {way.format(name=name)}."
            )
            raise StepConfigError(name, value, rule, what=what)


def check_is_function(fn: object, operation: str, call: str) -> None:
    """Refuse what is not a function, often the result of one. Raises NotAwaitedError for the result of a step."""
    check_awaited("it was passed to another step", fn)
    if callable(fn):
        return
    kind = "It must be a function"
    if inspect.iscoroutine(fn):
        fn.close()  # or Python would also warn that it was never awaited
        kind = "It is a coroutine"
    rule = f"{kind}. Did you call it? Pass the function itself, and its arguments after it: {call}."
    raise StepConfigError("fn", fn, rule, what=f"Argument of {operation}")


def arguments_of(
    defined: DefinedStep[Any, Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    what: str,
    is_sensitive: bool,
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a reusable step, as the declared types. Raises InvalidParamsError."""
    try:
        return defined.arguments.validate(args, kwargs, what=what)
    except InvalidParamsError as problem:
        if not is_sensitive:
            raise
        raise arguments_masked(problem) from None


def check_is_sync(name: str, fn: Callable[..., Any]) -> None:
    """Refuse an async function as an atomic body."""
    if inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(fn, "__call__", None)):  # noqa: B004
        rule = "It needs a sync function: a transaction is one thread's, and async bodies share the worker's loop."
        raise StepConfigError("atomic", value=True, rule=rule, what=f'Step "{name}"')


def codec_of(fn: Callable[..., Any]) -> Codec:
    """Return the codec of what the function is annotated to return.

    It is cached by function, unless that would keep the function, or what it refers to, in memory.
    """
    function = getattr(fn, "__func__", fn)
    try:
        found = _codecs.get(function)
        if found is None:
            annotation = return_annotation(fn)
            found = Codec.of(annotation)
            if annotation is Any or not is_local(annotation):
                _codecs[function] = found
    except TypeError:  # a callable that cannot be hashed or weakly referenced
        return Codec.of(return_annotation(fn))
    return found


_codecs: weakref.WeakKeyDictionary[Any, Codec] = weakref.WeakKeyDictionary()
