"""Issue, find and revoke tokens. A token is shown once; the table has only its digest."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from string import ascii_lowercase, digits
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.crypto import get_random_string
from django.views.decorators.debug import sensitive_variables

from engine.steer import audit
from studio.access import token_row, token_rules
from studio.access.permissions import RefusedError, Verb, allowed
from studio.access.principals import Principal, Scope
from studio.access.token_row import Found
from studio.access.token_rules import InvalidTokenError
from studio.models import Token

# Verbs in the audit trail. Tokens belong to no workflow, so their rows name none.
ISSUE, REVOKE = "create_token", "revoke_token"

START = "rpr"
SECRET_BYTES = 32
MOST_OF_AN_OWNER = 100  # that are not revoked; as many team tokens
USE_NOTED_EVERY = timedelta(minutes=1)
_TOKEN = re.compile(r"rpr_[a-z0-9]{8}_[A-Za-z0-9_-]{43}")
_CHARACTERS = ascii_lowercase + digits

# Another request that uses the token right now notes it: no request waits for another one's transaction.
_NOTE_USE = """
UPDATE studio_token SET last_used_at = statement_timestamp()
 WHERE key = (SELECT key FROM studio_token WHERE key = %s FOR NO KEY UPDATE SKIP LOCKED)
"""


@dataclass(frozen=True, slots=True)
class Issued:
    """A new token: its row, and the text, which nobody can read again."""

    row: Token
    text: str = field(repr=False)


@sensitive_variables("text")
def issue(
    name: str,
    *,
    by: Any,
    owner: Any = None,
    verbs: Collection[Verb] = (Verb.VIEW,),
    workflows: Sequence[str] = ("*",),
    expires_at: datetime | None = None,
) -> Issued:
    """Make a token: a personal one with an owner, who makes it, else a team token, which an admin makes.

    The audit trail records it. Raises InvalidTokenError, and RefusedError if `by` may not make it.
    """
    verbs = {Verb.VIEW, *verbs}
    _refuse_unless(_may_issue(by, owner, verbs))
    token_rules.check(name, verbs=verbs, workflows=workflows, expires_at=expires_at, now=timezone.now())
    prefix = get_random_string(8, _CHARACTERS)
    text = f"{START}_{prefix}_{secrets.token_urlsafe(SECRET_BYTES)}"
    row = Token(
        prefix=prefix,
        digest=digest_of(text),
        name=name.strip(),
        owner=owner,
        owner_marks=[mark_of_hash(owner.password)] if owner is not None else [],
        verbs=[verb.value for verb in Verb if verb in verbs],
        workflows=list(dict.fromkeys(workflows)),
        created_by=audit.shortened(by.get_username()),
        expires_at=expires_at,
    )
    with transaction.atomic():
        _insert(row)
        audit.note(ISSUE, "", audit.Cause.of(by), data=_facts_of(row))
    row.refresh_from_db()
    return Issued(row, text)


def revoke(token: Token, *, by: Any) -> bool:
    """End a token for good. Return whether this call did; then the audit trail records it.

    Raises RefusedError unless `by` is its owner or an admin.
    """
    _refuse_unless(may_revoke(by, token))
    with transaction.atomic():
        rows = Token.objects.filter(key=token.key, revoked_at=None)
        has_ended = bool(rows.update(revoked_at=Now(), revoked_by=audit.shortened(by.get_username())))
        if has_ended:
            audit.note(REVOKE, "", audit.Cause.of(by), data=_facts_of(token))
    return has_ended


def may_revoke(user: Any, token: Token) -> bool:
    """Tell whether a person may revoke a token. No token may."""
    if isinstance(user, Principal):
        return False
    is_own = token.owner_id is not None and token.owner_id == user.pk
    return allowed(user, Verb.VIEW if is_own else Verb.ADMINISTER, None)


@sensitive_variables("text")
def find(text: str) -> Principal | None:
    """Return who holds a token; None if it is unknown, expired or revoked, or its owner may not sign in any more.

    One query, and another at most once a minute for the time of its last use.
    """
    if not _TOKEN.fullmatch(text):
        return None
    found = token_row.find(text[4:12])
    if found is None or not hmac.compare_digest(found.row.digest, digest_of(text)):
        return None
    return _holder_of(found)


def principal_of(found: Found) -> Principal:
    """Return the holder of a token, as `find` does, without asking whether it is valid."""
    row = found.row
    verbs = frozenset(one for one in Verb if one in row.verbs)
    return Principal(
        key=f"token:{row.key}",
        name=row.name,
        scope=Scope(verbs, tuple(row.workflows)),
        owner=row.owner,
        owner_verbs=found.granted,
        expires_at=row.expires_at,
    )


@sensitive_variables("text")
def digest_of(text: str) -> str:
    """Return what is stored of a token. It is random and long, so a plain hash is enough."""
    return hashlib.sha256(text.encode()).hexdigest()


def mark_of_hash(password: str) -> str:
    """Return a digest of the owner's password, as it is stored, by which a change of it is noticed.

    Django stores the password as a salted hash, so nobody can guess it from this. SECRET_KEY has no part in it: a new
    one ends no tokens. When Django hashes the same password anew, `studio.access.rehashing` adds the new mark.
    """
    return hashlib.sha256(f"studio.token {password}".encode()).hexdigest()


def is_usable(row: Token, now: datetime) -> bool:
    """Tell whether a token opens anything: it is valid, and its owner may sign in with the same password as before."""
    if not row.is_valid_at(now):
        return False
    if row.owner is None:
        return row.owner_id is None
    return bool(row.owner.is_active) and mark_of_hash(row.owner.password) in row.owner_marks


def _may_issue(by: Any, owner: Any, verbs: Collection[Verb]) -> bool:
    """Tell whether they may: a personal token is made by its owner, a team token with verbs that its maker has."""
    if isinstance(by, Principal):
        return False
    if owner is not None:
        return bool(owner == by)
    return allowed(by, Verb.ADMINISTER, None) and all(allowed(by, verb, None) for verb in verbs)


def _refuse_unless(is_allowed: bool) -> None:
    if not is_allowed:
        raise RefusedError(Verb.ADMINISTER, None)


def _insert(row: Token) -> None:
    if Token.objects.filter(owner=row.owner, revoked_at=None).count() >= MOST_OF_AN_OWNER:
        raise InvalidTokenError(
            "name", f"There are {MOST_OF_AN_OWNER} tokens already. Revoke one that is not used."
        )
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        if not any(name in str(error) for name in ("studio_token_name", "studio_token_team_name")):
            raise
        said = f'There is a token named "{row.name}" already. Revoke it, or choose another name.'
        raise InvalidTokenError("name", said) from None


def _facts_of(row: Token) -> dict[str, Any]:
    """Return what the audit trail keeps of a token. Its text and its digest are not among it."""
    return {
        "token": row.prefix,
        "name": row.name,
        "owner": row.owner.get_username() if row.owner is not None else None,
        "verbs": list(row.verbs),
        "workflows": list(row.workflows),
        "expires_at": row.expires_at.isoformat() if row.expires_at is not None else None,
    }


def _holder_of(found: Found) -> Principal | None:
    row = found.row
    if not is_usable(row, found.now):
        return None
    if row.last_used_at is None or found.now - row.last_used_at >= USE_NOTED_EVERY:
        with connection.cursor() as cursor:
            cursor.execute(_NOTE_USE, [row.key])
    return principal_of(found)
