"""Every case declares the workflows that it is about, and runs them in a real shift on a real database."""

import pytest


@pytest.fixture(autouse=True)
def _story(engine_db: None, own_registry: None) -> None:
    """Commits are seen by the shift; what a case declares is gone after it."""
