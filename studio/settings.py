"""Django's settings, read from environment variables; docs/settings.md lists them."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from studio.environment import SettingError, read_environment, require_apps, require_modules, secret_key
from studio.environment.databases import default_database

BASE_DIR = Path(__file__).resolve().parent.parent

# REPRISE_APPS and REPRISE_MODULES name packages and modules in the working directory.
if (working_directory := str(Path.cwd())) not in sys.path:
    sys.path.append(working_directory)

try:
    ENVIRONMENT = read_environment(os.environ, folder=Path.cwd())
    SECRET_KEY = secret_key(os.environ, ENVIRONMENT.home)
    DATABASES = {"default": default_database(ENVIRONMENT)}
except SettingError as error:
    raise ImproperlyConfigured(str(error)) from error

SECRET_KEY_FALLBACKS = list(ENVIRONMENT.secret_key_fallbacks)

DEBUG = ENVIRONMENT.is_debug
ALLOWED_HOSTS = list(ENVIRONMENT.allowed_hosts)
IS_SECURE = ENVIRONMENT.is_secure

INSTALLED_APPS = [
    # The app only makes runserver speak ASGI; it would cost every other process 27 MB and half a second.
    *(["daphne"] if sys.argv[1:2] == ["runserver"] else []),
    "studio",
    "engine",
    "django_q",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    *(["studio.demo"] if ENVIRONMENT.is_demo and find_spec("studio.demo") else []),
]
try:
    require_apps(ENVIRONMENT.apps, INSTALLED_APPS)
    require_modules(ENVIRONMENT.modules, Path.cwd())
except SettingError as error:
    raise ImproperlyConfigured(str(error)) from error
INSTALLED_APPS += ENVIRONMENT.apps

MIDDLEWARE = [
    "studio.server.log_lines.RequestIdMiddleware",
    "studio.middleware.HeadersMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "studio.server.static_files.StaticFilesMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    # Last: what it renders needs the user, messages and htmx's headers.
    "studio.middleware.PathLengthMiddleware",
]

ROOT_URLCONF = "studio.site"
ASGI_APPLICATION = "studio.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
            ],
        },
    }
]

# No other process needs what is in the caches. django-q2 keeps its heartbeat in "cluster": twice a second is too often
# for a table.
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "default"},
    "cluster": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "cluster"},
}

REPRISE = {
    "HOME": ENVIRONMENT.home,
    # Workflows outside of apps, such as those of a workflows.py in the working directory.
    "MODULES": list(ENVIRONMENT.modules),
    "WORKERS": ENVIRONMENT.workers,
    "SLOTS": ENVIRONMENT.slots,
    # What rows of django-q2's schedules may call besides the engine's own functions. They are not signed: otherwise
    # anyone who can write to the database could make a worker run anything.
    "TASKS": list(ENVIRONMENT.tasks),
    # Keys that encrypt the secrets of workflows, newest first. Without any, SECRET_KEY is used.
    "SECRET_KEYS": list(ENVIRONMENT.secret_keys),
    # The origins of the Studio's pages: only they may open sockets.
    "ORIGINS": list(ENVIRONMENT.origins),
    # Trust X-Forwarded-For only from these. Sign-in limits count addresses.
    "TRUSTED_PROXIES": list(ENVIRONMENT.trusted_proxies),
    "HEALTH_ADDRESSES": list(ENVIRONMENT.health_addresses) or None,  # None: this machine
}

# The cluster that runs workflows also runs django-q2's tasks and schedules. What is not set here, the engine sets
# (engine/worker/cluster/options.py).
Q_CLUSTER = {
    "name": "reprise",
    "label": "Reprise",
    "broker_class": "engine.worker.broker.Broker",
    "cache": "cluster",
}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "studio:sign-in"
LOGIN_REDIRECT_URL = "studio:home"

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

STATIC_URL = "static/"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "studio.server.static_files.HashedFilesStorage"},
}
# Serve files from the source tree, without collectstatic.
WHITENOISE_USE_FINDERS = True
# No other site needs them.
WHITENOISE_ALLOW_ALL_ORIGINS = False

# Security. If every origin is https, a proxy in front of us terminates TLS.
CSRF_TRUSTED_ORIGINS = list(ENVIRONMENT.origins) if IS_SECURE else []
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if IS_SECURE else None
SECURE_SSL_REDIRECT = IS_SECURE
SECURE_HSTS_SECONDS = 31_536_000 if IS_SECURE else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = IS_SECURE
SECURE_HSTS_PRELOAD = IS_SECURE
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"
USE_X_FORWARDED_HOST = False

# Browsers accept this prefix only over TLS, and only from this host.
COOKIE_PREFIX = "__Host-" if IS_SECURE else ""
SESSION_COOKIE_NAME = f"{COOKIE_PREFIX}reprise-session"
SESSION_COOKIE_SECURE = IS_SECURE
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_FAILURE_VIEW = "studio.frame.errors.csrf_failure"
CSRF_COOKIE_NAME = f"{COOKIE_PREFIX}reprise-csrf"
CSRF_COOKIE_SECURE = IS_SECURE
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Lax"


# As large as the Studio's own limit allows.
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 1000
DATA_UPLOAD_MAX_NUMBER_FILES = 0

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "request_id": {"()": "studio.server.log_lines.RequestIdFilter"},
        "refusals": {"()": "studio.server.log_lines.RefusalFilter"},
    },
    "formatters": {
        "plain": {
            "()": "studio.server.log_lines.OneLineFormatter",
            "format": "{asctime} {levelname} {name} [{request_id}] {message}",
            "style": "{",
        },
        "json": {"()": "studio.server.json_lines.JsonFormatter"},
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "json" if ENVIRONMENT.logs_json else "plain",
            "filters": ["request_id", "refusals"],
        },
    },
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "django": {"level": "INFO", "propagate": True, "handlers": []},
        "django.server": {"level": "INFO", "propagate": True, "handlers": []},
        "daphne": {"level": "WARNING"},
        # One line at the start and one at the end; under make run the supervisor logs both.
        "reprise.web": {"level": "WARNING" if ENVIRONMENT.is_supervised else "INFO"},
        "reprise.cluster": {"level": "WARNING" if ENVIRONMENT.is_supervised else "INFO"},
        "django-q": {"level": "WARNING", "propagate": False, "handlers": ["stderr"]},
    },
}
