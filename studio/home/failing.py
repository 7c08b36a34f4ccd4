"""Errors: the groups that fail now, and their back-offs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, islice

from engine.status.failures import CurrentGroup
from engine.status.failures.failing import CAP, SOONEST, WINDOW, BackingOff, Errored
from engine.status.sentences.sentence import Moment, Sentence
from studio.bulk.address import MOST_GROUPS
from studio.display.at_least import counted
from studio.home.group import Block, Entry, Group, Hour, Latest, Rank, shares_of

GROWS = timedelta(minutes=5)  # after its last failure
BEFORE_GROUPS = "Failed before errors had groups"

Parts = tuple[tuple[CurrentGroup, Errored], ...]


def blocks(found: Sequence[CurrentGroup], now: datetime) -> Iterator[Block]:
    """Yield an entry for each error, whatever the number of its workflows, with its back-offs."""
    by_kin: dict[str, list[CurrentGroup]] = {}
    for group in found:
        by_kin.setdefault(group.kin or group.workflow, []).append(group)
    for groups in by_kin.values():
        yield from _blocks_of(groups, now)


def _blocks_of(groups: Sequence[CurrentGroup], now: datetime) -> Iterator[Block]:
    undone = [(group, group.not_rolled_back) for group in groups if _is_rollback(group)]
    errored = [(group, _others(group) if _is_rollback(group) else group.errored) for group in groups]
    retrying = tuple(group for group in groups if group.retrying.count)
    rank = Rank.GROWING if any(group.grows for group in groups) else Rank.ERRORED
    heads = [
        _errored(some, rank, groups, now)
        for rank, given in ((Rank.NOT_ROLLED_BACK, undone), (rank, errored))
        if (some := tuple(one for one in given if one[1].count))
    ]
    if not heads:
        yield (_retrying(retrying, follows=False),)
    elif retrying:
        yield heads[0], _retrying(retrying, follows=True)
    else:
        yield (heads[0],)
    yield from ((head,) for head in heads[1:])


def _is_rollback(group: CurrentGroup) -> bool:
    return group.phase == "rollback"


def _others(group: CurrentGroup) -> Errored:
    """Return those of a rollback's group that were rolled back in the end."""
    left = group.errored.count - group.not_rolled_back.count
    return replace(group.errored, count=left, newest=None) if left > 0 else Errored()


def _errored(parts: Parts, rank: Rank, groups: Sequence[CurrentGroup], now: datetime) -> Entry:
    return Entry(
        kind="rollback" if rank == Rank.NOT_ROLLED_BACK else "errored",
        rank=rank,
        count=sum(counted(one.count, CAP) for _, one in parts),
        since=min((one.since for _, one in parts if one.since), default=None),
        of=tuple(groups),
        make=partial(_errored_row, parts, rank, groups, now),
    )


def _errored_row(
    parts: Parts, rank: Rank, groups: Sequence[CurrentGroup], now: datetime, latest: Latest
) -> Group:
    seen = [latest.seen[group.fingerprint] for group in groups if group.fingerprint in latest.seen]
    last = max(seen, default=now - WINDOW)
    newest = _newest([group for group, _ in parts], latest)
    fingerprints = tuple(group.fingerprint for group, _ in parts if group.fingerprint)
    shares = shares_of((group.workflow, counted(one.count, CAP)) for group, one in parts)
    total = sum((share.count for share in shares), start=0)
    is_new = all(group.is_new for group, _ in parts)
    return Group(
        kind="rollback" if rank == Rank.NOT_ROLLED_BACK else "errored",
        rank=rank,
        key=f"{'u' if rank == Rank.NOT_ROLLED_BACK else 'e'}-{newest.fingerprint or newest.workflow}",
        count=total,
        look="errored",
        title=_title(newest),
        where=_where(newest),
        shares=shares,
        line=((f"{newest.type}, never seen before",),) if is_new and total == 1 else (),
        since=min((one.since for _, one in parts if one.since), default=None),
        then=(Moment("ago", last),) if total == 1 else ("last ", Moment("ago", last)),
        hour=Hour.of(sum(one.in_hour for _, one in parts)),
        error=newest.fingerprint,
        query="" if newest.fingerprint else f"status:errored workflow:{newest.workflow}",
        only_key=parts[0][1].newest if total == 1 else None,
        step=newest.step,
        is_new=is_new,
        fingerprints=fingerprints,
    )


def _retrying(groups: tuple[CurrentGroup, ...], *, follows: bool) -> Entry:
    return Entry(
        kind="retrying",
        rank=Rank.RETRYING,
        count=sum(counted(group.retrying.count, CAP) for group in groups),
        since=None,
        next_at=min((group.retrying.next_at for group in groups if group.retrying.next_at), default=None),
        of=groups,
        make=partial(_retrying_row, groups, follows),
    )


def _retrying_row(groups: Sequence[CurrentGroup], follows: bool, latest: Latest) -> Group:
    newest = _newest(groups, latest)
    fingerprints = tuple(group.fingerprint for group in groups if group.fingerprint)
    shares = shares_of((group.workflow, counted(group.retrying.count, CAP)) for group in groups)
    total = sum((share.count for share in shares), start=0)
    whole = sum((group.retrying for group in groups), start=BackingOff())
    then: Sentence = ("next ", Moment("left", whole.next_at)) if whole.next_at else ()
    return Group(
        kind="retrying",
        rank=Rank.RETRYING,
        key=f"r-{newest.fingerprint or newest.workflow}",
        count=total,
        look="retrying",
        title="The same error, backing off" if follows else _title(newest),
        where="" if follows else _where(newest),
        shares=shares,
        line=(),
        since=None,
        then=then,
        hour=Hour.of(0),
        error=newest.fingerprint,
        query=_search(newest, fingerprints),
        only_key=whole.newest if total == 1 else None,
        step=newest.step,
        follows=follows,
        fingerprints=fingerprints,
        soonest=_soonest(groups, latest),
        next_at=whole.next_at,
    )


def _soonest(groups: Sequence[CurrentGroup], latest: Latest) -> tuple[int, ...]:
    first = sorted(groups, key=lambda group: (group.retrying.next_at is None, group.retrying.next_at))
    keys = chain.from_iterable(latest.soonest.get((one.workflow, one.fingerprint), ()) for one in first)
    return (*islice(keys, SOONEST),)


def _newest(groups: Sequence[CurrentGroup], latest: Latest) -> CurrentGroup:
    def seen(group: CurrentGroup) -> tuple[bool, datetime | None, str]:
        at = latest.seen.get(group.fingerprint)
        return (at is not None, at, group.fingerprint)

    return max(groups, key=seen)


def _title(group: CurrentGroup) -> str:
    return f"{_where(group)}: {group.type}" if group.fingerprint else BEFORE_GROUPS


def _where(group: CurrentGroup) -> str:
    if not group.fingerprint:
        return ""
    where = group.step or "handler"
    return f"Rollback of {where}" if _is_rollback(group) else where


def _search(group: CurrentGroup, fingerprints: Sequence[str]) -> str:
    if fingerprints:
        return f"error-group:{','.join(fingerprints[:MOST_GROUPS])} status:retrying"
    return f"status:retrying workflow:{group.workflow}"
