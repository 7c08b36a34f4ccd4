"""Every case declares the workflows that it is about, and runs them on a real database."""

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_django.plugin import DjangoDbBlocker

from engine.models import Audit
from tests import stories
from tests.conformance.profiles import DIFFERS_ON_PURPOSE, PROFILES
from tests.counted import miscounted
from tests.guards import guarded_statuses
from tests.violations import violations

CHOSEN = os.environ.get("REPRISE_TEST_PROFILE", "plain").split(",")
# One case in this many also runs with a worker that forgets, or is woken twice.
SAMPLE = int(os.environ.get("REPRISE_TEST_SAMPLE", "1"))
DELETES = {"delete", "remove"}
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if HERE not in item.path.parents or _is_chosen(item)]


def _is_chosen(item: pytest.Item) -> bool:
    call = getattr(item, "callspec", None)
    match call and call.params.get("_profile", "plain"):
        case None | "plain":
            return True
        case "shift":
            return _may_be_virtual(item)
        case "dry_run" if not _may_be_virtual(item) or DIFFERS_ON_PURPOSE in item.name:
            return False
    return zlib.crc32(item.nodeid.encode()) % SAMPLE == 0


def _may_be_virtual(item: Any) -> bool:
    """Return whether the plain case may run on virtual time; if not, this profile would repeat it."""
    of_stories = (stories.run_to_end, stories.wait_for, stories.running_shift)
    is_of_stories = any(getattr(item.module, one.__name__, None) is one for one in of_stories)
    return is_of_stories and "shifts" not in item.function.__code__.co_names


@pytest.fixture(scope="package", autouse=True)
def _statuses(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Refuse every change of a status that the tables of `engine.values.states` do not name."""
    with django_db_blocker.unblock(), guarded_statuses():
        yield


@pytest.fixture(autouse=True)
def _story(engine_db: None, own_registry: None) -> None:
    """Let the shift see commits, and remove what a case declares after it."""


@pytest.fixture
def nothing_is_violated(_story: None) -> Iterator[None]:
    """Check the engine's invariants on what a case leaves behind."""
    yield
    assert violations() == []


@pytest.fixture(autouse=True)
def _all_is_counted(_story: None, request: pytest.FixtureRequest) -> Iterator[None]:
    """Compare what was counted of the workflows with the rows that a case leaves behind, unless it deletes some."""
    yield
    if (
        not DELETES & {*request.function.__code__.co_names}
        and not Audit.objects.filter(verb="delete").exists()
    ):
        assert miscounted() == []


def _tier(profile: str) -> Any:
    return pytest.param(profile, marks=() if profile == "plain" else pytest.mark.second_tier)


@pytest.fixture(autouse=True, params=map(_tier, CHOSEN) if len(CHOSEN) > 1 else None)
def _profile(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the case under each profile that REPRISE_TEST_PROFILE names, with commas between them."""
    PROFILES[getattr(request, "param", CHOSEN[0])](monkeypatch)
