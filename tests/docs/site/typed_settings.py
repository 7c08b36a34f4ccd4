"""Settings for the type checker alone: its plugin knows the models of installed apps only."""

from studio.settings import *  # noqa: F403
from studio.settings import INSTALLED_APPS as _INSTALLED_APPS

INSTALLED_APPS = [*_INSTALLED_APPS, "shop"]
