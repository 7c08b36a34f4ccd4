"""Limit password attempts before the password is checked: checking is what costs time.

There are three limits on failed attempts within ten minutes: for a user name from one address, which stops guessing one
password; from one address, for any name; for one name from anywhere. The last limit is high, and does not apply to
addresses where that name has signed in recently, so that nobody can lock somebody else out.

Another limit is on how many passwords are hashed at a time: one for every two cores, so that pages are still served. A
hash takes a fifth of a second of a core, and anybody can cause one.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ValidationError
from django.db import connection

from engine.steer import audit
from studio.access import throttle
from studio.access.throttle import Count, Limit

VERB = "sign_in"  # in the audit trail
WITHIN = timedelta(minutes=10)
OF_A_NAME_FROM_AN_ADDRESS = 10
FROM_AN_ADDRESS = 50
OF_A_NAME = 200
KNOWN_FOR = timedelta(days=30)
# An attack from many addresses must not fill the audit trail.
ROWS = Limit("audit of sign-in", 100, timedelta(hours=1))

# Hashing.
SLOTS = max(1, len(os.sched_getaffinity(0)) // 2) if hasattr(os, "sched_getaffinity") else 1
MOST_WAITING = 8
MOST_OF_AN_ADDRESS = 4
LONGEST_WAIT_S = 5.0
RETRY_AFTER = timedelta(seconds=5)

_slots = threading.BoundedSemaphore(SLOTS)
_waiting: Counter[str] = Counter()
_lock = threading.Lock()


class TooManyAttemptsError(Exception):
    """The next attempt has to wait."""

    def __init__(self, wait: timedelta) -> None:
        super().__init__(f"Too many attempts. Try again in {wait}.")
        self.wait = wait


@contextmanager
def attempt(address: str, name: str) -> Iterator[None]:
    """Count an attempt, or raise TooManyAttemptsError.

    The block checks the password and raises ValidationError if it is wrong. After any other error the attempt does not
    count.
    """
    limits = _limits(address, name)
    _refuse([one for one in throttle.counts(limits) if one.is_over])
    counted = throttle.count(limits)
    _note(counted, address, name)
    _refuse([one for one in counted if one.is_over])
    try:
        yield
    except ValidationError:
        raise
    except BaseException:
        throttle.take_back(limits)
        raise
    throttle.take_back(limits)
    throttle.forget(_pair(address, name))
    # A live count keeps its end, and this one has to last from the latest sign-in.
    throttle.forget(_known(address, name))
    throttle.count([_known(address, name)])


def _limits(address: str, name: str) -> list[Limit]:
    of_name = Limit(f"sign-in of {_folded(name)}", OF_A_NAME, WITHIN)
    limits = [_pair(address, name), Limit(f"sign-in from {address}", FROM_AN_ADDRESS, WITHIN)]
    return limits if throttle.counts([_known(address, name)]) else [*limits, of_name]


def _pair(address: str, name: str) -> Limit:
    what = f"sign-in from {address} of {_folded(name)}"
    return Limit(what, OF_A_NAME_FROM_AN_ADDRESS, WITHIN)


def _known(address: str, name: str) -> Limit:
    return Limit(f"signed in from {address} of {_folded(name)}", 0, KNOWN_FOR)


def _folded(name: str) -> str:
    # Some backends ignore the case of names.
    return name.strip().casefold()


def _refuse(reached: list[Count]) -> None:
    if reached:
        raise TooManyAttemptsError(max(one.left for one in reached))


def _note(counted: list[Count], address: str, name: str) -> None:
    """Write one row to the audit trail when a limit is exceeded, not one for each attempt after that."""
    passed = next((one for one in counted if one.is_first_over), None)
    if passed is None or any(one.is_over for one in throttle.count([ROWS])):
        return
    # A name without an account may be a password that was typed into the wrong field.
    is_account = get_user_model()._default_manager.filter(**{_name_field(): name}).exists()
    by = name[: audit.MAX_ACTOR] if is_account else AnonymousUser()
    cause = audit.Cause.of(by, _reason(passed, address))
    audit.note(VERB, "", cause, outcome="denied", data={"address": address})


def _name_field() -> str:
    return str(get_user_model().USERNAME_FIELD)


def _reason(passed: Count, address: str) -> str:
    minutes = passed.limit.within // timedelta(minutes=1)
    whom = "this name" if passed.limit.most != FROM_AN_ADDRESS else "any name"
    where = "anywhere" if passed.limit.most == OF_A_NAME else address
    return f"More than {passed.limit.most} failed attempts within {minutes} min for {whom} from {where}."


class BusyError(Exception):
    """Too many are waiting for a slot."""


@contextmanager
def slot(address: str) -> Iterator[None]:
    """Wait for a slot and hold it. Raises BusyError if that takes too long, or if too many wait already."""
    _return_connection()
    with _turn(address):
        if not _slots.acquire(timeout=LONGEST_WAIT_S):
            raise BusyError
    try:
        yield
    finally:
        _slots.release()


def _return_connection() -> None:
    """Return the database connection to the pool while waiting: there are few, and pages need them.

    Without a pool, CONN_MAX_AGE may keep the connection open: it belongs to this thread, so no page waits for it.
    """
    if not connection.in_atomic_block:
        connection.close_if_unusable_or_obsolete()


@contextmanager
def _turn(address: str) -> Iterator[None]:
    with _lock:
        if _waiting.total() >= MOST_WAITING or _waiting[address] >= MOST_OF_AN_ADDRESS:
            raise BusyError
        _waiting[address] += 1
    try:
        yield
    finally:
        with _lock:
            _waiting[address] -= 1
            if not _waiting[address]:
                del _waiting[address]
