"""Machines with a real network between them: network namespaces of this kernel, joined by pairs of virtual cards.

Unlike `tests.process.network`, nothing answers for the other end: TCP itself meets the loss, the silence and the cut.
It takes root, and the programs `ip` and `nft`.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from studio.embedded.place import Place
from studio.embedded.server import EmbeddedServer
from tests.deploy.files import program

CLONE_NEWNET = 0x40000000
NETWORK = "10.78"  # only inside the namespaces

LIBC = ctypes.CDLL(None, use_errno=True)

# What arrives at a card is lost by chance, or always, before anything of the machine sees it.
RULES = """
add table netdev way
delete table netdev way
table netdev way {{
    chain arriving {{
        type filter hook ingress device {card} priority 0; policy accept;
        {which} counter drop
    }}
}}
"""


class Machine:
    """A network namespace. It is gone when its process ends, which ends with the test's process."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [program("unshare", "util-linux"), "--net", "cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(b"\n")
            self._process.stdin.flush()
            has_begun = self._process.stdout.readline() == b"\n"
        except BrokenPipeError:
            has_begun = False
        if not has_begun:
            _, said = self._process.communicate()
            pytest.skip(f"network namespaces cannot be made here: {said.decode().strip()}")
        self.run("ip", "link", "set", "lo", "up")

    @property
    def pid(self) -> int:
        return self._process.pid

    def end(self) -> None:
        self._process.communicate()

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Let this thread, and the processes that it starts meanwhile, be on this machine's network."""
        here, there = (os.open(f"/proc/{whose}/ns/net", os.O_RDONLY) for whose in ("thread-self", self.pid))
        try:
            _enter(there)
            try:
                yield
            finally:
                _enter(here)
        finally:
            os.close(here)
            os.close(there)

    def run(self, *command: str, given: str = "") -> str:
        with self.inside():
            done = subprocess.run(
                command, input=given, capture_output=True, text=True, timeout=60, check=False
            )
        assert done.returncode == 0, (command, given, done.stderr)
        return done.stdout


class Link:
    """A cable between the machine of the database and another; both ends lose what arrives."""

    def __init__(self, database: Machine, other: Machine, number: int) -> None:
        self.address = f"{NETWORK}.{number}.1"  # of the database, for the other
        self._ends = ((database, f"to-{other.name}", self.address), (other, "eth0", f"{NETWORK}.{number}.2"))
        card = self._ends[0][1]
        database.run(
            *("ip", "link", "add", card, "type", "veth", "peer", "name", "eth0", "netns", str(other.pid))
        )
        for machine, card, address in self._ends:
            machine.run("ip", "address", "add", f"{address}/24", "dev", card)
            machine.run("ip", "link", "set", card, "up")

    def lose(self, share: float) -> None:
        """Lose this share of the packets, each way."""
        self._drop(f"numgen random mod 1000 < {round(share * 1000)}")

    def stall(self) -> None:
        """Let nothing through, and tell nobody."""
        self._drop("")

    def cut(self) -> None:
        """Pull the plug at the database: both cards see that."""
        machine, card, _ = self._ends[0]
        machine.run("ip", "link", "set", card, "down")

    def mend(self) -> None:
        for machine, card, _ in self._ends:
            machine.run("nft", "flush", "ruleset")
            machine.run("ip", "link", "set", card, "up")

    def lost(self) -> int:
        """Return how many packets were lost since `lose`."""
        rules = [machine.run("nft", "list", "ruleset") for machine, _, _ in self._ends]
        return sum(int(text.split("counter packets ")[1].split()[0]) for text in rules)

    def _drop(self, which: str) -> None:
        for machine, card, _ in self._ends:
            machine.run("nft", "-f", "-", given=RULES.format(card=card, which=which))


class DatabaseOfMachines(EmbeddedServer):
    """A server that other machines reach by TCP, started inside its own."""

    def _settings(self, place: Place) -> dict[str, str]:
        settings = super()._settings(place)
        with Path(settings["hba_file"]).open("a") as rules:
            rules.write(f"host all all {NETWORK}.0.0/16 trust\n")
        return settings | {"listen_addresses": "*"}


def _enter(namespace: int) -> None:
    if LIBC.setns(namespace, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def require() -> None:
    """Skip the test where such machines cannot be made."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("network namespaces take root")
    program("ip", "iproute2")
    program("nft", "nftables")
