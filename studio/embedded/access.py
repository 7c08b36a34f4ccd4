"""Who may connect to the embedded server: root and the account that runs it, as the kernel identifies them.

The mode of the socket's directory keeps others out already; these rules also hold if somebody changes it.
"""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from studio.machine.account import Account

MAP = "reprise"
HOSTS_FILE = "reprise_hba.conf"
NAMES_FILE = "reprise_ident.conf"

# PostgreSQL takes these characters literally between quotes. A name that starts with a slash is a pattern.
PLAIN_NAME = re.compile(r"[\w.@$+ \\-]+", re.ASCII)


def write_rules(data: Path, account: Account | None) -> dict[str, str]:
    """Write the rule files; return the settings that name them."""
    me = Account.of(os.geteuid(), os.getegid())
    owner = account or me
    names = {Account.of(0, 0).name, me.name, owner.name}
    texts = {HOSTS_FILE: rules(names), NAMES_FILE: names_of(names)}
    for file, text in texts.items():
        _write(data / file, text, owner)
    return {"hba_file": str(data / HOSTS_FILE), "ident_file": str(data / NAMES_FILE)}


def rules(names: Iterable[str | None]) -> str:
    """Return pg_hba.conf. If any name is not plain, everyone who reaches the socket may connect."""
    method = f"peer map={MAP}" if all(map(_is_plain, names)) else "trust"
    return f"local all all {method}\nlocal replication all {method}\n"


def names_of(names: Iterable[str | None]) -> str:
    """Return pg_ident.conf: each of these system users may be any user of the database."""
    return "".join(f'{MAP} "{name}" all\n' for name in sorted(filter(_is_plain, names), key=str))


def _is_plain(name: str | None) -> bool:
    return name is not None and PLAIN_NAME.fullmatch(name) is not None


def _write(path: Path, text: str, owner: Account) -> None:
    # The directory may belong to another account: do not follow a link that it may have put there.
    with suppress(FileNotFoundError):
        path.unlink()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        if os.geteuid() == 0:
            os.fchown(descriptor, owner.uid, owner.gid)
