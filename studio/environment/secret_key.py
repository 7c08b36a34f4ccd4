"""SECRET_KEY: given, or generated once and kept in a file that only its owner can read."""

import os
import secrets
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

from studio.environment.parsing import SettingError

SECRET_FILE = "secret_key"  # noqa: S105 - its name
MIN_SECRET_LENGTH = 50


def secret_key(variables: Mapping[str, str], home: Path) -> str:
    """Return SECRET_KEY, or the key kept under `home`, which the first call generates."""
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
        if not os.path.samestat(found, path.lstat()):  # a link: its target is not ours to change
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
    # The owner of the directory may be somebody else: do not follow a link.
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_urlsafe(64))
    try:
        # link, not rename: two first starts at the same time must get the same key.
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
