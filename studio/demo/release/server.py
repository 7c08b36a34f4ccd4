"""A small web server: `python server.py DIRECTORY WORKER` serves DIRECTORY/current, and prints its port.

It goes into the background, and ends when its directory is deleted or the process WORKER has ended.
"""

import fcntl
import os
import sys
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

directory, worker = Path(sys.argv[1]), int(sys.argv[2])
lock, port = (directory / "lock").open("w"), directory / "port"
with suppress(BlockingIOError, ProcessLookupError):
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails if the directory has its server already
    handler = partial(SimpleHTTPRequestHandler, directory=directory / "current")
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.timeout = 0.2
    port.write_text(str(server.server_port))
    if os.fork() == 0:
        log = os.open(directory / "server.log", os.O_WRONLY | os.O_CREAT)
        os.dup2(log, 1)  # the caller waits for the end of our output
        os.dup2(log, 2)
        while directory.exists():
            os.kill(worker, 0)  # fails if the worker has ended
            server.handle_request()
sys.stdout.write(port.read_text() if directory.exists() else "")
