"""What a user may do about the groups that are shown: retry errors, and pause the workflows of the worst."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from engine.status.holds import PausedWorkflow
from engine.status.sentences.sentence import Sentence
from studio.access.permissions import Verb, allowed
from studio.bulk.address import retry_address
from studio.home.group import OF_ERRORS, Group, Rank
from studio.workflows.pauses import Pauses


def with_actions(
    groups: Sequence[Group], paused: Sequence[PausedWorkflow], user: Any, back: str, *, own: str = ""
) -> list[Group]:
    """Return the groups with their actions. It reads nothing.

    The workflows of the worst error that goes on can be paused. `paused` are those that are, and `back` is the page to
    come back to. Errors of several instances can be retried; `own` is the person whose instances the groups are of.
    """
    found = list(groups)
    for at, group in enumerate(found):
        if group.rank == Rank.GROWING and group.kind in OF_ERRORS:
            found[at] = _with_pause(group, paused, user, back)
            break
    return [_with_retry(group, user, back, own) for group in found]


def _with_retry(group: Group, user: Any, back: str, own: str) -> Group:
    if group.kind not in (*OF_ERRORS, "retrying") or group.is_of_one:
        return group
    status = "retrying" if group.kind == "retrying" else "errored"
    return replace(
        group,
        retry_address=retry_address(group.fingerprints, status, by=own, back=back),
        may_retry=all(allowed(user, Verb.OPERATE, share.workflow) for share in group.shares),
    )


def _with_pause(group: Group, paused: Sequence[PausedWorkflow], user: Any, back: str) -> Group:
    names = tuple(share.workflow for share in group.shares)
    pauses = Pauses(names, tuple(one for one in paused if one.name in names), back)
    return replace(
        group,
        line=(*group.line, *_paused(pauses)),
        pauses=pauses if pauses.active else None,
        may_pause=all(allowed(user, Verb.OPERATE, name) for name in names),
    )


def _paused(pauses: Pauses) -> Iterator[Sentence]:
    paused, of = len(pauses.paused), len(pauses.names)
    if paused:
        yield ("paused" if of == 1 else f"all {of} paused" if paused == of else f"{paused} of {of} paused",)
