"""Tests of `engine.testing` itself, as people write theirs: in the plain `db` of pytest-django."""

import pytest


@pytest.fixture(autouse=True)
def _story(db: None, own_registry: None) -> None:
    """What a test declares is gone after it, and what it writes is rolled back."""
    from django.contrib.auth.models import Group

    Group.objects.all().delete()  # those of the migrations
