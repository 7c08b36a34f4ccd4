"""The commands accept what the guide tells readers to type."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from studio.command.main import OWN
from tests.docs.pages import PAGES, PROJECT

LINE = re.compile(
    r"^(?:\$ )?(?:[A-Z_]+=\S+ )*(?:(?:\.venv/bin/)?python manage\.py|reprise) ([^│\n]+)$", re.MULTILINE
)
OURS = ("workflow", "workers", "lintworkflows", "secretkeys", "verify", "studio")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_command_of_a_page_is_there(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "order.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    known = get_commands()
    others = {"runserver", *OWN}
    for line in LINE.findall(page.read_text()):
        name, *arguments = shlex.split(line, comments=True)
        assert name in known or name in others, line
        if name in OURS:
            app = known[name]
            assert isinstance(app, str)
            parser = load_command_class(app, name).create_parser("manage.py", name)
            parser.parse_args(arguments)
