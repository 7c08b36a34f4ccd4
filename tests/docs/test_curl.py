"""The curl lines of docs/api.md and docs/tokens.md work as they are printed, against a real server with workers.

What is below a block: `<!-- answers: 201 "id": "order-1042" -->`, the status and a part of the answer. A block of JSON
after it is the whole answer.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
import urllib.request
from collections.abc import Callable
from typing import NamedTuple

import pytest

from tests.docs.pages import PROJECT
from tests.live import LiveStack

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

PAGE = "\n".join((PROJECT / "docs" / name).read_text() for name in ("api.md", "tokens.md"))
BLOCK = re.compile(
    r"^```\n(?P<script>(?:(?!```).)*?\bcurl .*?)\n```\n(?:<!-- answers: (?P<status>\d+) (?P<part>.+?) -->\n)?"
    r"(?:\n```json\n(?P<whole>.*?)\n```)?",
    re.MULTILINE | re.DOTALL,
)
ISSUE = """
from django.contrib.auth.models import User
from studio.access import tokens
from studio.access.token_rules import GIVABLE
admin = User.objects.get(username="admin")
print(tokens.issue("docs", by=admin, owner=admin, verbs=GIVABLE).text)
"""
# Show the status and the headers, and say what went wrong.
SHELL = 'curl() { command curl --silent --show-error --include "$@"; }\n'
BUSY = "/api/v1/instances?status=queued&status=running&limit=1"


class Example(NamedTuple):
    script: str
    status: str
    part: str
    whole: str | None


def examples() -> list[Example]:
    return [Example(*found.group("script", "status", "part", "whole")) for found in BLOCK.finditer(PAGE)]


def test_every_call_on_the_page_says_what_it_answers() -> None:
    assert len(examples()) == PAGE.count("\ncurl ")
    assert [one.script for one in examples() if not one.status] == []


def test_every_call_on_the_page_works(make_stack: Callable[..., LiveStack]) -> None:
    stack = make_stack().start()
    token = stack.django(ISSUE).strip()
    names = f"STUDIO={stack.url}\nTOKEN={token}\n"
    for one in examples():
        wait_until_parked(stack, token)
        script = one.script.replace("http://127.0.0.1:8000", stack.url).replace("rpr_…", token)
        done = subprocess.run(
            ["bash", "-euc", SHELL + names + script], capture_output=True, text=True, timeout=60, check=False
        )
        head, _, body = done.stdout.partition("\n\n")
        assert done.returncode == 0, (one.script, done.stderr)
        assert head.split()[1] == one.status, (one.script, done.stdout)
        assert one.part in f"{head}\n{body}", (one.script, done.stdout)
        if one.whole is not None:
            assert json.loads(body) == json.loads(one.whole), one.script


def wait_until_parked(stack: LiveStack, token: str) -> None:
    """Wait until the workers have done what is due, so that no answer depends on how quick they are."""
    deadline = time.monotonic() + 60
    request = urllib.request.Request(stack.url + BUSY, headers={"Authorization": f"Bearer {token}"})
    while True:
        with urllib.request.urlopen(request, timeout=30) as answer:
            if json.loads(answer.read())["instances"] == []:
                return
        assert time.monotonic() < deadline
        time.sleep(0.05)
