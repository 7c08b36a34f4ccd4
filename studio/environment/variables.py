"""Read the settings that people give through environment variables, and refuse what is unsafe.

Takes a mapping, returns values or raises. `studio.settings` turns them into Django's settings.
"""

import difflib
import importlib.util
import ipaddress
import os
import re
import secrets
import stat
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")
SECRET_FILE = "secret_key"  # noqa: S105 - its name
MIN_SECRET_LENGTH = 50
MIN_KEY_LENGTH = 32


class SettingError(Exception):
    """An environment variable has a value that cannot be used; the message names it and says what can."""


class Role(StrEnum):
    """What a process is for; decides how it holds its database connections."""

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
    secret_keys: tuple[str, ...] = ()
    secret_key_fallbacks: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()

    @property
    def is_secure(self) -> bool:
        """Tell whether people reach the Studio over TLS (through the proxy that REPRISE_ORIGIN names)."""
        return all(origin.startswith("https://") for origin in self.origins)

    @property
    def is_production(self) -> bool:
        return self.database_url is not None or not is_loopback(self.host)


def read_environment(variables: Mapping[str, str], *, project: Path) -> Environment:
    """Read every setting of the README's table; raise SettingError at the first that is wrong or unsafe."""
    host = (variables.get("HOST") or "127.0.0.1").strip("[]")
    port = _whole(variables, "PORT", default=8000, lowest=1, highest=65535)
    given_origins = tuple(_origin(item) for item in _list(variables, "REPRISE_ORIGIN"))
    hosts = _allowed_hosts(variables, given_origins)
    environment = Environment(
        home=_home(variables, project),
        database_url=variables.get("DATABASE_URL") or None,
        host=host,
        port=port,
        origins=given_origins or tuple(f"http://{name}:{port}" for name in hosts),
        allowed_hosts=hosts,
        apps=app_names(variables),
        tasks=_tasks(variables),
        workers=_whole(variables, "REPRISE_WORKERS", default=2, lowest=1, highest=64),
        slots=_whole(variables, "REPRISE_SLOTS", default=64, lowest=1, highest=10_000),
        role=_role(variables),
        is_demo=_flag(variables, "REPRISE_DEMO"),
        is_debug=_flag(variables, "DEBUG"),
        is_supervised=_flag(variables, "REPRISE_SUPERVISED"),
        secret_keys=_keys(variables, "REPRISE_SECRET_KEYS"),
        secret_key_fallbacks=_keys(variables, "SECRET_KEY_FALLBACKS"),
        trusted_proxies=tuple(_network(item) for item in _list(variables, "REPRISE_TRUSTED_PROXIES")),
    )
    if environment.is_production and environment.is_debug:
        raise SettingError(
            "DEBUG=1 shows settings and source to everyone: it is refused when DATABASE_URL is set or HOST is not a "
            "loopback address. Unset DEBUG."
        )
    return environment


def secret_key(variables: Mapping[str, str], home: Path) -> str:
    """Return SECRET_KEY, or the key kept under `home`, made at the first call."""
    given = variables.get("SECRET_KEY")
    if given:
        if _is_weak(given):
            raise SettingError(
                f"SECRET_KEY is too weak: it takes {MIN_SECRET_LENGTH} random characters or more, without the prefix "
                "django-insecure-. Unset it to have one made and kept under REPRISE_HOME."
            )
        return given
    path = home / SECRET_FILE
    if not path.exists():
        _make_secret(home, path)
    return _kept_secret(path)


def app_names(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return REPRISE_APPS, each once."""
    return tuple(dict.fromkeys(_list(variables, "REPRISE_APPS")))


def require_apps(names: Iterable[str], installed: Collection[str]) -> None:
    """Refuse an app that nobody can find, or that is installed in any case."""
    for name in names:
        if name in installed:
            raise SettingError(f"REPRISE_APPS names {name}, which Reprise installs by itself. Leave it out.")
        if not _is_there(name.partition(".")[0]):
            near = difflib.get_close_matches(name, _packages(Path.cwd()), n=1)
            advice = f" Did you mean {near[0]}?" if near else ""
            raise SettingError(
                f"REPRISE_APPS names {name}, and there is no such package in {Path.cwd()} or on PYTHONPATH.{advice}"
            )


def _is_there(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ValueError, ImportError):
        return False


def _packages(directory: Path) -> list[str]:
    return [path.parent.name for path in directory.glob("*/__init__.py")]


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _is_weak(key: str) -> bool:
    return len(key) < MIN_SECRET_LENGTH or key.startswith("django-insecure-") or len(set(key)) < 5


def _kept_secret(path: Path) -> str:
    """Read the key, closing its file to other accounts if it was open to them."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise SettingError(f"The secret key in {path} cannot be read: {error.strerror}.") from error
    with os.fdopen(descriptor, encoding="utf-8", errors="replace") as file:
        _close_to_others(path, descriptor)
        key = file.read().strip()
    if _is_weak(key):
        raise SettingError(
            f"The secret key in {path} is too weak: it has fewer than {MIN_SECRET_LENGTH} random characters. Delete "
            "the file to have another one made; everyone has to sign in again."
        )
    return key


def _close_to_others(path: Path, descriptor: int) -> None:
    found = os.fstat(descriptor)
    mode = stat.S_IMODE(found.st_mode)
    if not mode & 0o077:
        return
    try:
        if not os.path.samestat(found, path.lstat()):  # a link: what it leads to is not ours to change
            raise PermissionError
        os.fchmod(descriptor, 0o600)
    except OSError as error:
        raise SettingError(
            f"Other accounts may read or change the secret key in {path} (mode {mode:o}). Run: chmod 600 {path}"
        ) from error
    sys.stderr.write(
        f"The secret key in {path} was open to other accounts (mode {mode:o}); now only its owner may read it. "
        "If somebody may have read it, delete the file to have another one made.\n"
    )


def _make_secret(home: Path, path: Path) -> None:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = home / f".{SECRET_FILE}.{os.getpid()}"
    draft.unlink(missing_ok=True)
    # Not through a link that the owner of the directory, who may not be us, has laid there.
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_urlsafe(64))
    try:
        # link, not rename: of two first starts at once, both must end up with the same key.
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def _home(variables: Mapping[str, str], project: Path) -> Path:
    given = variables.get("REPRISE_HOME")
    return Path(given).expanduser().resolve() if given else (project / ".reprise").resolve()


def _allowed_hosts(variables: Mapping[str, str], origins: tuple[str, ...]) -> tuple[str, ...]:
    given = _list(variables, "ALLOWED_HOSTS")
    if "*" in given:
        raise SettingError(
            "ALLOWED_HOSTS=* would accept requests and sockets under any name. List the names that people use."
        )
    if given:
        return given
    named = tuple(urlsplit(origin).hostname or "" for origin in origins)
    return named or LOOPBACK_HOSTS


def _tasks(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Without a list of its own, what the named apps hold: `shop`, or `shop.apps.ShopConfig`, is `shop.*`."""
    packages = (re.sub(r"\.\w+\.[A-Z]\w*$", "", app) for app in app_names(variables))
    return _list(variables, "REPRISE_TASKS") or tuple(f"{package}.*" for package in packages)


def _origin(text: str) -> str:
    parts = urlsplit(text)
    is_whole = (
        parts.scheme in ("http", "https") and parts.hostname and not (parts.path.strip("/") or parts.query)
    )
    if not is_whole or "*" in text or "@" in text:
        raise SettingError(
            f'REPRISE_ORIGIN holds "{text}": it takes a scheme, a host and maybe a port, as https://studio.example.'
        )
    return f"{parts.scheme}://{parts.netloc}"


def _network(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        raise SettingError(
            f'REPRISE_TRUSTED_PROXIES holds "{text}": it takes addresses and networks, as 10.0.0.5 or 10.0.0.0/8.'
        ) from None


def _role(variables: Mapping[str, str]) -> Role:
    text = variables.get("REPRISE_ROLE") or Role.COMMAND
    try:
        return Role(text)
    except ValueError:
        raise SettingError(f'REPRISE_ROLE is "{text}": it takes one of {", ".join(Role)}.') from None


def _list(variables: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in variables.get(name, "").split(",") if item.strip())


def _keys(variables: Mapping[str, str], name: str) -> tuple[str, ...]:
    keys = _list(variables, name)
    if any(len(key) < MIN_KEY_LENGTH or len(set(key)) < 5 for key in keys):
        raise SettingError(
            f"{name} holds a key that is too weak: it takes keys of {MIN_KEY_LENGTH} random characters or more, "
            "separated by commas, the newest first."
        )
    return keys


def _flag(variables: Mapping[str, str], name: str) -> bool:
    text = variables.get(name, "").strip().lower()
    if text in ("", "0", "off", "false", "no"):
        return False
    if text in ("1", "on", "true", "yes"):
        return True
    raise SettingError(f'{name} is "{variables[name]}": it takes 1 or 0.')


def _whole(variables: Mapping[str, str], name: str, *, default: int, lowest: int, highest: int) -> int:
    text = variables.get(name) or str(default)
    if not (text.isascii() and text.isdigit()) or not lowest <= int(text) <= highest:
        raise SettingError(f'{name} is "{text}": it takes a whole number from {lowest} to {highest}.')
    return int(text)
