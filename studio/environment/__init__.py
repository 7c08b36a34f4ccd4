"""Settings from environment variables, and what is rejected."""

from studio.environment.apps import app_names, require_apps
from studio.environment.folder import require_modules
from studio.environment.parsing import SettingError
from studio.environment.secret_key import SECRET_FILE, secret_key
from studio.environment.variables import Environment, Role, is_loopback, read_environment

__all__ = [
    "SECRET_FILE",
    "Environment",
    "Role",
    "SettingError",
    "app_names",
    "is_loopback",
    "read_environment",
    "require_apps",
    "require_modules",
    "secret_key",
]
