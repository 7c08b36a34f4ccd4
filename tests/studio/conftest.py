"""People with roles, signed in."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from tests.studio import factories


@pytest.fixture
def signed_in(db: None) -> Callable[..., Client]:
    """Sign somebody in; by default an operator. Keyword arguments go to the client."""

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
