"""The settings that people get, with one more view."""

from studio.settings import *  # noqa: F403

ROOT_URLCONF = "tests.bench.bare_site"
