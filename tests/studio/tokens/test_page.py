"""The commands of docs/tokens.md do what the page says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import Any

import pytest
from django.conf import settings

from studio.access import tokens
from tests.studio import factories

PAGE = settings.BASE_DIR / "docs/tokens.md"
BLOCK = re.compile(
    r"^```\n(?P<commands>[^`]*?\bcurl .*?)^```\n<!-- answers: (?P<said>.*?) -->", re.MULTILINE | re.DOTALL
)


@pytest.mark.django_db(transaction=True)
def test_a_program_signs_in_as_the_page_says(live_server: Any) -> None:
    program = shutil.which("curl")
    if program is None:
        pytest.skip("no curl on this machine")
    owner = factories.person("operator", "ana")
    given = {"STUDIO": live_server.url, "TOKEN": tokens.issue("docs", by=owner, owner=owner).text}
    found = [*BLOCK.finditer(PAGE.read_text())]
    assert found
    for block in found:
        status, said = block["said"].split(maxsplit=1)
        (command,) = [line for line in block["commands"].splitlines() if line.startswith("curl ")]
        answer = subprocess.run(
            ["/bin/sh", "-c", f"{command} -sS --noproxy '*' -w '\\n%{{http_code}}'"],
            env=os.environ | given,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert answer.endswith(f"\n{status}")
        assert said.replace(" ", "") in answer.replace(" ", "")
