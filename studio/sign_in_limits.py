"""How often somebody may try passwords: counted before the password is looked at, so that guessing costs us nothing.

Three counts of failed tries, each for ten minutes: those for a name from an address, which end the guessing of one
password; those from an address, for many names; those for a name from everywhere. The last one is high, and does not
concern an address from which the name has signed in lately: nobody can lock somebody else out of where they work.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ValidationError

from engine import audit
from studio import throttle
from studio.throttle import Count, Limit

VERB = "sign_in"  # in the audit trail
WITHIN = timedelta(minutes=10)
OF_A_NAME_FROM_AN_ADDRESS = 10
FROM_AN_ADDRESS = 50
OF_A_NAME = 200
KNOWN_FOR = timedelta(days=30)
# However many addresses and names take part, no more rows than these.
ROWS = Limit("audit of sign-in", 100, timedelta(hours=1))


class TooManyTriesError(Exception):
    """Somebody has to wait before the next try."""

    def __init__(self, wait: timedelta) -> None:
        super().__init__(f"Too many tries. The next one may come in {wait}.")
        self.wait = wait


@contextmanager
def one_try(address: str, name: str) -> Iterator[None]:
    """Count a try at a password, unless there were too many: then raise TooManyTriesError.

    Ends well with the right password. ValidationError says that it was a wrong one; any other error, that nobody knows.
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
    # Some backends take a name in any case.
    return name.strip().casefold()


def _refuse(reached: list[Count]) -> None:
    if reached:
        raise TooManyTriesError(max(one.left for one in reached))


def _note(counted: list[Count], address: str, name: str) -> None:
    """Leave one row in the audit trail when a limit is passed, not one for each try after it."""
    passed = next((one for one in counted if one.is_first_over), None)
    if passed is None or any(one.is_over for one in throttle.count([ROWS])):
        return
    # What is no name of an account may be a password that was typed into the wrong field.
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
    return f"More than {passed.limit.most} failed tries within {minutes} min for {whom} from {where}."
