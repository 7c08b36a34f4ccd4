"""A project that has a package or module named like one of ours is told so, whichever of both Python finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from studio.embedded import EmbeddedServer
from tests.live import PROJECT
from tests.projects.project import Project, new_project

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

ADVICE = "Reprise needs the package names engine and studio."


@pytest.fixture
def project(tmp_path: Path, postgresql: EmbeddedServer) -> Iterator[Project]:
    with new_project(tmp_path, postgresql) as project:
        yield project


@pytest.mark.parametrize("name", ["engine", "studio"])
@pytest.mark.parametrize("file", ["{}/__init__.py", "{}.py"])
def test_what_hides_a_package_of_ours_is_named(project: Project, name: str, file: str) -> None:
    project.follow_readme()
    theirs = file.format(name)
    project.write(theirs, "")
    place = project.directory / theirs.removesuffix("/__init__.py")
    said = project.manage("check", code=1).splitlines()[-1]
    assert said == (
        f"django.core.exceptions.ImproperlyConfigured: `import {name}` finds {place}, "
        f"which hides Reprise's {PROJECT / name}. Rename {place}: {ADVICE}"
    )


@pytest.mark.parametrize("name", ["engine", "studio"])
def test_what_a_package_of_ours_hides_is_named(project: Project, name: str) -> None:
    project.follow_readme()
    project.write(f"{name}/views.py", "")
    project.environment |= {"PYTHONPATH": f"{PROJECT}:{project.directory}", "PYTHONSAFEPATH": "1"}
    said = project.manage("check", code=1)
    place = project.directory / name
    assert "(engine.E012) `import " in said
    assert f"`import {name}` finds {PROJECT / name}, which hides the project's {place}." in said
    assert f"HINT: Rename {place}: {ADVICE}" in said


def test_a_project_that_uses_the_engine_only_may_silence_it(project: Project) -> None:
    project.app("studio", views="")
    project.append("shop/settings.py", 'INSTALLED_APPS += ["engine", "django_q"]\n')
    project.manage("migrate", "-v", "0", "--skip-checks")
    said = project.manage("check", code=1)
    assert f"(engine.E012) `import studio` finds {project.directory / 'studio'}" in said
    project.append("shop/settings.py", 'SILENCED_SYSTEM_CHECKS = ["engine.E012"]\n')
    assert "no issues (1 silenced)" in project.manage("check")
