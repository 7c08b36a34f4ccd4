"""The first account."""

import secrets

from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

NAME = "admin"


class PasswordError(Exception):
    """REPRISE_ADMIN_PASSWORD is not good enough; the message says why."""


def make_first_account(given: str | None) -> str | None:
    """Create the account `admin` if there is no account. Return its password if it was generated."""
    users = get_user_model()
    if users.objects.exists():
        return None
    if given:
        _require_good(given)
    password = given or secrets.token_urlsafe(12)
    try:
        with transaction.atomic():
            users.objects.create_superuser(NAME, password=password)
    except IntegrityError:
        # Another machine has just created it in this database.
        return None
    return None if given else password


def _require_good(password: str) -> None:
    try:
        validate_password(password)
    except ValidationError as error:
        raise PasswordError(f"REPRISE_ADMIN_PASSWORD is refused: {' '.join(error.messages)}") from None
