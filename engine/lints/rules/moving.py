"""E104 and E105: the time, random numbers and fresh IDs, in step names and between steps."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from engine.lints.code import Code
from engine.lints.finding import Found

NOW, UUID, RANDOM = "step.now()", "step.uuid4()", "step.random"
SLEEP = "await step.sleep(name, duration)"

TWINS = {
    **dict.fromkeys(
        (
            "time.time",
            "time.time_ns",
            "time.monotonic",
            "time.monotonic_ns",
            "time.perf_counter",
            "time.perf_counter_ns",
            "time.process_time",
            "datetime.datetime.now",
            "datetime.datetime.utcnow",
            "datetime.datetime.today",
            "datetime.date.today",
            "django.utils.timezone.now",
            "django.utils.timezone.localdate",
            "pendulum.now",
            "pendulum.today",
            "arrow.now",
            "arrow.utcnow",
        ),
        NOW,
    ),
    **dict.fromkeys(("time.sleep", "asyncio.sleep"), SLEEP),
    **dict.fromkeys(("uuid.uuid1", "uuid.uuid4", "uuid.uuid6", "uuid.uuid7"), UUID),
    **dict.fromkeys(("os.urandom", "os.getrandom", "django.utils.crypto.get_random_string"), RANDOM),
    **dict.fromkeys(
        (f"secrets.{name}" for name in ("choice", "randbelow", "randbits", "token_bytes", "token_hex")),
        RANDOM,
    ),
    **dict.fromkeys(("secrets.token_urlsafe", "secrets.SystemRandom", "random.SystemRandom"), RANDOM),
    **dict.fromkeys(
        (
            f"random.{name}"
            for name in (
                "betavariate",
                "binomialvariate",
                "choice",
                "choices",
                "expovariate",
                "gammavariate",
                "gauss",
                "getrandbits",
                "lognormvariate",
                "normalvariate",
                "paretovariate",
                "randbytes",
                "randint",
                "random",
                "randrange",
                "sample",
                "shuffle",
                "triangular",
                "uniform",
                "vonmisesvariate",
                "weibullvariate",
            )
        ),
        RANDOM,
    ),
}
# These use the current time, or an outside seed, unless they get at least this many arguments.
UNLESS_GIVEN = {
    "time.localtime": (1, NOW),
    "time.gmtime": (1, NOW),
    "time.ctime": (1, NOW),
    "time.asctime": (1, NOW),
    "time.strftime": (2, NOW),
    "django.utils.timezone.localtime": (1, NOW),
    "random.Random": (1, RANDOM),
}


def find_in_names(code: Code) -> Iterator[Found]:
    """E104: a step name is built from the time, a random number or a fresh ID."""
    for name in _step_names(code):
        for source, what, twin in _sources(code, name):
            said = f"The step name is built from `{what}()`"
            where = "" if source is name else f" (line {source.lineno})"
            yield Found(
                "E104",
                name,
                f"{said}{where}: it differs on every replay, so the recorded step is never found and runs again.",
                f"Name the step after the data it works on, or use `{twin}`, which is the same on every replay.",
            )
            break


def _step_names(code: Code) -> Iterator[ast.expr]:
    """Yield the expressions that name steps."""
    for node in code.between():
        call = code.durable(node)
        if call is not None and call.name is not None:
            yield call.name
        elif isinstance(node, ast.Call) and (code.resolve(node.func) or "") == "<step>.do" and node.args:
            yield node.args[0]


def _sources(code: Code, name: ast.expr) -> Iterator[tuple[ast.expr, str, str]]:
    """Yield the changing calls in a name, and in the values of the variables that it is built from."""
    for expression in [name, *_values(code, name)]:
        for _, what, twin in moving(code, expression):
            if twin != SLEEP:
                yield expression, what, twin


def _values(code: Code, name: ast.expr) -> Iterator[ast.expr]:
    for node in ast.walk(name):
        found = code.names.bindings(node) if isinstance(node, ast.Name) else []
        # For a called function only the call matters; a recorded result does not change.
        if len(found) == 1 and found[0].value is not None and not _is_recorded(code, found[0].value):
            yield found[0].value


def _is_recorded(code: Code, value: ast.expr) -> bool:
    return any(code.durable(node) for node in ast.walk(value))


def find_between_steps(code: Code) -> Iterator[Found]:
    """E105: code between steps reads the clock, draws random numbers, generates IDs, or sleeps."""
    in_names = {node for name in _step_names(code) for node in ast.walk(name)}
    for node in code.between():
        found = twin_of(code, node)
        if found is None or node in in_names:
            continue
        what, twin = found
        if twin == SLEEP:
            yield Found("E105", node, _holds_up(what), f"Use `{twin}`, which parks the instance.")
        else:
            message = (
                f"`{what}()` between steps differs on every replay, so that the replay may take another path."
            )
            yield Found("E105", node, message, f"Use `{twin}`, or call it in the body of a step.")


def _holds_up(what: str) -> str:
    if what == "asyncio.sleep":
        return "`asyncio.sleep()` between steps is refused, because a replay cannot repeat it."
    return f"`{what}()` between steps blocks the worker and all its instances, again on every replay."


def twin_of(code: Code, node: ast.AST) -> tuple[str, str] | None:
    """Return the name of a changing call and its deterministic replacement, or None for other nodes."""
    if not isinstance(node, ast.Call):
        return None
    called = code.resolve(node.func)
    if called == "asyncio.sleep" and any(
        isinstance(one, ast.Constant) and one.value == 0 for one in node.args
    ):
        return None  # lets other branches run, and takes no time
    if called in TWINS:
        return called, TWINS[called]
    if called in UNLESS_GIVEN:
        enough, twin = UNLESS_GIVEN[called]
        return (called, twin) if len(node.args) + len(node.keywords) < enough else None
    return None


def moving(code: Code, expression: ast.AST) -> Iterator[tuple[ast.AST, str, str]]:
    """Yield the changing calls in an expression."""
    for node in ast.walk(expression):
        if found := twin_of(code, node):
            yield node, *found
