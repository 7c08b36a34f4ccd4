"""The account of the first start."""

import secrets

from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

NAME = "admin"


class PasswordError(Exception):
    """REPRISE_ADMIN_PASSWORD is not good enough; the message says why."""


def make_first_account(given: str | None) -> str | None:
    """Make the account `admin` when there is no account at all; return its password if it had to be made up."""
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
        # Another machine's first start on this database was faster.
        return None
    return None if given else password


def _require_good(password: str) -> None:
    try:
        validate_password(password)
    except ValidationError as error:
        raise PasswordError(f"REPRISE_ADMIN_PASSWORD is refused: {' '.join(error.messages)}") from None
