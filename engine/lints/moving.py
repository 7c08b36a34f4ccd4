"""Calls that return a different value each time: the clock, random numbers and generated IDs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from engine.lints.code import Code

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
