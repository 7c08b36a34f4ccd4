"""Tests of `engine.testing` itself, as users write theirs: in the plain `db` of pytest-django."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _story(db: None, own_registry: None) -> None:
    """What a test declares is gone after it, and what it writes is rolled back."""
    from django.contrib.auth.models import Group

    Group.objects.all().delete()  # those of the migrations


@pytest.fixture
def nothing_is_violated(_story: None) -> Iterator[None]:
    """Check the engine's invariants on what a test leaves behind."""
    from tests.violations import violations

    yield
    assert violations() == []
