"""Started by root, nothing but the supervisor runs as root; started by an ordinary account, everything is its own."""

import os
import signal
import socket
import stat
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from studio.embedded import EmbeddedServer, socket_dir
from studio.embedded.access import names_of, rules
from studio.environment import SettingError, secret_key
from studio.machine.account import Account, choose_account, private
from studio.supervisor import address
from studio.supervisor.home import give, is_ours, take_back
from tests.conftest import copy_database, home_directory
from tests.live import LiveStack
from tests.processes import environment, marked, serving
from tests.readable import Tree, readable_tree

process = [pytest.mark.process, pytest.mark.second_tier]
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start programs as other accounts")

UNREADABLE = "Web and workers run as root: "


@pytest.fixture(scope="module")
def account() -> Account:
    """The account that root's stack runs as on this machine."""
    chosen = choose_account(Path("/nowhere"), Path("/nowhere/pg"))
    assert chosen is not None
    return chosen


@pytest.fixture(scope="module")
def tree(account: Account) -> Iterator[Tree]:
    with home_directory() as directory:
        yield readable_tree(directory, account)


@pytest.fixture
def readable(tree: Tree, migrated_home: Path) -> Iterator[LiveStack]:
    """A stack that an ordinary account can read; not started yet."""
    with home_directory() as directory:
        (directory / "home").mkdir(mode=0o755)
        copy_database(migrated_home, directory / "home")
        stack = LiveStack(directory / "home", REPRISE_APPS="", REPRISE_DEMO="1", **tree.variables)
        stack.python, stack.project, stack.log = tree.python, tree.project, directory / "output.log"
        try:
            yield stack
        finally:
            if stack.process is not None:
                stack.stop()


def _owner(pid: int) -> int:
    """Return the account that a process may act as, by all of its four ids."""
    line = next(
        line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("Uid:")
    )
    (owner,) = set(line.split()[1:])
    return int(owner)


def _groups(pid: int) -> set[int]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {int(one) for line in lines if line.startswith(("Gid:", "Groups:")) for one in line.split()[1:]}


def _started(stack: LiveStack) -> set[int]:
    assert stack.process is not None
    return {*marked(stack.run), *serving(stack.home)} - {stack.process.pid}


def _wait_for(condition: Callable[[], object], timeout: float = 60) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _named(stack: LiveStack, part: str) -> set[int]:
    return {pid for pid, command in marked(stack.run).items() if part in command}


def _signs_in(stack: LiveStack) -> bool:
    try:
        with urllib.request.urlopen(f"{stack.url}/sign-in/", timeout=10) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def _modes(home: Path) -> dict[str, tuple[int, int]]:
    return {
        path.name: (path.stat().st_uid, stat.S_IMODE(path.stat().st_mode)) for path in [home, *home.iterdir()]
    }


@only_root
class TestStartedByRoot:
    pytestmark = process

    def test_nothing_but_the_supervisor_runs_as_root(self, readable: LiveStack, account: Account) -> None:
        stack = readable.start()
        assert stack.process is not None
        _wait_for(lambda: len(_named(stack, "workers")) >= 5)

        started = _started(stack)
        assert {_owner(pid) for pid in started} == {account.uid}
        assert {0} & set().union(*map(_groups, started)) == set()
        assert _owner(stack.process.pid) == 0
        assert UNREADABLE not in stack.output()
        for pid in marked(stack.run).keys() - {stack.process.pid}:
            assert environment(pid)["HOME"] == account.home
            assert "REPRISE_ADMIN_PASSWORD" not in environment(pid)
        for name, (owner, mode) in _modes(stack.home).items():
            assert mode in (0o600, 0o700), name
            assert owner == account.uid, name

    def test_programs_that_die_come_back_under_the_account_and_a_stop_ends_all(
        self, readable: LiveStack, account: Account
    ) -> None:
        stack = readable
        for sign in (signal.SIGINT, signal.SIGTERM):
            stack.start()
            for part in ("daphne", "workers"):
                first = _named(stack, part)
                os.kill(min(first), signal.SIGKILL)
                _wait_for(lambda part=part, first=first: _named(stack, part) - first)
                _wait_for(lambda part=part, first=first: not first & _named(stack, part))
            os.kill(int((stack.home / "pg" / "18" / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
            stack.wait_for_output("The embedded PostgreSQL ended; starting it again", 60)
            _wait_for(lambda: _signs_in(stack))
            assert {_owner(pid) for pid in _started(stack)} == {account.uid}
            assert stack.stop(sign) == 0
            stack.log.unlink()

    def test_a_killed_supervisor_leaves_no_process_of_the_account(self, readable: LiveStack) -> None:
        stack = readable.start()
        assert stack.process is not None
        stack.process.kill()
        stack.process.wait()
        assert stack.left() == {}

    def test_a_project_that_the_account_cannot_read_runs_as_before_and_says_so(
        self, readable: LiveStack, account: Account
    ) -> None:
        stack = readable
        shop = stack.log.parent / "closed" / "shop"
        shop.mkdir(parents=True)
        (shop / "__init__.py").touch()
        shop.parent.chmod(0o700)
        stack.variables["REPRISE_APPS"] = "shop"
        stack.variables["PYTHONPATH"] += f":{shop.parent}"
        stack.start()
        assert stack.process is not None
        _wait_for(lambda: len(_named(stack, "workers")) >= 5)
        why = f"{account} cannot run them (REPRISE_APPS names shop, and there is no such package "
        assert stack.output().count(f"{UNREADABLE}{why}") == 1
        assert {_owner(pid) for pid in marked(stack.run)} == {0}
        assert (stack.home / "secret_key").stat().st_uid == 0

    def test_a_home_that_holds_other_things_stays_as_it_is(
        self, readable: LiveStack, account: Account
    ) -> None:
        stack = readable
        (stack.home / "notes").touch()
        stack.start()
        found = _modes(stack.home)
        assert found["home"] == (0, 0o755)
        assert found["secret_key"] == (0, 0o600)
        assert f"{account} cannot run them (it may not use {stack.home})" in stack.output()

    def test_a_port_that_only_root_may_use_is_served(self, readable: LiveStack, account: Account) -> None:
        stack = readable
        reserved = next(
            (port for port in range(1023, 600, -1) if address.is_reserved(port) and _is_free(port)), 0
        )
        port = reserved or stack.port
        stack.port, stack.url = port, f"http://127.0.0.1:{port}"
        stack.variables["PORT"] = str(port)
        stack.start()
        _wait_for(lambda: _signs_in(stack))
        assert {_owner(pid) for pid in _started(stack)} == {account.uid}
        first = _named(stack, "daphne")
        os.kill(min(first), signal.SIGKILL)
        _wait_for(lambda: _named(stack, "daphne") - first)
        _wait_for(lambda: _signs_in(stack))

    def test_the_demo_writes_into_the_home(self, readable: LiveStack, account: Account) -> None:
        stack = readable.start()
        start = (
            'from engine import workflows; workflows["database-backup"].start({"approve_within": "100ms"})'
        )
        done = subprocess.run(
            [stack.python, "manage.py", "shell", "--no-imports", "-c", start],
            cwd=stack.project,
            env=stack.variables,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        with psycopg.connect(stack.dsn(), autocommit=True) as connection:
            statuses = "SELECT status FROM engine_instance"
            _wait_for(lambda: connection.execute(statuses).fetchall() == [("complete",)])
        assert (stack.home / "backups").stat().st_uid == account.uid


@only_root
@pytest.mark.process
@pytest.mark.second_tier
def test_an_ordinary_account_starts_stops_and_starts_again(
    tree: Tree, account: Account, tmp_path: Path
) -> None:
    with home_directory() as directory:
        home = directory / "home"
        home.mkdir(mode=0o755)
        os.chown(home, account.uid, account.gid)
        stack = LiveStack(home, REPRISE_APPS="", **tree.variables)
        stack.variables |= account.variables()
        stack.python, stack.project, stack.log = tree.python, tree.project, directory / "output.log"
        stack.run_by = account
        try:
            for sign in (signal.SIGINT, signal.SIGTERM):
                stack.start()
                assert {_owner(pid) for pid in _started(stack)} == {account.uid}
                assert {mode for _, mode in _modes(home).values()} == {0o600, 0o700}
                assert stack.stop(sign) == 0
                stack.log.unlink()
        finally:
            if stack.process is not None:
                stack.stop()


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


# The database


@only_root
def test_the_database_asks_the_kernel_who_connects(postgresql: EmbeddedServer) -> None:
    stranger = next(uid for uid in (1, 2, 65534) if uid != postgresql.home.stat().st_uid)
    assert postgresql.place is not None
    assert postgresql.place.account is not None
    assert stranger != postgresql.place.account.uid
    directory = socket_dir(postgresql.home)
    data, socket_file = directory.resolve(), directory / ".s.PGSQL.5432"
    # The permissions that keep others out were loosened.
    data.chmod(0o711)
    socket_file.chmod(0o777)
    try:
        refused = _connect_as(stranger, postgresql)
        allowed = _connect_as(postgresql.place.account.uid, postgresql)
    finally:
        data.chmod(0o700)
        socket_file.chmod(0o700)
    assert 'Peer authentication failed for user "reprise"' in refused
    assert allowed == "connected"
    with psycopg.connect(postgresql.dsn()) as connection:
        assert connection.execute("SELECT current_user").fetchall() == [("reprise",)]


def _connect_as(uid: int, server: EmbeddedServer) -> str:
    """Speak PostgreSQL's first two lines as another account: it need not be able to run our Python."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setuid(uid)
            with psycopg.connect(server.dsn()):
                os.write(write, b"connected")
        except psycopg.Error as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as said:
        return said.read()


def test_an_account_without_a_plain_name_still_gets_in() -> None:
    assert (
        rules(["root", "ana"]) == "local all all peer map=reprise\nlocal replication all peer map=reprise\n"
    )
    for names in (["root", None], ["root", 'a"b'], ["root", "/."]):
        assert rules(names) == "local all all trust\nlocal replication all trust\n"
    assert names_of({"root", "ana", None}) == 'reprise "ana" all\nreprise "root" all\n'


def test_the_log_of_the_database_holds_no_values(postgresql: EmbeddedServer) -> None:
    with psycopg.connect(postgresql.dsn("postgres"), autocommit=True) as connection:
        connection.execute("CREATE TEMPORARY TABLE said (text text PRIMARY KEY)")
        for _ in range(2):
            try:
                connection.execute("INSERT INTO said VALUES ('hush-hush')")
            except psycopg.errors.UniqueViolation:
                break
    said = postgresql.log.read_text()
    assert "duplicate key value" in said
    assert "hush-hush" not in said


# The home


def test_a_secret_key_that_others_may_read_is_closed_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = secret_key({}, tmp_path)
    path = tmp_path / "secret_key"
    assert capsys.readouterr().err == ""
    for mode in (0o644, 0o660, 0o601):
        path.chmod(mode)
        assert secret_key({}, tmp_path) == key
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert (
            f"The secret key in {path} was open to other accounts (mode {mode:o})" in capsys.readouterr().err
        )


def test_a_secret_key_that_cannot_be_closed_is_refused(tmp_path: Path) -> None:
    secret_key({}, tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "secret_key").chmod(0o644)
    (tmp_path / "secret_key").symlink_to(tmp_path / "elsewhere" / "secret_key")
    with pytest.raises(SettingError, match="Run: chmod 600"):
        secret_key({}, tmp_path)


@pytest.mark.parametrize("key", ["", "short", "a" * 80, "django-insecure-" + "abcdefghij" * 8])
def test_a_kept_secret_key_that_is_weak_is_refused(tmp_path: Path, key: str) -> None:
    path = tmp_path / "secret_key"
    path.write_text(key)
    path.chmod(0o600)
    with pytest.raises(SettingError, match=f"The secret key in {path} is too weak"):
        secret_key({}, tmp_path)


def test_a_link_in_the_way_of_a_new_secret_key_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept")
    home = tmp_path / "home"
    home.mkdir()
    (home / f".secret_key.{os.getpid()}").symlink_to(victim)
    assert len(secret_key({}, home)) >= 50
    assert victim.read_text() == "kept"


@pytest.mark.parametrize("link", [os.symlink, os.link])
@pytest.mark.parametrize("name", ["studio.lock", "postgresql.log"])
def test_no_file_of_somebody_elses_is_opened_in_the_home(
    tmp_path: Path, name: str, link: Callable[[Path, Path], None]
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept")
    (tmp_path / "home").mkdir()
    link(victim, tmp_path / "home" / name)
    with pytest.raises(OSError, match=r"regular file|symbolic link"):  # noqa: SIM117 - opened and written to
        with open(tmp_path / "home" / name, "w", opener=private) as file:
            file.write("overwritten")
    assert victim.read_text() == "kept"


def test_only_a_home_with_nothing_else_in_it_is_ours(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for name in ("secret_key", "pg", "studio.lock", "postgresql.log.1", "backups"):
        (home / name).touch()
    assert is_ours(home)
    (home / "thesis.tex").touch()
    assert not is_ours(home)
    (tmp_path / ".reprise").mkdir()
    (tmp_path / ".reprise" / "anything").touch()
    assert is_ours(tmp_path / ".reprise")
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    assert not is_ours(shared)


@only_root
def test_what_is_given_can_be_taken_back_and_nothing_outside_changes_hands(
    tmp_path: Path, account: Account
) -> None:
    home, victim = tmp_path / "home", tmp_path / "victim"
    (home / "backups").mkdir(parents=True)
    (home / "pg").mkdir()
    for path in (
        victim,
        home / "secret_key",
        home / "studio.lock",
        home / "backups" / "one",
        home / "pg" / "x",
    ):
        path.touch(mode=0o600)
    (home / "backups" / "link").symlink_to(victim)
    os.link(victim, home / "backups" / "second-name")

    give(home, account)
    given = {path.name: path.lstat().st_uid for path in (home, *home.rglob("*"))}
    assert given == {
        "home": account.uid,
        "backups": account.uid,
        "one": account.uid,
        "link": 0,
        "second-name": 0,
        "pg": 0,
        "x": 0,
        "secret_key": account.uid,
        "studio.lock": account.uid,
    }
    assert victim.stat().st_uid == 0

    take_back(home, account)
    assert (home.stat().st_uid, home.stat().st_gid, stat.S_IMODE(home.stat().st_mode)) == (
        0,
        account.gid,
        0o710,
    )
    assert [(home / name).stat().st_uid for name in ("secret_key", "studio.lock")] == [0, 0]


@only_root
def test_a_person_keeps_the_home_that_root_runs_from(tmp_path: Path) -> None:
    person = Account(54321, 54321, None, "/")
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, person.uid, person.gid)
    chosen = choose_account(home, home / "pg")
    assert chosen == person
    take_back(home, person)
    assert home.stat().st_uid == person.uid
