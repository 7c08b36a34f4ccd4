"""The address of the list: what is searched for, its order, its columns and its place. Nothing else holds state."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from django.urls import reverse


def list_address(*, workflow: str = "", status: str = "") -> str:
    """Return the address of the list of a workflow's instances, or of those in a shown status."""
    given = {"workflow": workflow, "status": status}
    return address_of({"query": " ".join(f"{name}:{value}" for name, value in given.items() if value)})


def address_of(parameters: Mapping[str, str]) -> str:
    """Return the address of the list with these parameters, without the empty ones."""
    return f"{reverse('studio:instances')}{query_string(parameters)}"


def query_string(parameters: Mapping[str, str]) -> str:
    """Return the parameters as a query string that people can read, without the empty ones."""
    return f"?{urlencode({name: value for name, value in parameters.items() if value}, safe=':,*')}"
