"""`manage.py studio`: what it starts, and that it leaves no process behind."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher

from studio.embedded import EmbeddedServer, socket_dir
from studio.supervisor.programs import Child
from tests.conftest import copy_database, home_directory
from tests.live import PASSWORD, PROJECT, LiveStack
from tests.processes import environment, marked, serving

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

MakeStack = Callable[..., LiveStack]


@pytest.fixture(scope="module")
def stack(migrated_home: Path) -> Iterator[LiveStack]:
    """A stack for the tests that leave it working, whatever they kill of it."""
    with home_directory() as home:
        copy_database(migrated_home, home)
        stack = LiveStack(home).start()
        try:
            yield stack
        finally:
            stack.stop()


def _status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=10) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


def _named(stack: LiveStack, part: str) -> list[int]:
    return [pid for pid, command in marked(stack.run).items() if part in command]


def _slowdown() -> float:
    """Return how many times longer work takes just now than on a machine that is idle otherwise."""
    began, used = time.monotonic(), time.thread_time()
    while time.thread_time() - used < 0.5:
        pass
    return (time.monotonic() - began) / 0.5


def _wait_for(condition: Callable[[], bool], timeout: float = 60) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_stop_signal_ends_everything_in_order_and_the_data_stays(make_stack: MakeStack) -> None:
    stack = make_stack()
    took = []
    for number, sign in enumerate((signal.SIGINT, signal.SIGTERM, signal.SIGHUP)):
        began = time.monotonic()
        stack.start()
        assert _status(f"{stack.url}/sign-in/") == 200
        took.append((time.monotonic() - began) / _slowdown())
        with psycopg.connect(stack.dsn(), autocommit=True) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS kept (number int)")
            connection.execute("INSERT INTO kept VALUES (%s)", [number])
            rows = connection.execute("SELECT number FROM kept ORDER BY 1").fetchall()

        assert stack.stop(sign) == 0
        assert rows == [(earlier,) for earlier in range(number + 1)]
        assert stack.output().rstrip().endswith("Stopped")
        stack.log.unlink()
        said = (stack.home / "postgresql.log").read_text().rstrip()
        assert said.endswith("database system is shut down")

    # The best of three, and what other tests take of the machine left out.
    assert min(took) < 10
    assert "was not properly shut down" not in said


def test_a_killed_supervisor_leaves_no_process_and_the_next_start_works(make_stack: MakeStack) -> None:
    stack = make_stack().start()
    assert stack.process is not None

    stack.process.kill()
    stack.process.wait()

    assert stack.left() == {}
    stack.log.unlink()
    stack.start()
    assert _status(f"{stack.url}/sign-in/") == 200


def test_a_second_start_on_the_same_home_names_the_first(stack: LiveStack) -> None:
    assert stack.process is not None

    second = LiveStack(stack.home, PORT=str(stack.port + 1))
    second.log = stack.home / "second.log"
    second.launch()
    assert second.process is not None
    assert second.process.wait(60) == 1
    assert "already running" in second.output()
    assert f"process {stack.process.pid}, {stack.url}" in second.output()
    assert _status(f"{stack.url}/sign-in/") == 200


def test_a_taken_port_is_named_and_nothing_is_started(make_stack: MakeStack) -> None:
    stack = make_stack(is_new=True)
    with socket.create_server(("127.0.0.1", stack.port)):
        stack.launch()
        assert stack.process is not None
        assert stack.process.wait(60) == 1
    assert f"Port {stack.port} on 127.0.0.1 is taken" in stack.output()
    assert f"PORT={stack.port + 1} make run" in stack.output()
    assert not (stack.home / "pg").exists()
    assert marked(stack.run) == {}


def test_a_port_that_another_reprise_has_is_said_to_be_its(stack: LiveStack, make_stack: MakeStack) -> None:
    other = make_stack(is_new=True, PORT=str(stack.port))
    other.launch()
    assert other.process is not None
    assert other.process.wait(60) == 1
    assert f"is taken by another Reprise, with a REPRISE_HOME of its own: {stack.url}/ " in other.output()


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"PORT": "99999"}, 'PORT is "99999": it takes a whole number from 1 to 65535.'),
        ({"ALLOWED_HOSTS": "*"}, "ALLOWED_HOSTS=* would accept"),
        ({"HOST": "0.0.0.0", "DEBUG": "1"}, "DEBUG=1 shows settings"),
        ({"SECRET_KEY": "guess"}, "SECRET_KEY is too weak"),
        ({"HOST": "192.0.2.1"}, "not an address of this machine"),
    ],
)
def test_a_wrong_setting_is_said_in_a_line_and_nothing_is_started(
    make_stack: MakeStack, variables: dict[str, str], words: str
) -> None:
    stack = make_stack(is_new=True, **variables)
    stack.launch()
    assert stack.process is not None
    assert stack.process.wait(60) == 1
    assert words in stack.output()
    assert "Traceback" not in stack.output()
    assert not (stack.home / "pg").exists()


def test_an_unreachable_database_is_named_without_its_password(make_stack: MakeStack) -> None:
    stack = make_stack(DATABASE_URL="postgresql://someone:hush-hush@127.0.0.1:1/nowhere")
    stack.launch()
    assert stack.process is not None
    assert stack.process.wait(60) == 1
    assert "The database nowhere on 127.0.0.1 does not answer" in stack.output()
    assert "hush-hush" not in stack.output()
    assert "Traceback" not in stack.output()


def test_a_database_of_ones_own_is_used_and_left_running(
    make_stack: MakeStack, postgresql: EmbeddedServer
) -> None:
    with psycopg.connect(postgresql.dsn(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE ones_own")
    url = f"postgresql://reprise@/ones_own?host={quote(str(socket_dir(postgresql.home)), safe='')}"

    stack = make_stack(is_new=True, DATABASE_URL=url).start()
    assert _status(f"{stack.url}/sign-in/") == 200
    stack.stop()

    assert not (stack.home / "pg").exists()
    with psycopg.connect(postgresql.dsn("ones_own")) as connection:
        assert connection.execute("SELECT username FROM auth_user").fetchall() == [("admin",)]


@pytest.mark.parametrize("program", ["daphne", "workers"])
def test_a_program_that_dies_is_started_again(stack: LiveStack, program: str) -> None:
    _wait_for(lambda: bool(_named(stack, program)))
    first = set(_named(stack, program))

    os.kill(min(first), signal.SIGKILL)

    _wait_for(lambda: bool(set(_named(stack, program)) - first))
    assert "ended (killed by SIGKILL); starting it again in 0.5 s" in stack.output()
    _wait_for(lambda: not first & set(_named(stack, program)))
    if program == "daphne":
        _wait_for(lambda: _answers(stack))


def test_a_database_that_dies_is_started_again(stack: LiveStack) -> None:
    lock_file = stack.home / "pg" / "18" / "postmaster.pid"
    first = int(lock_file.read_text().split()[0])

    os.kill(first, signal.SIGKILL)

    def is_back() -> bool:
        try:
            with psycopg.connect(stack.dsn()):
                return int(lock_file.read_text().split()[0]) != first
        except (psycopg.OperationalError, OSError):
            return False

    _wait_for(is_back)
    assert _status(f"{stack.url}/sign-in/") == 200


def test_the_made_up_password_is_shown_once_and_kept_nowhere(make_stack: MakeStack) -> None:
    stack = make_stack(is_new=True, REPRISE_ADMIN_PASSWORD="").start()
    line = next(line for line in stack.output().splitlines() if "First account: admin" in line)
    password = line.split("password:")[1].split()[0]
    assert len(password) >= 16
    with psycopg.connect(stack.dsn()) as connection:
        accounts = connection.execute("SELECT username, is_superuser, password FROM auth_user").fetchall()
    ((*account, hashed),) = accounts
    assert account == ["admin", True]
    assert PBKDF2PasswordHasher().verify(password, hashed)
    stack.stop()

    files = subprocess.run(
        ["grep", "-rlF", password, str(stack.home), "--exclude=output.log"], capture_output=True, text=True
    )
    assert files.stdout == ""
    stack.log.unlink()
    stack.variables["REPRISE_ADMIN_PASSWORD"] = PASSWORD
    stack.start()
    assert "First account" not in stack.output()
    assert PASSWORD not in stack.output()


def test_a_weak_password_is_refused(make_stack: MakeStack) -> None:
    stack = make_stack(is_new=True, REPRISE_ADMIN_PASSWORD="12345")
    stack.launch()
    assert stack.process is not None
    assert stack.process.wait(60) == 1
    assert "REPRISE_ADMIN_PASSWORD is refused: " in stack.output()
    assert "12345" not in stack.output()


def test_a_home_with_blanks_and_a_long_path_works(make_stack: MakeStack) -> None:
    stack = make_stack(is_new=True)
    home = stack.home / "a home, with 'blanks' and \"quotes\"" / ("long" * 30)
    home.mkdir(parents=True)
    stack.home = home
    stack.variables["REPRISE_HOME"] = str(home)
    stack.start()
    assert _status(f"{stack.url}/sign-in/") == 200


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the database as another account")
def test_root_gets_a_database_though_its_home_is_closed_to_others(make_stack: MakeStack) -> None:
    stack = make_stack(is_new=True)
    stack.home.chmod(0o700)
    try:
        stack.start()
        assert _status(f"{stack.url}/sign-in/") == 200
        assert (stack.home / "pg").is_symlink()
    finally:
        stack.stop()
        _remove_tree((stack.home / "pg").resolve())


def test_a_second_signal_hurries_a_cluster_that_will_not_stop(make_stack: MakeStack) -> None:
    stack = make_stack().start()
    assert stack.process is not None
    _wait_for(lambda: bool(_named(stack, "workers")))
    for pid in _named(stack, "workers"):
        os.kill(pid, signal.SIGSTOP)

    stack.process.send_signal(signal.SIGINT)
    stack.wait_for_output("Stopping", 60)
    stack.process.send_signal(signal.SIGINT)
    assert stack.stop(timeout=14) == 0  # the grace of its programs is longer


def _answers(stack: LiveStack) -> bool:
    try:
        return _status(f"{stack.url}/sign-in/") == 200
    except OSError:
        return False


def _remove_tree(directory: Path) -> None:
    subprocess.run(["rm", "-rf", "--one-file-system", str(directory)], check=True)


def test_the_first_password_is_handed_to_no_process(stack: LiveStack) -> None:
    _wait_for(lambda: bool(_named(stack, "workers")))
    assert stack.process is not None
    started = {*marked(stack.run), *serving(stack.home)} - {stack.process.pid}
    assert len(started) > 8
    assert [pid for pid in started if PASSWORD in str(environment(pid))] == []


def test_the_database_gets_nothing_of_the_environment_that_may_be_secret(stack: LiveStack) -> None:
    processes = serving(stack.home)
    assert len(processes) > 3
    for pid in processes:
        assert set(environment(pid)) <= {"PATH", "LANG", "TZ", "LD_LIBRARY_PATH"}


def test_settings_of_ones_own_hold_in_every_program(make_stack: MakeStack, tmp_path: Path) -> None:
    """As docs/operating.md shows it: `from studio.settings import *`, and what is to be different."""
    (tmp_path / "mysettings.py").write_text(
        "import os\n"
        "from pathlib import Path\n"
        "from studio.settings import *\n"
        'TIME_ZONE = "Europe/Berlin"\n'
        'with Path(__file__).with_name("roles").open("a") as file:\n'
        '    file.write(os.environ.get("REPRISE_ROLE", "supervisor") + "\\n")\n'
    )
    stack = make_stack(DJANGO_SETTINGS_MODULE="mysettings")
    stack.variables["PYTHONPATH"] += f":{tmp_path}"
    stack.start()
    roles = tmp_path / "roles"
    _wait_for(lambda: {"supervisor", "web", "cluster"} <= set(roles.read_text().split()))
    assert _status(f"{stack.url}/sign-in/") == 200
    assert stack.django("from django.conf import settings; print(settings.TIME_ZONE)") == "Europe/Berlin\n"


def test_a_dump_of_the_embedded_database_is_taken_while_everything_runs(
    stack: LiveStack, tmp_path: Path
) -> None:
    """With the programs and the arguments of docs/operating.md."""
    text = (PROJECT / "docs" / "operating.md").read_text()
    (line,) = (line for line in text.splitlines() if "/bin/pg_dump" in line)
    line = line.replace("python3*", f"python{sys.version_info.major}.{sys.version_info.minor}")
    line = line.replace(".venv/lib", str(Path(sys.prefix) / "lib")).replace(
        '"$PWD/.reprise/pg"', f"{stack.home}/pg"
    )
    subprocess.run(["sh", "-c", line], cwd=tmp_path, check=True, timeout=60)
    programs = Path(line.split()[0]).parent
    listed = subprocess.run(
        [programs / "pg_restore", "--list", tmp_path / "reprise.dump"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "TABLE DATA public engine_instance" in listed.stdout


def test_only_a_program_that_ends_soon_after_its_start_waits_longer_each_time() -> None:
    child = Child("workers", ["/bin/true"], {}, grace=1.0)
    pauses = []
    for ran_for in (1, 1, 1, 20, 20, 1):
        child.start(now=0.0)
        assert child.process is not None
        child.process.wait()
        child.ended(now=ran_for)
        pauses.append(child.start_again_at - ran_for)
    assert pauses == [0.5, 1, 2, 0.5, 0.5, 1]
