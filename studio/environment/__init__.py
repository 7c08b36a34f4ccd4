"""The settings that environment variables give, and why they are refused."""

from studio.environment.variables import (
    SECRET_FILE,
    Environment,
    Role,
    SettingError,
    app_names,
    is_loopback,
    read_environment,
    require_apps,
    secret_key,
)

__all__ = [
    "SECRET_FILE",
    "Environment",
    "Role",
    "SettingError",
    "app_names",
    "is_loopback",
    "read_environment",
    "require_apps",
    "secret_key",
]
