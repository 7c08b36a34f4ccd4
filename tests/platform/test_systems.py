"""What macOS and Windows lack is not imported at the top of any module; what that costs is said.

A process of Linux forgets what the other system lacks, and then imports everything.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live import PROJECT

# Other people's packages are imported first: what they need of a system is their concern.
FORGET = """
import asyncio, multiprocessing, os, select, signal, socket, subprocess, sys, sysconfig, types
sysconfig.get_config_vars()  # it reads a file that is named after the system
import channels, daphne.server, django, psycopg, pydantic, twisted.internet.asyncioreactor

def forget(system, modules, names):
    sys.platform = system
    sys.modules.update(dict.fromkeys(modules))
    for module, given in names.items():
        for name in given.split():
            if hasattr(module, name):
                delattr(module, name)
"""
MACOS = """
forget("darwin", (), {
    os: "memfd_create pidfd_open sched_getaffinity sched_setaffinity eventfd splice copy_file_range setns unshare",
    signal: "pidfd_send_signal sigtimedwait sigwaitinfo",
    select: "epoll",
    socket: "SOCK_CLOEXEC SOCK_NONBLOCK SO_PEERCRED TCP_USER_TIMEOUT",
})
sys.modules["_scproxy"] = types.ModuleType("_scproxy")
multiprocessing.set_start_method("spawn", force=True)
"""
WINDOWS = """
forget("win32", ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"), {
    os: "fork forkpty geteuid getuid getegid getgid getppid killpg setsid chown fchown memfd_create pidfd_open WNOHANG",
    signal: "SIGUSR1 SIGUSR2 SIGHUP SIGALRM SIGKILL SIGQUIT setitimer ITIMER_REAL pthread_sigmask",
    select: "epoll poll",
    socket: "AF_UNIX SOCK_SEQPACKET socketpair",
})
"""
EVERYTHING = """
import importlib, pkgutil
django.setup()
import engine, studio

for package in (engine, studio):
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        # These run something when they are imported, and the models of the admin need its app.
        if found.name.split(".")[-1] not in ("__main__", "admin") and found.name != "studio.demo.release.server":
            importlib.import_module(found.name)
print(len([name for name in sys.modules if name.startswith(("engine.", "studio."))]))
"""
REFUSAL = "Reprise does not run on Windows. Use it in WSL 2 there, which is Linux."


def run(home: Path, *program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "".join((FORGET, *program))],
        cwd=PROJECT,
        env={
            "PATH": os.environ["PATH"],
            "REPRISE_HOME": str(home),
            "DJANGO_SETTINGS_MODULE": "studio.settings",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_everything_can_be_imported_on_macos(tmp_path: Path) -> None:
    done = run(tmp_path, MACOS, EVERYTHING)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 400


def test_the_check_says_what_macos_lacks(tmp_path: Path) -> None:
    done = run(tmp_path, MACOS, "sys.argv = ['manage.py', 'check']\nfrom studio.__main__ import main\nmain()")
    assert done.returncode == 0, done.stderr
    assert "(engine.W005)" in done.stderr
    assert "1 issue" in done.stderr


def test_the_engine_refuses_windows(tmp_path: Path) -> None:
    done = run(tmp_path, WINDOWS, "import engine")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"ImportError: {REFUSAL}"


@pytest.mark.parametrize(
    "module", ["studio.__main__", "studio.command.main", "studio.settings", "studio.asgi"]
)
def test_every_way_to_start_the_studio_refuses_windows_in_one_line(tmp_path: Path, module: str) -> None:
    done = run(tmp_path, WINDOWS, f"import {module}")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{REFUSAL}\n")
    assert list(tmp_path.iterdir()) == []
