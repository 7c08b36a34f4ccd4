"""Let Django empty its own test databases: it does so with TRUNCATE, which the trail of the audit refuses.

A database whose name begins with `test_` is recognized by the trigger itself. `TEST = {"NAME": …}` may give any other.
"""

from __future__ import annotations

from typing import Any

from django.core import mail
from django.db import connections

ALLOW = "DROP TRIGGER IF EXISTS engine_audit_is_not_truncated ON engine_audit"


def allow_truncate(using: str, **sent: Any) -> None:
    """Drop the trigger that refuses TRUNCATE, after `migrate` of a test database."""
    is_migrate = "plan" in sent  # `flush` sends the signal, too, after each test that commits
    if is_migrate and _is_made_for_tests(using):
        with connections[using].cursor() as cursor:
            cursor.execute(ALLOW)


def _is_made_for_tests(using: str) -> bool:
    """Tell whether a test runner has made this database.

    The name alone is not enough: some projects test in the database that the settings name, and share the settings
    with production.
    """
    connection = connections[using]
    database = connection.settings_dict
    are_tests_run = hasattr(mail, "outbox")  # set up by Django's `setup_test_environment`
    return (
        connection.vendor == "postgresql" and are_tests_run and database["NAME"] == database["TEST"]["NAME"]
    )
