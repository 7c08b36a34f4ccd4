"""What a view may be: its name, and what it saves."""

from __future__ import annotations

import re
from functools import lru_cache

from engine.values.query.parsing import parse
from studio.forms.names import is_name, rule_of_names
from studio.models.saved_view import LONGEST_NAME
from studio.saved_views.search import Search

MOST_OF_A_PERSON = 50
MOST_SHARED = 100
MOST_COLUMNS = 6
LONGEST_COLUMN = 200
_SORT = re.compile("-?[a-z]{1,30}")


class InvalidViewError(ValueError):
    """A view cannot be saved like this. Nothing was written.

    `field` says which part is wrong, and the message the rule.
    """

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(message)


def check_name(name: str) -> None:
    """Raise InvalidViewError unless it is a name."""
    if not is_name(name, LONGEST_NAME):
        raise InvalidViewError("name", rule_of_names(LONGEST_NAME))


def check_search(search: Search) -> None:
    """Raise InvalidViewError for a search that cannot be run, or that shows what All shows."""
    if search.is_empty:
        raise InvalidViewError(
            "query", "Search for something, sort, or add a column first: All shows this already."
        )
    problems = parse(search.query).problems
    if problems:
        raise InvalidViewError("query", f"{problems[0].text}: {problems[0].message}")
    if search.sort and not _SORT.fullmatch(search.sort):
        raise InvalidViewError("query", "The list has no such order. Sort the list, then save the view.")
    columns = search.columns.split(",")
    if len(columns) > MOST_COLUMNS or not all(len(one) <= LONGEST_COLUMN for one in columns):
        raise InvalidViewError("query", f"A view has up to {MOST_COLUMNS} columns.")
    if not search.columns.isprintable():
        raise InvalidViewError(
            "query", "The columns have characters that no path has. Choose them in the list."
        )


def is_outdated(search: Search) -> bool:
    """Return whether a stored search is no longer understood: the language may have changed since."""
    return _has_problems(search.query)


@lru_cache(maxsize=1_000)
def _has_problems(text: str) -> bool:
    return bool(parse(text).problems)
