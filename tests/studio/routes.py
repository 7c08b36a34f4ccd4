"""Every address of the Studio, with an instance to try it on."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from django.urls.resolvers import URLPattern

from engine.models import Instance
from studio.frame.guard import Rule, rule_of
from studio.urls import urlpatterns


def names() -> list[str]:
    return [str(pattern.name) for pattern in urlpatterns if isinstance(pattern, URLPattern)]


def rules() -> dict[str, Rule]:
    """Return the rule of each route."""
    found = {str(p.name): rule_of(p.callback) for p in urlpatterns if isinstance(p, URLPattern)}
    return {name: rule for name, rule in found.items() if rule is not None}


def address(name: str, instance: Instance | None = None, workflow: str = "process-order") -> str:
    """Return the address of a route."""
    pattern = next(p for p in urlpatterns if isinstance(p, URLPattern) and p.name == name)
    known: dict[str, Any] = {"name": instance.workflow if instance else workflow, "what": "params"}
    known |= {"id": instance.id if instance else "order-1", "seq": 1, "key": 1}
    return reverse(f"studio:{name}", kwargs={key: known[key] for key in pattern.pattern.converters})
