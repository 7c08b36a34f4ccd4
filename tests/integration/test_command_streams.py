"""Our commands as programs in a shell: whatever they are connected to, there is an exit code and no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection

from engine import workflows
from engine.models import Attempt
from tests.studio import factories

PROJECT = Path(__file__).parents[2]
NOWHERE = "postgresql://nobody@127.0.0.1:1/nowhere"

Manage = Callable[..., subprocess.CompletedProcess[str]]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.second_tier]


@pytest.fixture
def manage() -> Manage:
    """Run a shell's line in which $M stands for `python manage.py`; the exit code is that of its first command."""
    at = connection.get_connection_params()
    url = f"postgresql://{at['user']}:{at.get('password') or ''}@/{at['dbname']}?host={at['host']}"
    if "port" in at:
        url += f"&port={at['port']}"
    variables = os.environ | {
        "DATABASE_URL": url,
        "REPRISE_APPS": "tests.sample",
        "M": f"{sys.executable} manage.py",
    }

    def run(line: str, **more: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {line}"],
            cwd=PROJECT,
            env=variables | more,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=120,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert "Exception ignored" not in done.stderr, done.stderr
        return done

    return run


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (r"$M workflow show $'order/\xff'", r'"order/\udcff" is not text in UTF-8.'),
        (r"$M workflow list --q $'\xff'", r'"\udcff" is not text in UTF-8.'),
        (r"$M verify --database $'\xff'", r'"\udcff" is not text in UTF-8.'),
        (r"$M lintworkflows $'\xff'", r'"\udcff" is not text in UTF-8.'),
        ("$M verify --database replica", "invalid choice: 'replica'"),
        ("$M verify --grace nan", '"nan" is not a number of seconds'),
        ("$M verify --timeout inf", '"inf" is not a number of seconds'),
    ],
)
def test_a_wrong_call_ends_with_two(manage: Manage, line: str, said: str) -> None:
    done = manage(line)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "$M workflow start tick --file /proc/self/mem",
            '"/proc/self/mem" cannot be read: Input/output error.\n',
        ),
        ("$M workflow start tick - <&-", "The standard input cannot be read: it is closed.\n"),
        ("$M workflow list > /dev/full", "The answer cannot be written: No space left on device.\n"),
        ("$M verify > /dev/full", "The answer cannot be written: No space left on device.\n"),
        (f"DATABASE_URL={NOWHERE} $M workflow list", "The database does not answer: "),
    ],
)
def test_what_cannot_be_done_ends_with_one_and_a_sentence(manage: Manage, line: str, said: str) -> None:
    done = manage(line)
    assert done.returncode == 1
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_verify_ends_with_two_where_it_gets_no_answer(manage: Manage) -> None:
    done = manage("$M verify", DATABASE_URL=NOWHERE)
    assert done.returncode == 2
    assert "The database does not answer: " in done.stderr


@pytest.mark.parametrize("streams", [">&-", ">&- 2>&-", "| head -0", "| head -1", "2>&1 | head -0"])
def test_who_does_not_read_changes_no_exit_code(manage: Manage, streams: str) -> None:
    instance = factories.instance("paused", id="a")
    assert manage(f"$M workflow list {streams}").returncode == 0
    assert manage(f"$M workflow show tick/none {streams}").returncode == 1
    factories.step(instance, "charge")
    Attempt.objects.all().delete()  # complete without one, which verify reports
    assert manage(f"$M verify {streams}").returncode == 1


def test_a_pipe_is_as_good_as_a_file(manage: Manage) -> None:
    order = """{"customer": "Ada", "items": [{"sku": "pen", "quantity": 2}]}"""
    done = manage(f"$M workflow start process-order --file <(echo '{order}') --id a")
    assert (done.returncode, done.stdout) == (0, "Started process-order/a.\n")


def test_characters_that_the_terminal_lacks_are_escaped(manage: Manage) -> None:
    factories.instance("errored", id="a", error={"type": "ValueError", "message": "zu groß – und mehr"})
    done = manage("$M workflow show orders/a", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert r"gro\xdf" in done.stdout


def test_a_user_without_a_readable_name_may_act(manage: Manage) -> None:
    done = manage(r"LOGNAME=$'\xff' $M workflow start tick --id a")
    assert (done.returncode, done.stderr) == (0, "")
    assert workflows["tick"].get("a").started_by == r"cli:\udcff"


def test_ctrl_c_ends_with_130(manage: Manage, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "manage.py", "workflow", "start", "tick", "-"],
        cwd=PROJECT,
        env=os.environ | {"REPRISE_APPS": "tests.sample"},
        stdin=reading,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 60
        while Path(f"/proc/{process.pid}/wchan").exists() and not _waits_for_input(process.pid):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
        os.close(reading)
        os.close(writing)
    assert (process.returncode, said) == (130, "")


def _waits_for_input(pid: int) -> bool:
    """Return whether it is in read(0): nothing before that reads its standard input."""
    try:
        number, first, *_ = Path(f"/proc/{pid}/syscall").read_text().split()
    except (OSError, ValueError):
        return False
    return number == "0" and first == "0x0"
