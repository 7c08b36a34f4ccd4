"""nginx in front of a site and the Studio, with the lines of docs/existing-project.md."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from studio.machine.mortal import dies_with_parent
from studio.supervisor.address import answers
from tests.deploy.files import adapt, program
from tests.deploy.proxies import NGINX
from tests.live import PROJECT, free_port
from tests.projects.project import PATIENCE

BACKEND = "http://127.0.0.1:8001"
HOST = "proxy_set_header Host $host;"

SITE = """
server {{
    listen 127.0.0.1:{port};
    location / {{
        proxy_pass {site};
        proxy_set_header Host $http_host;
    }}
{studio}
}}
"""


def studio_lines() -> str:
    """Return the page's block for the Studio's prefix."""
    page = (PROJECT / "docs" / "existing-project.md").read_text()
    (block,) = re.findall(r"^ *location /ops/ \{$.*?^ *\}$", page, re.DOTALL | re.MULTILINE)
    return textwrap.dedent(block)


@contextmanager
def in_front(directory: Path, *, site: str, studio: str) -> Iterator[str]:
    """Run nginx until the block ends; yield its address, under which both are."""
    port = free_port()
    # A browser says a port only if it is not that of the scheme, and then nginx's $host leaves it out.
    lines = adapt(studio_lines(), {BACKEND: studio, HOST: "proxy_set_header Host $http_host;"})
    directory.mkdir()
    (directory / "site.conf").write_text(SITE.format(port=port, site=site, studio=lines))
    user = "user root;" if os.geteuid() == 0 else ""
    (directory / "nginx.conf").write_text(NGINX.format(directory=directory, user=user))
    log = directory / "error.log"
    nginx = subprocess.Popen(
        [program("nginx", "nginx-light"), "-p", str(directory), "-c", "nginx.conf", "-e", str(log)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=dies_with_parent(signal.SIGTERM),
    )
    try:
        deadline = time.monotonic() + PATIENCE
        while not answers("127.0.0.1", port):
            assert nginx.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        nginx.terminate()
        nginx.wait(30)
