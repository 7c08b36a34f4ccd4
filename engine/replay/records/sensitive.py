"""Errors about values of sensitive steps, without the values.

The messages of validators may quote the value, and so may the path to it, because the keys of a dict are part of the
value. Only the rule that was broken is kept.
"""

from __future__ import annotations

import re

from engine.values.errors import InvalidParamsError, InvalidValueError, ParamError

MASK = "(a sensitive value)"
_CODE = re.compile(r"[a-z_]{1,64}")
_ARGUMENT = re.compile(r"args\.[A-Za-z_]\w*")


def output_masked(problem: InvalidValueError) -> InvalidValueError:
    """Return the refusal of an output. Raise it `from None`: the original contains the value."""
    message = f"It breaks the rule {_code(problem.code)}. Where and why is not shown, because the step is sensitive."
    return InvalidValueError("$", problem.code, message, what=problem.what)


def arguments_masked(problem: InvalidParamsError) -> InvalidParamsError:
    """Return the refusal of arguments. The names of parameters are not secret."""
    errors = [
        ParamError(
            path=found[0] if (found := _ARGUMENT.match(error["path"])) else "args",
            message=f"It breaks the rule {_code(error['code'])}.",
            code=_code(error["code"]),
        )
        for error in problem.errors
    ]
    return InvalidParamsError(errors, what=problem.what)


def _code(code: str) -> str:
    return code if _CODE.fullmatch(code) else "custom"
