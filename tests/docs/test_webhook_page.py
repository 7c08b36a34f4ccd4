"""The webhooks of docs/webhooks.md can be made as they are printed, and the calls work, against a real server.

A block of kind `hook` is a filled-in form. The next block with `curl` delivers to it; below it stands what is answered.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from studio.webhooks.form import LABELS, Typed, check
from studio.webhooks.schemes import SCHEMES
from tests.docs.pages import PROJECT, as_program
from tests.live import LiveStack

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

PAGE = (PROJECT / "docs" / "webhooks.md").read_text()
EXAMPLE = re.compile(
    r"^```hook\n(?P<form>.*?)\n```\n.*?^```\n(?P<script>(?:(?!```).)*?^curl .*?)\n```\n"
    r"<!-- answers: (?P<status>\d+) (?P<part>.+?) -->\n",
    re.MULTILINE | re.DOTALL,
)
FIELDS = {label: name for name, label in LABELS.items()} | {
    "A delivery": "action",
    "Parameters": "payload_from",
    "Payload": "payload_from",
    "Only if": "only_if",
}
ACTIONS = {"starts a workflow": "start", "sends an event to an instance": "event"}
MAKE = """
from django.contrib.auth.models import User
from studio.webhooks import hooks
from studio.webhooks.form import Typed, check
typed = Typed.of({given!r})
assert check(typed, is_new=True).is_good, check(typed, is_new=True).problems
print(hooks.create(typed.values, typed.secret, by=User.objects.get(username="admin")).slug)
"""
START = 'from engine import workflows; workflows["ship-order"].start(id="order-1")'
SHELL = 'curl() { command curl --silent --show-error --include "$@"; }\n'


class Example(NamedTuple):
    form: str
    script: str
    status: str
    part: str

    @property
    def typed(self) -> Typed:
        return Typed.of(dict(_fields(self.form)))


def examples() -> list[Example]:
    return [Example(*found.group("form", "script", "status", "part")) for found in EXAMPLE.finditer(PAGE)]


def _fields(form: str) -> Iterator[tuple[str, str]]:
    labels = {scheme.label: name for name, scheme in SCHEMES.items()}
    for label, first, rest in re.findall(r"^([A-Z][\w ]*):(.*)\n?((?:^  .*\n?)*)", form, re.MULTILINE):
        text = first.strip() or "\n".join(line.strip() for line in rest.splitlines())
        yield FIELDS[label], labels.get(text, ACTIONS.get(text, text))


def test_every_call_on_the_page_is_an_example() -> None:
    assert len(examples()) == PAGE.count("\ncurl ") == len(SCHEMES)
    assert {one.typed.scheme for one in examples()} == {*SCHEMES}


def test_every_call_on_the_page_works(make_stack: Callable[..., LiveStack], tmp_path: Path) -> None:
    app = tmp_path / "shown"
    app.mkdir()
    (app / "__init__.py").touch()
    (app / "workflows.py").write_text(as_program(PAGE))
    stack = make_stack(REPRISE_APPS="shown", PYTHONPATH=f"{PROJECT}:{tmp_path}").start()
    stack.django(START)
    for one in examples():
        given = {name: getattr(one.typed, name) for name in Typed.__slots__}
        slug = stack.django(MAKE.format(given=given)).split()[-1]
        names = f"ADDRESS={stack.url}/hooks/{slug}\nSECRET='{one.typed.secret}'\n"
        done = subprocess.run(
            ["bash", "-euc", SHELL + names + one.script],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, (one.script, done.stderr)
        assert done.stdout.split()[1] == one.status, (one.script, done.stdout)
        assert one.part.lower() in done.stdout.lower(), (one.script, done.stdout)


def test_each_form_is_right_in_itself(own_registry: None) -> None:
    for one in examples():
        problems = [
            problem for problem in check(one.typed, is_new=True).problems if problem.field != "workflow"
        ]
        assert problems == []
