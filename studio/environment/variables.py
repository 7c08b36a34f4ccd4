"""Read the settings in environment variables, and reject unsafe ones.

Takes a mapping, returns values or raises. `studio.settings` turns them into Django's settings.
"""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from studio.environment.apps import app_names
from studio.environment.folder import home_of, module_names
from studio.environment.parsing import SettingError, flag, whole, words

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")
MIN_KEY_LENGTH = 32


class Role(StrEnum):
    """What a process is for. Decides how it holds its database connections."""

    WEB = "web"
    CLUSTER = "cluster"
    COMMAND = "command"


@dataclass(frozen=True)
class Environment:
    home: Path
    database_url: str | None
    host: str
    port: int
    origins: tuple[str, ...]
    allowed_hosts: tuple[str, ...]
    apps: tuple[str, ...]
    tasks: tuple[str, ...]
    workers: int
    slots: int
    role: Role
    is_demo: bool
    is_debug: bool
    is_supervised: bool
    logs_json: bool = False
    modules: tuple[str, ...] = ()
    secret_keys: tuple[str, ...] = ()
    secret_key_fallbacks: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    health_addresses: tuple[str, ...] = ()
    wants_reload: bool | None = None

    @property
    def is_secure(self) -> bool:
        """Whether users reach the Studio over TLS, through the proxy in REPRISE_ORIGIN."""
        return all(origin.startswith("https://") for origin in self.origins)

    @property
    def is_production(self) -> bool:
        return self.database_url is not None or not is_loopback(self.host)

    @property
    def reloads(self) -> bool:
        """Whether changed code replaces the running programs: by default, where it is being developed."""
        return not self.is_production if self.wants_reload is None else self.wants_reload


def read_environment(variables: Mapping[str, str], *, folder: Path) -> Environment:
    """Read every setting of docs/settings.md. Raise SettingError at the first that is invalid or unsafe.

    `folder` is where Reprise is started.
    """
    host = (variables.get("HOST") or "127.0.0.1").strip("[]")
    port = whole(variables, "PORT", default=8000, lowest=1, highest=65535)
    given_origins = tuple(_origin(item) for item in words(variables, "REPRISE_ORIGIN"))
    hosts = _allowed_hosts(variables, given_origins)
    environment = Environment(
        home=_home(variables, folder),
        database_url=variables.get("DATABASE_URL") or None,
        host=host,
        port=port,
        origins=given_origins or tuple(f"http://{name}:{port}" for name in hosts),
        allowed_hosts=hosts,
        apps=app_names(variables),
        modules=module_names(variables, folder),
        tasks=_tasks(variables, folder),
        workers=whole(variables, "REPRISE_WORKERS", default=2, lowest=1, highest=64),
        slots=whole(variables, "REPRISE_SLOTS", default=64, lowest=1, highest=10_000),
        role=_role(variables),
        is_demo=flag(variables, "REPRISE_DEMO"),
        is_debug=flag(variables, "DEBUG"),
        is_supervised=flag(variables, "REPRISE_SUPERVISED"),
        logs_json=_logs_json(variables),
        secret_keys=_keys(variables, "REPRISE_SECRET_KEYS"),
        secret_key_fallbacks=_keys(variables, "SECRET_KEY_FALLBACKS"),
        trusted_proxies=_networks(variables, "REPRISE_TRUSTED_PROXIES"),
        health_addresses=_networks(variables, "REPRISE_HEALTH_ADDRESSES"),
        wants_reload=flag(variables, "REPRISE_RELOAD") if variables.get("REPRISE_RELOAD") else None,
    )
    if environment.is_production and environment.is_debug:
        raise SettingError(
            "DEBUG=1 shows settings and source to everyone: it is refused when DATABASE_URL is set or HOST is not a "
            "loopback address. Unset DEBUG."
        )
    return environment


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _home(variables: Mapping[str, str], folder: Path) -> Path:
    given = variables.get("REPRISE_HOME")
    return (Path(given).expanduser() if given else home_of(folder)).resolve()


def _allowed_hosts(variables: Mapping[str, str], origins: tuple[str, ...]) -> tuple[str, ...]:
    given = words(variables, "ALLOWED_HOSTS")
    if "*" in given:
        raise SettingError(
            "ALLOWED_HOSTS=* would accept requests and sockets under any name. List the names that people use."
        )
    if given:
        return given
    named = tuple(urlsplit(origin).hostname or "" for origin in origins)
    return named or LOOPBACK_HOSTS


def _tasks(variables: Mapping[str, str], folder: Path) -> tuple[str, ...]:
    """Return REPRISE_TASKS. Its default are the functions of apps and modules.

    `shop` gives `shop.*`, and so does `shop.apps.ShopConfig`.
    """
    packages = (re.sub(r"\.\w+\.[A-Z]\w*$", "", app) for app in app_names(variables))
    names = (*packages, *module_names(variables, folder))
    return words(variables, "REPRISE_TASKS") or tuple(f"{name}.*" for name in names)


def _origin(text: str) -> str:
    wrong = SettingError(
        f'REPRISE_ORIGIN holds "{text}": it takes a scheme, a host and maybe a port, as https://studio.example.'
    )
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:  # brackets that are not closed; a port that is not a number
        raise wrong from None
    is_whole = parts.scheme in ("http", "https") and parts.hostname and port != 0
    if not is_whole or parts.path.strip("/") or parts.query or re.search(r"[*@\s]", text):
        raise wrong
    return f"{parts.scheme}://{parts.netloc}"


def _networks(variables: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(_network(name, item) for item in words(variables, name))


def _network(name: str, text: str) -> str:
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        raise SettingError(
            f'{name} holds "{text}": it takes addresses and networks, as 10.0.0.5 or 10.0.0.0/8.'
        ) from None


def _logs_json(variables: Mapping[str, str]) -> bool:
    text = variables.get("REPRISE_LOG") or "text"
    if text not in ("text", "json"):
        raise SettingError(f'REPRISE_LOG is "{text}": it takes text or json.')
    return text == "json"


def _role(variables: Mapping[str, str]) -> Role:
    text = variables.get("REPRISE_ROLE") or Role.COMMAND
    try:
        return Role(text)
    except ValueError:
        raise SettingError(f'REPRISE_ROLE is "{text}": it takes one of {", ".join(Role)}.') from None


def _keys(variables: Mapping[str, str], name: str) -> tuple[str, ...]:
    keys = words(variables, name)
    if any(len(key) < MIN_KEY_LENGTH or len(set(key)) < 5 for key in keys):
        raise SettingError(
            f"{name} holds a key that is too weak: it takes keys of {MIN_KEY_LENGTH} random characters or more, "
            "separated by commas, the newest first."
        )
    return keys
