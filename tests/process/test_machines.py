"""Three machines with a network between them: the database, the Studio with workers, and workers alone.

Each is a network namespace. TCP itself meets a cable that is pulled, packets that get lost, and silence.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from studio.embedded import DATABASE, USER
from studio.embedded.server import EmbeddedServer
from tests.conftest import copy_database, home_directory
from tests.live import PROJECT, status_of
from tests.process.clusters import Cluster, wait_until
from tests.process.conftest import url_of
from tests.process.customer import Customer, assert_nothing_is_lost_or_repeated, begun
from tests.process.machines import DatabaseOfMachines, Link, Machine, require
from tests.process.test_networks import BACK, BACK_WITHIN

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

SHARE = 0.04  # of the packets, each way
GIVEN_UP = 9  # seconds of silence, after which every connection that waits has been
AGAIN = "has been opened again"
PORT = "8000"  # of the Studio, on its own machine


@dataclass(frozen=True)
class Site:
    """The three machines, and what runs on them. The test asks the database directly."""

    web: Machine
    links: tuple[Link, Link]  # of the web machine, and of the other
    clusters: tuple[Cluster, Cluster]
    customer: Customer

    @property
    def first(self) -> Cluster:
        return self.clusters[0]

    def count(self) -> int:
        """Return how many bodies have begun."""
        return len(begun(self.first))

    def logs(self) -> list[str]:
        return [cluster.log.read_text() for cluster in self.clusters]

    def status(self) -> int:
        """Ask the Studio, on its machine, whether it has its database."""
        with self.web.inside():
            return status_of(f"http://127.0.0.1:{PORT}/readyz")


class RemoteCustomer(Customer):
    """Starts instances from a machine of its own."""

    def __init__(self, machine: Machine, cluster: Cluster) -> None:
        super().__init__(cluster, every=0.1, seconds=0.1)
        self._machine = machine

    def _work(self) -> None:
        with self._machine.inside():
            super()._work()


@pytest.fixture
def machines() -> Iterator[list[Machine]]:
    require()
    with ExitStack() as ends:
        found = []
        for name in ("database", "web", "workers"):
            found.append(Machine(name))
            ends.callback(found[-1].end)
        yield found


@pytest.fixture
def server(migrated_home: Path, machines: list[Machine]) -> Iterator[EmbeddedServer]:
    with home_directory() as home:
        copy_database(migrated_home, home)
        server = DatabaseOfMachines(home)
        with machines[0].inside():
            server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture
def site(machines: list[Machine], server: EmbeddedServer, tmp_path: Path) -> Iterator[Site]:
    database, *others = machines
    links = tuple(Link(database, other, number) for number, other in enumerate(others, start=1))
    with ExitStack() as ends:
        clusters = []
        for machine, link in zip(others, links, strict=True):
            url = f"postgresql://{USER}@{link.address}/{DATABASE}"
            cluster = Cluster(url, tmp_path, size=2)
            cluster.dsn, cluster.notes = url_of(server), tmp_path / "notes"
            ends.callback(cluster.end)
            with machine.inside():
                cluster.launch()
            clusters.append(cluster)
        far = Cluster(f"{clusters[0].variables['DATABASE_URL']}?connect_timeout=2", tmp_path)  # never started
        far.notes = clusters[0].notes
        wait_until(lambda: all(cluster.shifts() for cluster in clusters))
        yield Site(others[0], links, tuple(clusters), RemoteCustomer(others[0], far))  # type: ignore[arg-type]


def is_back(log: str) -> bool:
    """Return whether a worker says that it has its database again: it kept its lock, or it took a new one."""
    return AGAIN in log or BACK in log


@contextmanager
def studio(site: Site) -> Iterator[None]:
    with site.web.inside():
        web = subprocess.Popen(
            [sys.executable, "-m", "daphne", "-p", PORT, "studio.asgi:application"],
            cwd=PROJECT,
            env=site.first.variables | {"REPRISE_ROLE": "web", "PORT": PORT},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    try:
        wait_until(lambda: site.status() == 200)
        yield
    finally:
        web.terminate()
        web.wait(60)


def test_lost_packets_only_cost_time(site: Site) -> None:
    for link in site.links:
        link.lose(SHARE)
    with site.customer as customer:
        wait_until(lambda: site.count() > 200)
    assert_nothing_is_lost_or_repeated(site.first, customer)
    assert all(link.lost() > 20 for link in site.links)
    statuses = site.first.query("SELECT DISTINCT status FROM engine_attempt")
    assert statuses == [("complete",)], site.logs()


# A silence of 4 s ends before any connection is given up. At 7.5 s TCP has just begun a pause of six seconds, at 12 s
# connections have been given up, and at 17 s the first tries to open them again, too.
@pytest.mark.parametrize(
    ("fault", "seconds"),
    [(Link.cut, 4), (Link.stall, 4), (Link.stall, 7.5), (Link.stall, 12), (Link.stall, 17)],
    ids=["cut", "stall-4", "stall-7.5", "stall-12", "stall-17"],
)
def test_work_goes_on_soon_after_the_database_is_reached_again(
    site: Site, fault: Callable[[Link], None], seconds: float
) -> None:
    with studio(site), site.customer as customer:
        wait_until(lambda: site.count() > 40)
        for link in site.links:
            fault(link)
        time.sleep(seconds)
        before = site.count()
        for link in site.links:
            link.mend()
        mended_at = time.monotonic()
        wait_until(lambda: site.count() > before + 10)
        assert time.monotonic() - mended_at < BACK_WITHIN, site.logs()
        wait_until(lambda: site.status() == 200)
        assert time.monotonic() - mended_at < BACK_WITHIN
        wait_until(lambda: site.count() > before + 60)
    assert_nothing_is_lost_or_repeated(site.first, customer)
    if seconds > GIVEN_UP:
        for log in site.logs():
            assert is_back(log), log


def test_a_machine_that_is_cut_off_leaves_its_work_to_the_other_and_comes_back(site: Site) -> None:
    alone = site.clusters[1]
    with site.customer as customer:
        wait_until(lambda: site.count() > 40)
        site.links[1].cut()
        before = site.count()
        time.sleep(17)
        assert site.count() > before + 60
        length = len(alone.log.read_text())
        site.links[1].mend()
        mended_at = time.monotonic()
        wait_until(lambda: is_back(alone.log.read_text()[length:]))
        assert time.monotonic() - mended_at < BACK_WITHIN
        wait_until(lambda: site.count() > before + 120)
    assert_nothing_is_lost_or_repeated(site.first, customer)
    assert "could not receive data from server: No route to host" in alone.log.read_text()
    assert not is_back(site.first.log.read_text())
