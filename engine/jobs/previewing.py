"""What a bulk job would do now, before it is started."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.db import connection

from engine.jobs.actions import REFUSAL, ROLLED_BACK, checked
from engine.jobs.reasons import in_words
from engine.jobs.selection import check_size, selected
from engine.models import Instance
from engine.values import between_steps

EXAMPLES = 3

_GROUPS = f"""
    SELECT code, count(*), (array_agg(workflow || '/' || id ORDER BY key))[1:{EXAMPLES}] FROM (
        SELECT i.key, i.workflow, i.id, [refusal] AS code FROM ([chosen]) AS i
    ) AS told GROUP BY code ORDER BY count(*) DESC, code
"""  # noqa: S608 - constants of ours


@dataclass(frozen=True, slots=True)
class Skipped:
    """Instances to which the action does not apply for one reason."""

    code: str
    """The reason as a word, such as `finished`."""
    reason: str
    """The reason as a sentence."""
    count: int
    """How many there are."""
    examples: tuple[str, ...]
    """Up to three of them, as `workflow/id`, the oldest first."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What a bulk job would do if it were started now."""

    action: str
    """The action."""
    total: int
    """How many instances were found."""
    eligible: int
    """To how many of them the action applies."""
    examples: tuple[str, ...]
    """Up to three of these, as `workflow/id`."""
    rolled_back: Skipped | None
    """Of a retry, those whose steps were rolled back: they can only be restarted. None if there are none."""
    skipped: tuple[Skipped, ...]
    """The others that would be skipped, by reason, most first."""


def preview(
    action: str,
    query: str | None = None,
    *,
    instances: Iterable[Instance] | None = None,
    workflows: Collection[str] | None = None,
    rollback: bool | None = None,
    keys: str | None = None,
) -> Preview:
    """Return what `start` with the same arguments would do now. Nothing is changed.

    Raises InvalidQueryError, InvalidValueError, and LimitError for more than 100,000 instances.
    """
    between_steps.refuse("preview")
    chosen, _ = checked(action, {"rollback": rollback, "keys": keys})
    found = selected(query, instances, workflows)
    statement = _GROUPS.replace("[chosen]", found.sql).replace("[refusal]", REFUSAL[chosen])
    with connection.cursor() as cursor:
        cursor.execute(statement, found.params)
        shares = [
            Skipped(code, in_words(code), count, tuple(examples))
            for code, count, examples in cursor.fetchall()
        ]
    total = sum(one.count for one in shares)
    check_size(total)
    by_code = {one.code: one for one in shares}
    eligible = by_code.get("")
    return Preview(
        action=chosen,
        total=total,
        eligible=0 if eligible is None else eligible.count,
        examples=() if eligible is None else eligible.examples,
        rolled_back=by_code.get(ROLLED_BACK),
        skipped=tuple(one for one in shares if one.code not in ("", ROLLED_BACK)),
    )
