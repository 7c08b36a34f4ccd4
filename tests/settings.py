"""The shipped settings, with a home of their own and without what only slows tests down."""

import atexit
import os
import shutil
import tempfile

os.environ["REPRISE_HOME"] = tempfile.mkdtemp(prefix="reprise-tests-")
atexit.register(shutil.rmtree, os.environ["REPRISE_HOME"], ignore_errors=True)
os.environ.setdefault("REPRISE_APPS", "tests.sample")

from studio.settings import *  # noqa: E402, F403

# One hash is enough for passwords that are in the source.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
