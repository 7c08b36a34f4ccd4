"""The shipped settings in production: over TLS, with a database of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live import PROJECT

PRODUCTION = {
    "DATABASE_URL": "postgresql://studio@db.example/studio",
    "REPRISE_ORIGIN": "https://studio.example",
}
SHOW = """
import json
from django.conf import settings
names = '''ALLOWED_HOSTS DEBUG SESSION_COOKIE_NAME SESSION_COOKIE_SECURE SESSION_COOKIE_HTTPONLY SESSION_COOKIE_SAMESITE
CSRF_COOKIE_NAME CSRF_COOKIE_SECURE CSRF_TRUSTED_ORIGINS SECURE_SSL_REDIRECT USE_X_FORWARDED_HOST'''.split()
print(json.dumps({name: getattr(settings, name) for name in names}))
"""


def _manage(home: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "REPRISE_HOME": str(home)} | variables
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.second_tier
def test_djangos_own_deployment_check_finds_nothing(tmp_path: Path) -> None:
    done = _manage(tmp_path, "check", "--deploy", "--fail-level", "WARNING", **PRODUCTION)
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "System check identified no issues (0 silenced).\n",
        "",
    )


@pytest.mark.second_tier
@pytest.mark.parametrize(
    ("variables", "prefix", "is_secure"), [(PRODUCTION, "__Host-", True), ({"PORT": "8000"}, "", False)]
)
def test_cookies_are_bound_to_the_host_where_there_is_tls(
    tmp_path: Path, variables: dict[str, str], prefix: str, is_secure: bool
) -> None:
    done = _manage(tmp_path, "shell", "--no-imports", "-c", SHOW, **variables)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown == {
        "ALLOWED_HOSTS": ["studio.example"] if is_secure else ["localhost", "127.0.0.1", "[::1]"],
        "DEBUG": False,
        "SESSION_COOKIE_NAME": f"{prefix}reprise-session",
        "SESSION_COOKIE_SECURE": is_secure,
        "SESSION_COOKIE_HTTPONLY": True,
        "SESSION_COOKIE_SAMESITE": "Lax",
        "CSRF_COOKIE_NAME": f"{prefix}reprise-csrf",
        "CSRF_COOKIE_SECURE": is_secure,
        "CSRF_TRUSTED_ORIGINS": ["https://studio.example"] if is_secure else [],
        "SECURE_SSL_REDIRECT": is_secure,
        "USE_X_FORWARDED_HOST": False,
    }
