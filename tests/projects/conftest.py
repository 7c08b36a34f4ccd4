"""Projects for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from studio.embedded import EmbeddedServer
from tests.projects.project import Project, new_project


@pytest.fixture(scope="module")
def bare_project(tmp_path_factory: pytest.TempPathFactory, postgresql: EmbeddedServer) -> Iterator[Project]:
    """A project without Reprise. A module that changes it shares it among its tests."""
    with new_project(tmp_path_factory.mktemp("project"), postgresql) as project:
        yield project
