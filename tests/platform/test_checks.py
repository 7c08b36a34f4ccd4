"""`manage.py check` names what the Studio misses in a site's settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.auth.models import Group, Permission
from django.core.checks import CheckMessage, run_checks
from django.http import HttpResponse
from django.urls import URLPattern, include, path
from pytest_django.fixtures import Settings

from studio import checks


class OwnAuthentication(AuthenticationMiddleware):
    """A setting as a site may have it."""


def ids(found: list[CheckMessage]) -> list[str]:
    return [str(one.id) for one in found]


def test_the_shipped_settings_have_all_of_it() -> None:
    assert run_checks(tags=["studio"]) == []


@pytest.mark.parametrize("name", sorted(checks.MIDDLEWARE))
def test_a_missing_middleware_is_named(settings: Settings, name: str) -> None:
    settings.MIDDLEWARE = [one for one in settings.MIDDLEWARE if one != name]
    (found,) = checks.check_settings()
    assert (found.id, found.hint) == ("studio.E001", f'Add "{name}" to MIDDLEWARE.')


def test_a_middleware_made_from_djangos_is_as_good(settings: Settings) -> None:
    name = "django.contrib.auth.middleware.AuthenticationMiddleware"
    settings.MIDDLEWARE = [
        f"{__name__}.OwnAuthentication" if one == name else one for one in settings.MIDDLEWARE
    ]
    assert checks.check_settings() == []


def test_a_static_file_of_the_project_in_the_place_of_ours_is_named(
    settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "studio" / "frame").mkdir(parents=True)
    (tmp_path / "studio" / "frame" / "base.css").write_text("theirs")
    settings.STATICFILES_DIRS = [tmp_path]
    assert ids(checks.check_settings()) == ["studio.W002"]


def test_static_files_that_no_finder_finds_are_named(settings: Settings) -> None:
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
    assert ids(checks.check_settings()) == ["studio.E003"]


class Without:
    urlpatterns: ClassVar[list[URLPattern]] = []


class Hidden:
    urlpatterns: ClassVar[list[Any]] = [
        path("", lambda request: HttpResponse()),
        path("", include("studio.urls")),
    ]


@pytest.mark.parametrize(("urls", "found"), [(Without, "studio.E004"), (Hidden, "studio.E005")])
def test_a_studio_without_an_address_of_its_own_is_named(settings: Settings, urls: type, found: str) -> None:
    settings.ROOT_URLCONF = urls
    assert ids(checks.check_settings()) == [found]


@pytest.mark.django_db
class TestGroups:
    def test_our_own_are_well(self) -> None:
        assert checks.check_groups(databases=["default"]) == []

    def test_one_that_was_there_before_us_is_named(self) -> None:
        Group.objects.get(name="reprise-admin").permissions.clear()
        (found,) = checks.check_groups(databases=["default"])
        assert found.id == "studio.W001"
        assert 'The group "reprise-admin" has none' in found.msg

    def test_one_that_somebody_has_changed_is_theirs_to_change(self) -> None:
        view = Permission.objects.get(content_type__app_label="studio", codename="view")
        Group.objects.get(name="reprise-admin").permissions.set([view])
        assert checks.check_groups(databases=["default"]) == []

    def test_only_a_check_of_the_database_asks_it(self, django_assert_num_queries: Any) -> None:
        with django_assert_num_queries(0):
            assert checks.check_groups() == checks.check_groups(databases=[]) == []
