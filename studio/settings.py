"""Django's settings, all of them from the environment; README.md lists the variables."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from csp import constants as csp
from django.core.exceptions import ImproperlyConfigured

from studio.environment import SettingError, read_environment, require_apps, secret_key
from studio.environment.databases import default_database

BASE_DIR = Path(__file__).resolve().parent.parent

# REPRISE_APPS names packages that lie where people start us.
if (working_directory := str(Path.cwd())) not in sys.path:
    sys.path.append(working_directory)

try:
    ENVIRONMENT = read_environment(os.environ, project=BASE_DIR)
    SECRET_KEY = secret_key(os.environ, ENVIRONMENT.home)
    DATABASES = {"default": default_database(ENVIRONMENT)}
except SettingError as error:
    raise ImproperlyConfigured(str(error)) from error

# What encrypts the secrets that workflows keep, the newest key first; without any, SECRET_KEY does.
REPRISE_SECRET_KEYS = list(ENVIRONMENT.secret_keys)
SECRET_KEY_FALLBACKS = list(ENVIRONMENT.secret_key_fallbacks)

DEBUG = ENVIRONMENT.is_debug
ALLOWED_HOSTS = list(ENVIRONMENT.allowed_hosts)
IS_SECURE = ENVIRONMENT.is_secure

INSTALLED_APPS = [
    # As an app it only makes runserver speak ASGI; every other process would pay 27 MB and half a second for it.
    *(["daphne"] if sys.argv[1:2] == ["runserver"] else []),
    "studio",
    "engine",
    "django_q",
    "channels",
    "django_htmx",
    "csp",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    *(["studio.demo"] if ENVIRONMENT.is_demo and find_spec("studio.demo") else []),
]
try:
    require_apps(ENVIRONMENT.apps, INSTALLED_APPS)
except SettingError as error:
    raise ImproperlyConfigured(str(error)) from error
INSTALLED_APPS += ENVIRONMENT.apps

MIDDLEWARE = [
    "studio.server.log_lines.RequestIdMiddleware",
    "studio.middleware.HeadersMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    # Last, so that what it renders has a user, messages and htmx's headers.
    "studio.middleware.PathLengthMiddleware",
]

ROOT_URLCONF = "studio.urls"
ASGI_APPLICATION = "studio.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "studio.context.frame",
            ],
        },
    }
]

# The caches hold nothing that another process needs: django-q2 keeps its heartbeat in "cluster", and twice a second
# is too often for a table.
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "default"},
    "cluster": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "cluster"},
}

REPRISE_HOME = ENVIRONMENT.home
REPRISE_WORKERS = ENVIRONMENT.workers
REPRISE_SLOTS = ENVIRONMENT.slots

# What rows of django-q2's schedules may call, besides the engine's own functions. They are not signed: whoever can
# write to the database could otherwise have a worker run anything.
REPRISE_TASKS = list(ENVIRONMENT.tasks)

Q_CLUSTER = {
    "name": "reprise",
    "label": "Reprise",
    "broker_class": "engine.worker.broker.Broker",
    "orm": "default",
    "cache": "cluster",
    # One more than run workflows: it stays free for ordinary tasks.
    "workers": REPRISE_WORKERS + 1,
    # What waits in memory is lost for `retry` seconds when the cluster is killed, so little waits there.
    "queue_limit": REPRISE_WORKERS + 1,
    "bulk": 1,
    "timeout": 300,
    "retry": 600,
    "ack_failures": True,
    "max_attempts": 1,
    "save_limit": -1,
    "catch_up": False,
    # 0.5 counts down to zero exactly; with most other values a worker hung in C code is never killed.
    "guard_cycle": 0.5,
    # At INFO it tells of every shift that starts and ends.
    "log_level": "WARNING",
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
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "/"

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

STATIC_URL = "static/"
STATICFILES_DIRS = [path for path in [BASE_DIR / "static"] if path.is_dir()]
# The files are served as they lie in the tree: no collectstatic between a change and the page.
WHITENOISE_USE_FINDERS = True
# No other site has any use for them.
WHITENOISE_ALLOW_ALL_ORIGINS = False

# Security. People reach us over TLS when every origin says so; then a proxy in front speaks it.
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

# Browsers accept the prefix only from TLS, and then only from this very host.
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

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [csp.NONE],
        "script-src": [csp.SELF],
        "style-src": [csp.SELF],
        "img-src": [csp.SELF, "data:"],
        "font-src": [csp.SELF],
        # Not every browser counts a socket of the same host as 'self'. The syntax has no IPv6 addresses.
        "connect-src": [
            csp.SELF,
            *(origin.replace("http", "ws", 1) for origin in ENVIRONMENT.origins if "[" not in origin),
        ],
        "form-action": [csp.SELF],
        "base-uri": [csp.NONE],
        "frame-ancestors": [csp.NONE],
    }
}

# Where the Studio's pages come from: only they may open its sockets.
REPRISE_ORIGINS = list(ENVIRONMENT.origins)

# Only what these write into X-Forwarded-For is believed. Limits of sign-in count addresses.
REPRISE_TRUSTED_PROXIES = list(ENVIRONMENT.trusted_proxies)

# The largest thing anyone may send: params of 1 MiB, in a form that escapes each character of them as three.
REPRISE_MAX_BODY_BYTES = 4 * 1024 * 1024
REPRISE_BODY_TIMEOUT_SECONDS = 30
DATA_UPLOAD_MAX_MEMORY_SIZE = REPRISE_MAX_BODY_BYTES
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
        }
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "plain",
            "filters": ["request_id", "refusals"],
        },
    },
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "django": {"level": "INFO", "propagate": True, "handlers": []},
        "django.server": {"level": "INFO", "propagate": True, "handlers": []},
        "daphne": {"level": "WARNING"},
        # One line when it starts and one when it stops; under make run the supervisor says as much.
        "reprise.web": {"level": "WARNING" if ENVIRONMENT.is_supervised else "INFO"},
        "reprise.cluster": {"level": "WARNING" if ENVIRONMENT.is_supervised else "INFO"},
        "django-q": {"level": "WARNING", "propagate": False, "handlers": ["stderr"]},
    },
}
