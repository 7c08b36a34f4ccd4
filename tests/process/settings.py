"""The shipped settings, for the processes that tests start and kill."""

import os

from studio.settings import *  # noqa: F403

# So that no test waits half a minute for a zombie.
REPRISE = REPRISE | {"LEASE": float(os.environ.get("REPRISE_TEST_LEASE", "30"))}  # noqa: F405
