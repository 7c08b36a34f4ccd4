"""A project that has everything already: users by e-mail, pages, styles, headers, a cache, and names of its own."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.projects.project import Project

FILES = Path(__file__).parent / "own_site"

SETTINGS = """
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1"]
INSTALLED_APPS += ["accounts", "pages"]
AUTH_USER_MODEL = "accounts.User"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "home"
TEMPLATES[0]["DIRS"] = [BASE_DIR / "templates"]
STATICFILES_DIRS = [BASE_DIR / "css_and_so_on"]
STATIC_ROOT = BASE_DIR / "collected"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
MIDDLEWARE.insert(0, "django.middleware.cache.UpdateCacheMiddleware")
MIDDLEWARE.insert(2, "whitenoise.middleware.WhiteNoiseMiddleware")
MIDDLEWARE += ["pages.middleware.StampMiddleware", "django.middleware.cache.FetchFromCacheMiddleware"]
DATABASES["default"]["ATOMIC_REQUESTS"] = True
CSRF_HEADER_NAME = "HTTP_X_XSRF_TOKEN"
CSRF_USE_SESSIONS = True
LANGUAGE_CODE = "de"
USE_THOUSAND_SEPARATOR = True
TIME_ZONE = "Europe/Berlin"
"""

URLS = """
from django.contrib.auth.views import LoginView, LogoutView
from pages import views
urlpatterns += [
    path("", views.home, name="home"),
    path("public/", views.public, name="audit"),
    path("workflows/", views.workflows, name="workflows"),
    path("greet/", views.greet),
    path("login/", LoginView.as_view(template_name="login.html"), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
]
"""


def build(project: Project) -> Project:
    """Make the project what it is before it meets Reprise."""
    shutil.copytree(FILES, project.directory, dirs_exist_ok=True)
    project.append("shop/settings.py", SETTINGS)
    project.append("shop/urls.py", URLS)
    project.manage("makemigrations", "accounts", "-v", "0")
    project.manage("migrate", "-v", "0")
    project.manage("collectstatic", "--noinput", "-v", "0")
    return project
