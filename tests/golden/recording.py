"""The stories behind the golden histories; not collected with the other tests. See `python -m tests.golden`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.core.management import call_command

from engine import workflows
from engine.models import Instance
from tests.golden.family import family
from tests.golden.history import Golden
from tests.golden.nested import nested
from tests.golden.secret import KEYS, secret
from tests.golden.tour import tour
from tests.golden.undone import undone
from tests.golden.wide import wide
from tests.sample.workflows import listen_for, nap, process_order, tick
from tests.shifts import run_to_end, running_shift, wait_for
from tests.travel import skip_wait

ORDER = {"customer": "ada", "items": [{"sku": "a-1", "quantity": 2}, {"sku": "b-2", "quantity": 1}]}


def order(*, approved: bool) -> Instance:
    instance = process_order.start(ORDER)  # type: ignore[arg-type]
    instance.send_event("order-approved", {"approved": approved, "comment": "seen"}, by="ada")
    return run_to_end(instance)


def order_forgotten() -> Instance:
    """Nobody approves it within a day."""
    instance = process_order.start(ORDER)  # type: ignore[arg-type]
    with running_shift():
        wait_for(instance, "waiting")
        skip_wait(instance)
        return wait_for(instance)


def two_events() -> Instance:
    instance = listen_for.start(["second", "first"])
    instance.send_event("first", {"n": 1})
    instance.send_event("second", [2, None])
    return run_to_end(instance)


def release(**params: object) -> Instance:
    return run_to_end(workflows["rolling-release"].start({"cool_down": 0.05, **params}))


def sale(**params: object) -> Instance:
    return run_to_end(workflows["order"].start({"packing": 0.01, **params}))


def backup(*, approved: bool | None) -> Instance:
    instance = workflows["database-backup"].start({"approve_within": "50ms" if approved is None else "1h"})
    if approved is not None:
        answer = {"approved": approved, "comment": "golden"}
        instance.send_event("backup-approval", answer, by="ada")
    return run_to_end(instance)


STORIES: dict[str, Callable[[], Instance]] = {
    "order-shipped": lambda: order(approved=True),
    "order-refused": lambda: order(approved=False),
    "order-forgotten": order_forgotten,
    "tick": lambda: run_to_end(tick.start()),
    "nap": lambda: run_to_end(nap.start({"seconds": 1})),
    "two-events": two_events,
    "release": lambda: release(servers=2),
    "release-stopped": lambda: release(servers=3, fail_on=2),
    "sale": sale,
    "sale-undone": lambda: sale(fails="charge"),
    "backup-kept": lambda: backup(approved=True),
    "backup-rejected": lambda: backup(approved=False),
    "backup-expired": lambda: backup(approved=None),
    "tour": tour,
    "wide": wide,
    "undone": undone,
    "family": family,
    "nested": nested,
    "secret": secret,
}


@pytest.mark.usefixtures("engine_db")
@pytest.mark.parametrize("story", STORIES)
def test_record(story: str, settings: LazySettings, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    import_module("studio.demo.workflows")
    request.getfixturevalue("restored_registry")
    settings.REPRISE = settings.REPRISE | {"HOME": tmp_path}
    settings.REPRISE = settings.REPRISE | {"SECRET_KEYS": KEYS}
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "studio.demo"]
    call_command("migrate", "demo", verbosity=0)
    golden = Golden.of(story, STORIES[story]())
    elsewhere(golden, tmp_path).save()


def elsewhere(golden: Golden, home: Path) -> Golden:
    """Name the home as it is on nobody's machine in particular."""
    text = json.dumps(asdict(golden)).replace(str(home), "/srv/reprise")
    return replace(golden, **json.loads(text))
