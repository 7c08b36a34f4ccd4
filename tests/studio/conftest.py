"""Users with roles, signed in."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from tests import possible
from tests.studio import factories


@pytest.fixture(autouse=True)
def _only_possible_rows(request: pytest.FixtureRequest) -> None:
    """A page rendered from impossible rows proves nothing."""
    if possible.uses_database(request):
        request.getfixturevalue("only_possible_rows")


@pytest.fixture
def signed_in(db: None) -> Callable[..., Client]:
    """Sign a user in; by default an operator. Keyword arguments go to the client."""

    def sign_in(role: str = "operator", name: str | None = None, **options: bool) -> Client:
        client = Client(**options)
        client.force_login(factories.person(role, name))
        return client

    return sign_in


@pytest.fixture
def operator(signed_in: Callable[..., Client]) -> Client:
    return signed_in("operator", "oli")


@pytest.fixture
def viewer(signed_in: Callable[..., Client]) -> Client:
    return signed_in("viewer", "vic")
