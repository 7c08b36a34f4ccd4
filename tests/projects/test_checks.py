"""`manage.py check` names each piece that a project lacks, with the line to add; it never ends in a traceback."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.projects.project import Project

pytestmark = [pytest.mark.process, pytest.mark.second_tier]


class Lack(NamedTuple):
    """Lines that take something from the project, and what the check says: an id and a part of its hint."""

    settings: str
    id: str
    hint: str
    code: int = 1
    urls: str = ""


SESSIONS = "django.contrib.sessions.middleware.SessionMiddleware"
AUTHENTICATION = "django.contrib.auth.middleware.AuthenticationMiddleware"
SQLITE = {"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"}

OWN_LINE = "from django.urls import include\nurlpatterns = [*urlpatterns[:-1], "
NESTED = OWN_LINE + 'path("{}", include(([path("ops/", include("studio.urls"))], "team"), namespace="team"))]'

LACKS = {
    "studio": Lack('INSTALLED_APPS.remove("studio")', "studio.E006", 'INSTALLED_APPS += ["studio"]'),
    "django_q": Lack('INSTALLED_APPS.remove("django_q")', "engine.E001", '"django_q"'),
    "daphne": Lack('INSTALLED_APPS.remove("daphne")', "studio.W005", 'INSTALLED_APPS.insert(0, "daphne")', 0),
    "daphne-last": Lack(
        'INSTALLED_APPS.remove("daphne"); INSTALLED_APPS.append("daphne")',
        "daphne.E001",
        "must be listed before",
    ),
    "staticfiles": Lack(
        'INSTALLED_APPS.remove("django.contrib.staticfiles"); INSTALLED_APPS.remove("daphne"); '
        'INSTALLED_APPS.insert(0, "daphne")',
        "studio.E003",
        '"django.contrib.staticfiles"',
    ),
    "finders": Lack(
        'STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]',
        "studio.E003",
        "AppDirectoriesFinder",
    ),
    "sessions": Lack(f'MIDDLEWARE.remove("{SESSIONS}")', "studio.E001", f'Add "{SESSIONS}" to MIDDLEWARE'),
    "authentication": Lack(
        f'MIDDLEWARE.remove("{AUTHENTICATION}")', "studio.E001", f'Add "{AUTHENTICATION}" to MIDDLEWARE'
    ),
    "urls": Lack(
        "", "studio.E004", 'path("ops/", include("studio.urls"))', 1, "urlpatterns = urlpatterns[:-1]"
    ),
    "hidden": Lack(
        "",
        "studio.E005",
        "move its line up",
        1,
        "from django.http import HttpResponse\n"
        'urlpatterns = [path("ops/", lambda request: HttpResponse()), *urlpatterns]',
    ),
    "below-a-namespace": Lack("", "studio.E009", "ROOT_URLCONF itself", 1, NESTED.format("team/")),
    "below-an-argument": Lack("", "studio.E009", "with a fixed prefix", 1, NESTED.format("<slug:team>/")),
    "without-a-slash": Lack(
        "", "studio.E010", 'Write "ops/"', 1, f'{OWN_LINE}path("ops", include("studio.urls"))]'
    ),
    "not-collected": Lack(
        'DEBUG, STATIC_ROOT = False, BASE_DIR / "collected"\n'
        'ALLOWED_HOSTS = ["shop.example"]\n'
        'STORAGES = {"staticfiles": {"BACKEND": '
        '"django.contrib.staticfiles.storage.ManifestStaticFilesStorage"}}',
        "studio.W006",
        "collectstatic",
        0,
    ),
    "asgi": Lack("ASGI_APPLICATION = None", "studio.W003", 'ASGI_APPLICATION = "studio.asgi.application"', 0),
    "asgi-without-studio": Lack(
        'ASGI_APPLICATION = "shop.asgi.application"',
        "studio.W004",
        "application = with_studio(application)",
        0,
    ),
    "sqlite": Lack(f"DATABASES = {{'default': {SQLITE!r}}}", "engine.E005", "PostgreSQL 15"),
    "times-without-offset": Lack("USE_TZ = False", "engine.E007", "Add: USE_TZ = True"),
    "login": Lack('LOGIN_URL = "our-login"', "studio.E007", '"studio:sign-in"'),
    "unknown-setting": Lack('REPRISE = {"SLOT": 3}', "engine.E011", "docs/settings.md"),
    "wrong-setting": Lack('REPRISE = {"SLOTS": "many"}', "engine.E011", "docs/settings.md"),
    "wrong-modules": Lack('REPRISE = {"MODULES": 3}', "engine.E011", "docs/settings.md"),
    "no-dictionary": Lack("REPRISE = 3", "engine.E011", "docs/settings.md"),
    "wrong-home": Lack('REPRISE = {"HOME": 3}', "engine.E011", "docs/settings.md"),
    "no-sign-in-page": Lack(
        'from django.urls import reverse_lazy\nLOGIN_URL = reverse_lazy("our-login")',
        "studio.E007",
        '"studio:sign-in"',
    ),
    "style": Lack('STATICFILES_DIRS = [BASE_DIR / "theirs"]', "studio.W002", "Rename or remove", 0),
}


@pytest.fixture(scope="module")
def project(bare_project: Project) -> Project:
    bare_project.follow_readme()
    bare_project.write("theirs/studio/frame/tables.css", "theirs")
    return bare_project


def check(project: Project, lack: Lack, *arguments: str) -> str:
    """Check the project without a piece."""
    project.write("shop/lacking_urls.py", f"from shop.urls import *\n{lack.urls}\n")
    project.write(
        "shop/lacking.py",
        f'from shop.settings import *\n{lack.settings}\nROOT_URLCONF = "shop.lacking_urls"\n',
    )
    return project.manage("check", "--settings", "shop.lacking", *arguments, code=lack.code)


@pytest.mark.parametrize("what", LACKS)
def test_what_is_missing_or_wrong_is_named_with_its_cure(project: Project, what: str) -> None:
    said = check(project, LACKS[what])
    assert "Traceback" not in said
    assert f"({LACKS[what].id})" in said
    assert LACKS[what].hint in said
    others = {line.split("(")[1].split(")")[0] for line in said.splitlines() if line.startswith("?: (")}
    # Nothing else is wrong; the tables are not there yet.
    assert {one for one in others if not one.startswith("admin.")} - {"engine.W015"} <= {LACKS[what].id}, said


def test_another_namespace_of_the_studio_is_not_another_page(project: Project) -> None:
    renamed = f'{OWN_LINE}path("ops/", include("studio.urls", namespace="flows"))]'
    assert "studio.E" not in check(project, Lack("", "", "", 0, renamed))


@pytest.mark.parametrize("name", ["engine", "django.contrib.auth"])
def test_an_app_without_which_the_studio_cannot_be_loaded_is_one_line(project: Project, name: str) -> None:
    removed = f'INSTALLED_APPS.remove("{name}")'
    if name == "django.contrib.auth":
        removed += '; INSTALLED_APPS.remove("django.contrib.admin")'
    said = check(project, Lack(removed, "", ""))
    assert "Traceback" not in said
    assert said.endswith(f'The app "studio" needs "{name}". Add: INSTALLED_APPS += ["{name}"]\n')


@pytest.mark.parametrize(
    "command", [("workflow", "health"), ("workflow", "list"), ("workers",), ("migrate",)]
)
def test_no_command_ends_in_a_traceback_because_times_have_no_offset(
    project: Project, command: tuple[str, ...]
) -> None:
    project.write("shop/naive.py", "from shop.settings import *\nUSE_TZ = False\n")
    said = project.manage(command[0], "--settings", "shop.naive", *command[1:], code=1)
    assert "USE_TZ = True" in said
    assert "Traceback" not in said


def test_tables_that_are_missing_are_named_by_a_check_of_the_database(project: Project) -> None:
    said = project.manage("check", "--database", "default", code=1)
    assert "engine.E008" in said
    assert "studio.E008" in said
    assert said.count("HINT: Run `python manage.py migrate`.") == 2


def test_a_catch_all_page_is_not_a_sign_in_page(project: Project) -> None:
    """The site of a single-page application answers every address."""
    project.write(
        "shop/spa_urls.py",
        "from shop.urls import *\nfrom django.urls import re_path\nfrom django.http import HttpResponse\n"
        'urlpatterns += [re_path("", lambda request: HttpResponse())]\n',
    )
    project.write("shop/spa.py", 'from shop.settings import *\nROOT_URLCONF = "shop.spa_urls"\n')
    program = "from studio.access.login import login_address; print(login_address())"
    assert (
        project.manage("shell", "--no-imports", "--settings", "shop.spa", "-c", program) == "/ops/sign-in/\n"
    )
