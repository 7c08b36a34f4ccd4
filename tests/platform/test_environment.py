"""What the environment variables mean, and which values are refused."""

import re
import stat
from pathlib import Path
from typing import Any

import pytest

from studio.environment import Environment, Role, SettingError, read_environment, secret_key
from studio.environment.databases import default_database
from studio.environment.folder import CHECKOUT

PROJECT = Path("/nowhere/project")  # started there, from this checkout
URL = "postgresql://someone:secret@db.example:5433/work?sslmode=require"


def _read(**variables: str) -> Environment:
    return read_environment(variables, folder=PROJECT)


def test_without_variables_everything_is_local() -> None:
    assert _read() == Environment(
        home=CHECKOUT / ".reprise",
        database_url=None,
        host="127.0.0.1",
        port=8000,
        origins=("http://localhost:8000", "http://127.0.0.1:8000", "http://[::1]:8000"),
        allowed_hosts=("localhost", "127.0.0.1", "[::1]"),
        apps=(),
        tasks=(),
        workers=2,
        slots=64,
        role=Role.COMMAND,
        is_demo=False,
        is_debug=False,
        is_supervised=False,
    )
    assert not _read().is_production
    assert not _read().is_secure


def test_an_origin_over_tls_names_the_only_host_and_makes_cookies_secure() -> None:
    environment = _read(REPRISE_ORIGIN="https://studio.example", PORT="9000")
    assert environment.origins == ("https://studio.example",)
    assert environment.allowed_hosts == ("studio.example",)
    assert environment.is_secure


def test_lists_are_read_without_blanks_and_empty_items() -> None:
    assert _read(REPRISE_APPS=" shop, billing ,,").apps == ("shop", "billing")
    assert _read(REPRISE_TRUSTED_PROXIES="10.0.0.5,fd00::1/8").trusted_proxies == ("10.0.0.5/32", "fd00::/8")


@pytest.mark.parametrize(
    ("variables", "is_production"),
    [
        ({"DATABASE_URL": URL}, True),
        ({"HOST": "0.0.0.0"}, True),
        ({"HOST": "studio.example"}, True),
        ({"HOST": "::1"}, False),
        ({"HOST": "[::1]"}, False),
        ({"HOST": "127.0.0.7"}, False),
        ({"HOST": "localhost"}, False),
        ({"DATABASE_URL": ""}, False),
    ],
)
def test_a_database_or_a_public_address_means_production(
    variables: dict[str, str], is_production: bool
) -> None:
    assert _read(**variables).is_production is is_production


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"ALLOWED_HOSTS": "*"}, "ALLOWED_HOSTS"),
        ({"ALLOWED_HOSTS": "studio.example, *"}, "ALLOWED_HOSTS"),
        ({"DEBUG": "1", "DATABASE_URL": URL}, "DEBUG=1"),
        ({"DEBUG": "1", "HOST": "0.0.0.0"}, "DEBUG=1"),
        ({"DEBUG": "perhaps"}, 'DEBUG is "perhaps"'),
        ({"PORT": "0"}, 'PORT is "0"'),
        ({"PORT": "65536"}, 'PORT is "65536"'),
        ({"PORT": "８０"}, 'PORT is "８０"'),
        ({"PORT": "http"}, 'PORT is "http"'),
        ({"REPRISE_WORKERS": "0"}, 'REPRISE_WORKERS is "0"'),
        ({"REPRISE_SLOTS": "-1"}, 'REPRISE_SLOTS is "-1"'),
        ({"REPRISE_ROLE": "boss"}, 'REPRISE_ROLE is "boss"'),
        ({"REPRISE_ORIGIN": "studio.example"}, "REPRISE_ORIGIN"),
        ({"REPRISE_TRUSTED_PROXIES": "10.0.0.5, proxy"}, "REPRISE_TRUSTED_PROXIES"),
        ({"REPRISE_TRUSTED_PROXIES": "*"}, "REPRISE_TRUSTED_PROXIES"),
        ({"REPRISE_HEALTH_ADDRESSES": "monitor"}, "REPRISE_HEALTH_ADDRESSES"),
        ({"REPRISE_LOG": "xml"}, 'REPRISE_LOG is "xml": it takes text or json.'),
        ({"REPRISE_ORIGIN": "https://studio.example/path"}, "REPRISE_ORIGIN"),
        ({"REPRISE_ORIGIN": "javascript://studio.example"}, "REPRISE_ORIGIN"),
        ({"REPRISE_ORIGIN": "https://*.example"}, "REPRISE_ORIGIN"),
        ({"REPRISE_ORIGIN": "https://[::1"}, "REPRISE_ORIGIN"),
        ({"REPRISE_ORIGIN": "https://studio.example:x"}, "REPRISE_ORIGIN"),
        ({"PORT": "8" * 5000}, "PORT is"),
    ],
)
def test_a_wrong_or_unsafe_value_is_refused_by_name(variables: dict[str, str], words: str) -> None:
    with pytest.raises(SettingError) as caught:
        _read(**variables)
    assert words in str(caught.value)


@pytest.mark.parametrize("key", ["short", "django-insecure-" + "abcdef" * 12, "a" * 80])
def test_a_weak_secret_key_is_refused(key: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="SECRET_KEY is too weak"):
        secret_key({"SECRET_KEY": key}, tmp_path)


def test_a_secret_key_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    first = secret_key({}, tmp_path / "home")
    assert len(first) >= 50
    assert secret_key({}, tmp_path / "home") == first
    assert secret_key({}, tmp_path / "another") != first
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["secret_key"]
    assert stat.S_IMODE((tmp_path / "home" / "secret_key").stat().st_mode) == 0o600


def test_a_given_secret_key_is_not_written_down(tmp_path: Path) -> None:
    key = "0123456789abcdefghij" * 3
    assert secret_key({"SECRET_KEY": key}, tmp_path) == key
    assert list(tmp_path.iterdir()) == []


def test_keys_of_secrets_are_read_newest_first() -> None:
    new, old = "n" * 20 + "-new-key-of-secrets", "o" * 20 + "-old-key-of-secrets"
    environment = _read(REPRISE_SECRET_KEYS=f"{new}, {old}", SECRET_KEY_FALLBACKS=old)
    assert environment.secret_keys == (new, old)
    assert environment.secret_key_fallbacks == (old,)
    assert (_read().secret_keys, _read().secret_key_fallbacks) == ((), ())


@pytest.mark.parametrize("name", ["REPRISE_SECRET_KEYS", "SECRET_KEY_FALLBACKS"])
@pytest.mark.parametrize("key", ["short", "a" * 80])
def test_a_weak_key_of_secrets_is_refused_without_repeating_it(name: str, key: str) -> None:
    with pytest.raises(SettingError, match=f"{name} holds a key that is too weak") as caught:
        _read(**{name: f"{'x1y2z3w4' * 6},{key}"})
    assert key not in str(caught.value)


def test_the_web_process_pools_its_connections_and_bounds_its_statements() -> None:
    database = default_database(_read(DATABASE_URL=URL, REPRISE_ROLE="web"))
    assert (database["HOST"], database["PORT"], database["NAME"]) == ("db.example", 5433, "work")
    assert database["CONN_MAX_AGE"] == 0
    assert database["OPTIONS"]["pool"]["max_size"] == 16
    assert database["OPTIONS"]["sslmode"] == "require"
    assert database["OPTIONS"]["options"] == (
        "-c statement_timeout=30s -c lock_timeout=10s -c idle_in_transaction_session_timeout=30s"
    )
    assert database["OPTIONS"]["tcp_user_timeout"] == 8000
    assert database["OPTIONS"]["connect_timeout"] == 5


@pytest.mark.parametrize("role", ["cluster", "command"])
def test_a_process_that_forks_keeps_connections_and_has_no_pool(role: str) -> None:
    database = default_database(_read(DATABASE_URL=URL, REPRISE_ROLE=role))
    assert database["CONN_MAX_AGE"] == 600
    assert database["CONN_HEALTH_CHECKS"] is True
    assert "pool" not in database["OPTIONS"]
    assert "options" not in database["OPTIONS"]


@pytest.mark.parametrize(
    "url", ["mysql://root:hush@db/work", "sqlite:///work.db", "hush", "redis://:hush@db/0"]
)
def test_a_database_that_is_not_postgresql_is_refused_without_repeating_the_url(url: str) -> None:
    with pytest.raises(SettingError, match="DATABASE_URL") as caught:
        default_database(_read(DATABASE_URL=url))
    assert "hush" not in str(caught.value)


class Asked(dict[str, str]):
    """Variables that remember which ones were asked for."""

    def __init__(self, **variables: str) -> None:
        super().__init__(variables)
        self.names: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.names.add(name)
        return super().get(name, default)


def test_the_guide_lists_every_variable(tmp_path: Path) -> None:
    variables = Asked()
    read_environment(variables, folder=PROJECT)
    secret_key(variables, tmp_path)
    text = (Path(__file__).parents[2] / "docs" / "settings.md").read_text()
    table = text.partition("## Environment variables")[2].partition("\n\nWith ")[0]
    listed = {name for row in table.splitlines() for name in re.findall(r"`([A-Z_]+)`", row.split(" | ")[0])}
    # The supervisor alone reads this one.
    assert listed == variables.names | {"REPRISE_ADMIN_PASSWORD"}
