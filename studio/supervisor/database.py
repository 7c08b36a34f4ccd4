"""Prepare the database, embedded or not: its version, its tables, and the first account."""

import secrets
import shlex

from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.db import IntegrityError, OperationalError, connection, connections, transaction
from django.db.migrations.executor import MigrationExecutor

from engine.models.earlier import EarlierDatabaseError, TooEarlyDatabaseError
from engine.status import schema
from studio.embedded import EmbeddedServer

OLDEST_VERSION = 15
# Any number will do, as long as every supervisor uses this one.
MIGRATION_LOCK = 7_737_001

FIRST_ACCOUNT = "admin"


class DatabaseError(Exception):
    """The database cannot be used: it does not answer, is too old or too new, or cannot be migrated.

    Check DATABASE_URL and the server, as the message says.
    """


def prepare(server: EmbeddedServer | None = None) -> list[str]:
    """Check that the database answers and is new enough, then migrate it; one supervisor at a time.

    Return the migrations that it lacked; none for a new database, which lacked them all.
    """
    try:
        connection.ensure_connection()
    except OperationalError as error:
        raise DatabaseError(
            f"The database {_name()} does not answer: {_first_line(error)}. Check DATABASE_URL, or unset it to use the "
            "embedded one."
        ) from None
    if connection.pg_version < OLDEST_VERSION * 10_000:  # type: ignore[attr-defined]
        raise DatabaseError(
            f"The database {_name()} is PostgreSQL {connection.pg_version // 10_000}; "  # type: ignore[attr-defined]
            f"Reprise needs {OLDEST_VERSION} or newer."
        )
    if newer := schema.unknown():
        raise DatabaseError(schema.sentence_about_unknown(newer))
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
        try:
            lacking = _lacking()
            call_command("migrate", interactive=False, verbosity=0)
        except EarlierDatabaseError as error:
            raise DatabaseError(_refusal(error, server)) from None
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [MIGRATION_LOCK])
    return lacking


def _refusal(error: EarlierDatabaseError, server: EmbeddedServer | None) -> str:
    """Say how to drop the files of the embedded server: nobody can connect to it after this."""
    if isinstance(error, TooEarlyDatabaseError) and server is not None and server.place is not None:
        drop = f"rm -r {shlex.quote(str(server.place.cluster))}"
        return str(TooEarlyDatabaseError(_name(), error.state, drop))
    return str(error)


def _lacking() -> list[str]:
    executor = MigrationExecutor(connection)
    if not executor.loader.applied_migrations:
        return []
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


def user() -> str:
    """Return the database user that we are connected as."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        (found,) = cursor.fetchone()
    return str(found)


def let_go() -> None:
    """Close this process's connections: the supervisor needs none while it watches."""
    connections.close_all()


def _name() -> str:
    settings = connection.settings_dict
    return f"{settings['NAME']} on {settings['HOST'] or 'the default host'}"


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


class PasswordError(Exception):
    """REPRISE_ADMIN_PASSWORD is not good enough; the message says why. No account was made.

    Set a longer password, or remove the variable: a password is then made up and printed once.
    """


def make_first_account(given: str | None) -> str | None:
    """Create the account `admin` unless an account exists. Return its password if it was generated."""
    users = get_user_model()
    if users.objects.exists():
        return None
    if given:
        _require_good(given)
    password = given or secrets.token_urlsafe(12)
    try:
        with transaction.atomic():
            users.objects.create_superuser(FIRST_ACCOUNT, password=password)
    except IntegrityError:
        # Another machine has just created it in this database.
        return None
    return None if given else password


def _require_good(password: str) -> None:
    try:
        validate_password(password)
    except ValidationError as error:
        raise PasswordError(f"REPRISE_ADMIN_PASSWORD is refused: {' '.join(error.messages)}") from None
