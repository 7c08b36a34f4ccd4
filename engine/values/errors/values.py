"""Errors of values and names that are refused."""

from collections.abc import Sequence
from typing import TypedDict

from engine.values.errors.base import RepriseError, shown


class InvalidNameError(RepriseError, ValueError):
    """An id, or the name of a workflow, step or event type, breaks its rule.

    Change the name as the message says; docs/guarantees.md has all lengths. Replace characters of an
    outside id that are not allowed.
    """

    def __init__(self, what: str, value: object, rule: str) -> None:
        self.what = what
        self.value = shown(value)
        self.rule = rule
        super().__init__(f"{self.value} cannot be {what}. {rule}")


class InvalidValueError(RepriseError, ValueError):
    """A value cannot be stored as JSON. `path` leads to it (`$.items[0].qty`), `code` names the rule it breaks.

    Return or send only JSON types, or annotate the function with a type that pydantic can store. Store what is not
    JSON, such as a file, elsewhere, and pass its name.
    """

    def __init__(
        self, path: str, code: str, message: str, *, what: str = "value", problem: str = "cannot be stored"
    ) -> None:
        self.path = path
        self.code = code
        self.message = message
        self.what = what
        super().__init__(f"The {what} {problem}. At {path}: {message}")


class ParamError(TypedDict):
    """One wrong field: `path` is `items/0/qty`, and empty for the params as a whole."""

    path: str
    message: str
    code: str


class InvalidParamsError(RepriseError, ValueError):
    """The params, or the payload of an event, do not match the declared type; nothing was started or sent. Each of
    `errors` has `path`, `message` and `code`.

    Correct the fields that `errors` names, or change the type in the code.
    """

    def __init__(self, errors: Sequence[ParamError], *, what: str = "params") -> None:
        self.errors = list(errors)
        self.what = what
        shown = "; ".join(_param_line(error) for error in self.errors[:10])
        more = f"; and {len(self.errors) - 10:,} more" if len(self.errors) > 10 else ""
        super().__init__(f"The {what} {_does(what)} not match the declared type: {shown}{more}")


class LimitError(RepriseError, ValueError):
    """A value is over a limit. It was checked before anything was written.

    Send less: split the batch, store large data elsewhere and pass its name, or start children.
    docs/guarantees.md lists all limits; `max_steps` is an option of the workflow.
    """

    def __init__(self, what: str, value: int, limit: int, *, unit: str = "", advice: str = "") -> None:
        self.what = what
        self.value = value
        self.limit = limit
        unit = f" {unit}" if unit else ""
        super().__init__(
            f"The {what} is {value:,}{unit}; the limit is {limit:,}{unit}.{' ' if advice else ''}{advice}"
        )


def _short(term: str) -> str:
    return term if len(term) <= 100 else f"{term[:100]}…"


def _param_line(error: ParamError) -> str:
    return f"{error['path'] or 'as a whole'}: {error['message']}"


def _does(what: str) -> str:
    """Agree with "params" and "arguments of …", and with "payload"."""
    return "do" if what.split()[0].endswith("s") else "does"


class InvalidQueryError(RepriseError, ValueError):
    """A search has terms that cannot be understood. Nothing was searched.

    Write each term as its message says; docs/searching.md lists what there is.
    """

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        self.problems = list(problems)
        self.errors: list[ParamError] = [
            {"path": "query", "code": "invalid_term", "message": f"{_short(term)}: {message}"}
            for term, message in self.problems
        ]
        super().__init__(f"The search cannot be understood: {self.errors[0]['message']}")
