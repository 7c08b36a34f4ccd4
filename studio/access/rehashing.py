"""Keep personal tokens when Django stores the same password again, because its hasher has changed.

A token ends with the password of its owner, of which there is only a hash. That a new hash is of the same password is
known in one place: when its owner signs in. Django then saves the new hash and nothing else, and clears
`_password`, so that nobody takes it for a change (`AbstractBaseUser.check_password`). This watches for exactly that, on
whichever page people sign in. Everything else that writes a hash ends the tokens: a form, a script, an import.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.postgres.fields import ArrayField
from django.db import DatabaseError, models, transaction
from django.db.models import F, Func, Value
from django.db.models.signals import pre_save

from studio.access.tokens import mark_of_hash
from studio.models import Token

log = logging.getLogger("studio")

ONLY = frozenset({"password"})
_IS_SAVED = "_reprise_is_saved"


def connect() -> None:
    """Watch the project's users. No other model is watched."""
    pre_save.connect(_before, sender=get_user_model(), dispatch_uid=__name__)


def _before(
    instance: Any, update_fields: Collection[str] | None = None, using: str | None = None, **_: Any
) -> None:
    if _is_same_password(instance, update_fields):
        rows = type(instance)._base_manager.using(using).filter(pk=instance.pk)
        stored = rows.values_list("password", flat=True).first()
        if stored is not None:
            _add_mark(instance.pk, mark_of_hash(stored), mark_of_hash(instance.password))


def _is_same_password(user: Any, update_fields: Collection[str] | None) -> bool:
    """Tell whether Django is about to save a new hash of the password that was just used to sign in."""
    kept = vars(user)
    if "_password" not in kept:  # `set_password` was not called
        return False
    # Any save clears it, too, so that afterwards it says nothing about a hash that is written directly.
    is_first = not kept.get(_IS_SAVED)
    kept[_IS_SAVED] = True
    is_alone = update_fields is not None and set(update_fields) == ONLY
    return is_first and is_alone and kept["_password"] is None


def _add_mark(owner: Any, stored: str, coming: str) -> None:
    """Let the tokens that are valid with the stored hash be valid with the coming one, too.

    Before it is saved, so that no request meets it without. Those that an earlier change has ended lack the first mark.
    Of several sign-ins at once, each adds its own, whichever is saved last.
    """
    marks = Func(F("owner_marks"), Value(coming), function="array_append", output_field=_MARKS)
    try:
        with transaction.atomic():
            Token.objects.filter(owner_id=owner, owner_marks__contains=[stored]).update(owner_marks=marks)
    except DatabaseError:  # without our table, for instance: nobody may be kept from signing in
        log.exception("The personal tokens of a user end, because Django changes the hash of the password.")


_MARKS: ArrayField[Any, Any] = ArrayField(models.CharField(max_length=64))
