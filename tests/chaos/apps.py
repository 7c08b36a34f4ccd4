"""The app of the kitchen sink; it also lets the processes of a cluster say what they are."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from django.apps import AppConfig

PR_SET_NAME = 15
PARTS = ("worker", "monitor", "pusher")


class ChaosConfig(AppConfig):
    name = "tests.chaos"
    label = "chaos"

    def ready(self) -> None:
        import django_q.cluster  # which wants all apps to be loaded

        for part in PARTS:
            setattr(django_q.cluster, part, _named(part, getattr(django_q.cluster, part)))


def _named(part: str, live: Callable[..., Any]) -> Callable[..., Any]:
    """Put the part's name where `ps` and `/proc` show it: from outside they look all alike."""

    def run(*arguments: Any) -> Any:
        ctypes.CDLL(None).prctl(PR_SET_NAME, f"q-{part}".encode(), 0, 0, 0)
        return live(*arguments)

    return run
