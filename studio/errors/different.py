"""The instances of an error, each with its last failure and what sets it apart from the rest."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from engine.models import Instance
from engine.status import failures
from engine.status.failures import LastFailure
from engine.values.states import RollbackState
from studio.errors.common import Common
from studio.instances.queries import Row, rows_by_key, rows_of

MOST = 80  # per cent of the failing instances that have a value: the others are different
LONGEST = 60
_ROLLBACKS = {
    RollbackState.COMPLETE: "rolled back",
    RollbackState.RUNNING: "being rolled back",
    RollbackState.FAILED: "rollback failed",
}


@dataclass(frozen=True, slots=True)
class FailedRow:
    """An instance in the list of an error."""

    row: Row
    last: LastFailure | None
    different: tuple[str, ...]

    @property
    def instance(self) -> Instance:
        return self.row.instance

    @property
    def failed_at(self) -> datetime | None:
        """When it last failed: with the attempt, or with the handler."""
        return self.last.at if self.last is not None else self.row.instance.finished_at


def failed_rows(
    fingerprints: Collection[str], keys: Sequence[int], common: Sequence[Common]
) -> tuple[FailedRow, ...]:
    """Return the rows of a page."""
    rows = rows_of(rows_by_key(keys))
    last = failures.last_failures(fingerprints, keys)
    is_one = len(fingerprints) == 1  # the code of another workflow is no other version
    usual = [one for one in common if one.percent >= MOST and (is_one or one.what != "code")]
    values = failures.values(keys) if usual else {}
    return tuple(
        FailedRow(
            row,
            last.get(row.instance.key),
            tuple(_different(row.instance, values.get(row.instance.key, {}), usual)),
        )
        for row in rows
    )


def _different(
    instance: Instance, values: Mapping[str, Sequence[str]], usual: Sequence[Common]
) -> Iterator[str]:
    if instance.rollback in _ROLLBACKS:
        yield _ROLLBACKS[RollbackState(instance.rollback)]
    for one in usual:
        own = values.get(one.what, ())
        if one.value in own or (one.what == "code" and any(code.startswith(one.value) for code in own)):
            continue
        if one.what == "tag":
            yield f"no tag {_cut(one.value)}"
        elif one.what == "code":
            yield "another version of the code"
        else:
            name = one.what.removeprefix("params.")
            yield f"{name} = {_cut(own[0])}" if own else f"no {name}"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
