"""The tutorial, done as it is written: each file, each command, and what they print."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from itertools import count
from pathlib import Path

import pytest

from tests.live import PROJECT, free_port
from tests.projects.visitor import Visitor
from tests.tutorial.page import Command, File, Step, prints, steps_of
from tests.tutorial.reader import Reader

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

PAGE = PROJECT / "docs" / "tutorial.md"
PORT, CHECKOUT, DATABASE = "8000", "path/to/reprise", "postgresql://office:password@db.example:5432/office"
PASSWORD = "choose-a-better-one"
# What makes the environment, or takes root.
NOT_RUN = ("mkdir office", "python3 -m venv", ". .venv", "pip install", "sudo ")
OPTIONS = f"""
[mypy]
cache_dir = {PROJECT / ".mypy_cache" / "tutorial"}
plugins = mypy_django_plugin.main, pydantic.mypy
strict = true

[mypy.plugins.django-stubs]
django_settings_module = studio.settings
"""


class Actions:
    """What the page asks of people in words."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.orders = (f"A-{number}" for number in count(100))

    def look_at_the_studio(self, reader: Reader) -> None:
        """Sign in as `admin`, start a reimbursement with the form, and answer it."""
        self.admin = Visitor(self.url)
        found = re.search(r"password: (\S+)", reader.said("reprise run"))
        assert found is not None
        home = self.admin.sign_in("admin", found[1], path="/")
        assert "reimburse" in home.text
        params = {"employee": "Ada", "amount": 100}
        self.admin.post("/workflows/reimburse/start/", params=json.dumps(params), id="first")
        self._answer(reader, self.admin, "reimburse/first", "approved")
        reader.until_it_prints("reprise workflow show reimburse/first", "reimburse/first complete …")

    def start_from_the_form(self, reader: Reader) -> None:
        page = self.admin.get("/workflows/refund/start/")
        assert "&quot;reason&quot;: &quot;&quot;" in page.text
        params = {"order": "A-7", "reason": "Too small."}
        self.admin.post("/workflows/refund/start/", page, params=json.dumps(params), id="A-7")

    def approve_as_ana(self, reader: Reader) -> None:
        ana = Visitor(self.url)
        ana.sign_in("ana", PASSWORD, path="/approvals/")
        self._answer(reader, ana, "refund/A-7", "approve")
        reader.until_it_prints("reprise workflow show refund/A-7", 'refund/A-7 complete …"paid 30.00 EUR"…')

    def use_production(self, reader: Reader) -> None:
        """Start, answer and finish an instance; open the Studio as its proxy does."""
        order = next(self.orders)
        params = json.dumps({"order": order, "reason": "It hums."})
        for line in (
            f"reprise workflow start refund '{params}' --id {order}",
            f"reprise workflow answer refund/{order} decide '{{\"approve\": true}}' --by ana",
        ):
            code, printed = reader.run(line)
            assert code == 0, printed
        reader.until_it_prints(f"reprise workflow show refund/{order}", f"refund/{order} complete …")
        headers = {"Host": "office.example", "X-Forwarded-Proto": "https"}
        request = urllib.request.Request(f"{self.url}/sign-in/", headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status == 200

    def start_what_the_units_start(self, reader: Reader) -> None:
        """Do as systemd would, but for the paths."""
        for name in ("web", "workers"):
            unit = configparser.ConfigParser(interpolation=None)
            unit.optionxform = str  # type: ignore[assignment,method-assign]
            unit.read(reader.folder / f"reprise-{name}.service")
            service = unit["Service"]
            assert service["WorkingDirectory"] == "/srv/office"
            assert service["EnvironmentFile"] == "/etc/reprise/office.env"
            own = dict(word.split("=", 1) for word in service["Environment"].split())
            words = service["ExecStart"].replace(PORT, str(self.port)).removeprefix("/srv/office/.venv/bin/")
            home = {"REPRISE_HOME": str(reader.folder / ".reprise")}
            reader.start(["env", *shlex.split(words)], name, reader.environment | own | home)
        reader.until_it_prints(f"curl -s {self.url}/readyz", '{"status": "ready", "is_healthy": true, …}')
        self.use_production(reader)
        for name in ("web", "workers"):
            reader.stop(name, signal.SIGTERM)

    def _answer(self, reader: Reader, person: Visitor, instance: str, field: str) -> None:
        """Fill in the form of a request under *Approvals*."""
        reader.until_it_prints(f"reprise workflow show {instance}", f"{instance} waiting Needs an answer …")
        page = person.get("/approvals/")
        found = re.search(rf'action="([^"]*/{instance.split("/")[1]}/requests/\d+/answer/)"', page.text)
        assert found is not None, page.text
        fields = {"place": "mine", "generation": "1", f"answer/{field}": "true"}
        assert person.post(found[1], page, **fields).status == 200


def told(**replaced: str) -> list[Step]:
    """Return what the page tells, with other addresses."""
    text = PAGE.read_text()
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    return steps_of(text)


@pytest.mark.long
def test_the_tutorial_works_as_it_is_written(
    office: Path, environment: dict[str, str], production_url: str
) -> None:
    port = free_port()
    steps = told(**{PORT: str(port), CHECKOUT: str(PROJECT), DATABASE: production_url})
    reader = Reader(office, environment | {"PORT": str(port)}, Actions(port))
    try:
        reader.follow(steps)
        assert not reader.staying, "the page does not say how to stop it"
    finally:
        reader.end()


def test_its_workflow_passes_the_type_checker(office: Path) -> None:
    for step in told():
        if isinstance(step, File) and step.name.startswith("refunds/"):
            file = office / step.name
            file.parent.mkdir(exist_ok=True)
            file.with_name("__init__.py").touch()
            file.write_text(step.text)
    (office / "mypy.ini").write_text(OPTIONS)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "refunds"],
        cwd=office,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(PROJECT),
            "REPRISE_APPS": "refunds",
            "REPRISE_HOME": str(office),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_only_what_takes_root_or_makes_the_environment_is_not_run() -> None:
    skipped = [step.line for step in told() if isinstance(step, Command) and not step.is_run]
    assert skipped
    assert [line for line in skipped if not line.startswith(NOT_RUN)] == []


def test_what_a_page_shows_is_compared() -> None:
    assert prints("a  b\n…\n", "a b\nc d\n")
    assert prints("took … s", "took 0.5 s")
    assert not prints("a b", "a c")
    assert not prints("a …", "b c")
    with pytest.raises(ValueError, match="Nobody runs"):
        steps_of("```python\nx = 1\n```\n")
