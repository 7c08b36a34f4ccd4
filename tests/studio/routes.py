"""Every page of the Studio, with an instance to try it on. Addresses of the API are in tests/studio/api/routes.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.urls import reverse
from django.urls.resolvers import URLPattern, URLResolver

from engine.models import Instance
from studio.frame.guard import Rule, rule_of
from studio.urls import urlpatterns


def _patterns(within: Iterable[URLPattern | URLResolver] = urlpatterns) -> Iterator[URLPattern]:
    for one in within:
        if isinstance(one, URLResolver):
            yield from _patterns(one.url_patterns)
        else:
            yield one


def names() -> list[str]:
    """Return the names of all routes, also of those of the API."""
    return [str(pattern.name) for pattern in _patterns()]


def rules() -> dict[str, Rule]:
    """Return the rule of each route of a page: people sign in, programs have tokens."""
    found = {str(pattern.name): rule_of(pattern.callback) for pattern in _patterns()}
    return {name: rule for name, rule in found.items() if rule is not None and not rule.is_by_token}


def address(name: str, instance: Instance | None = None, workflow: str = "process-order") -> str:
    """Return the address of a route."""
    pattern = next(one for one in _patterns() if one.name == name)
    known: dict[str, Any] = {"name": instance.workflow if instance else workflow, "what": "params"}
    known |= {"id": instance.id if instance else "order-1", "seq": 1, "key": 1, "slug": "nothing"}
    known |= {"file": "frame.js"}
    known |= {"fingerprint": "055ca78ed6e0157a"}  # of factories.failure("process-order")
    return reverse(f"studio:{name}", kwargs={key: known[key] for key in pattern.pattern.converters})
