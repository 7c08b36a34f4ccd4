"""How each kind of process connects to PostgreSQL."""

from typing import Any

import dj_database_url

from studio import embedded
from studio.environment.parsing import SettingError
from studio.environment.variables import Environment, Role

POSTGRESQL = "django.db.backends.postgresql"

# Without these, a connection hangs for hours when the network is cut. Given up after 8 s of silence, it is opened again
# sooner than TCP would send again.
KEEP_ALIVE = {
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 8000,
}

# Pages must not wait forever; step bodies and migrations may.
WEB_LIMITS = "-c statement_timeout=30s -c lock_timeout=10s -c idle_in_transaction_session_timeout=30s"
# While the database is down, pages say so after `timeout`. A pool that keeps trying does so at ever longer intervals
# and notices minutes too late that the database is back; one that gives up soon tries again at the next request.
WEB_POOL = {"min_size": 1, "max_size": 16, "timeout": 4, "reconnect_timeout": 2, "max_idle": 300}


def default_database(environment: Environment) -> dict[str, Any]:
    """Return DATABASES["default"]: a pool in the web process, persistent connections everywhere else.

    Django's pool does not survive a fork, and the cluster forks.
    """
    database = _from_url(environment.database_url) if environment.database_url else _embedded(environment)
    given = database.get("OPTIONS", {})
    database["OPTIONS"] = {"application_name": f"reprise-{environment.role}"} | KEEP_ALIVE | given
    if environment.role is Role.WEB:
        limits = f"{given.get('options', '')} {WEB_LIMITS}".strip()
        database["OPTIONS"] |= {"options": limits, "pool": WEB_POOL}
        database["CONN_MAX_AGE"] = 0
    else:
        database["CONN_MAX_AGE"] = 600
        database["CONN_HEALTH_CHECKS"] = True
    return database


def _from_url(url: str) -> dict[str, Any]:
    try:
        database: dict[str, Any] = dict(dj_database_url.parse(url))
    except (ValueError, KeyError) as error:
        # The URL may contain a password, so it is not in the message.
        raise SettingError(
            "DATABASE_URL cannot be read. It must look like postgresql://user:password@host:5432/name."
        ) from error
    if database["ENGINE"] != POSTGRESQL:
        raise SettingError(
            "DATABASE_URL must name a PostgreSQL database (15 or newer), such as postgresql://user:password@host:5432/name."
        )
    return database


def _embedded(environment: Environment) -> dict[str, Any]:
    return {
        "ENGINE": POSTGRESQL,
        "NAME": embedded.DATABASE,
        "USER": embedded.USER,
        "HOST": str(embedded.socket_dir(environment.home)),
    }
