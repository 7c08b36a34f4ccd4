"""Wrap two points of `studio.webhooks`: both do what they do, and then wait for ever, the first time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.apps import AppConfig


class HeldConfig(AppConfig):
    name = "tests.platform.held"
    label = "held"

    def ready(self) -> None:
        from studio.webhooks import deliveries, door

        deliveries._record = _holding(deliveries._record, "held-before-commit", lambda row, *_: row)  # type: ignore[assignment]
        door.answer = _holding(
            door.answer, "held-before-answer", lambda hook, incoming, accepted: accepted.row
        )  # type: ignore[assignment]


def flag(home: Path, delivery_id: str) -> Path:
    """Return the file that says that a delivery is held."""
    return home / f"{delivery_id}.held"


def _holding(act: Callable[..., Any], start: str, row_of: Callable[..., Any]) -> Callable[..., Any]:
    def held(*args: Any) -> Any:
        done = act(*args)
        delivery_id = row_of(*args).delivery_id
        file = flag(Path(os.environ["REPRISE_HOME"]), delivery_id)
        if delivery_id.startswith(start) and not file.exists():
            file.write_text(str(os.getpid()))
            while True:
                time.sleep(60)
        return done

    return held
