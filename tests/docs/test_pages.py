"""All the code of the guide and of the README runs as it is printed; what it calls wrong is wrong."""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from django.apps import apps

import engine
from engine import workflows
from engine.declare.messages import declared_events
from tests.docs.pages import PAGES, PROJECT, Block, as_program, blocks_of
from tests.docs.stage import Stage

SITE = Path(__file__).parent / "site"


@pytest.fixture
def stage(db: None, own_registry: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """Nothing is declared but what the page declares; `shop` is the application that its examples speak of."""
    workflows._workflows.clear()
    declared_events.clear()
    monkeypatch.syspath_prepend(str(SITE))
    stage = Stage()
    yield stage
    stage.close()
    for name in [one for one in sys.modules if one.partition(".")[0] == "shop"]:
        del sys.modules[name]
    apps.all_models.pop("shop", None)  # or the next page could not import its models
    apps.clear_cache()


@pytest.fixture
def module(request: pytest.FixtureRequest, tmp_path: Path, stage: Stage) -> Iterator[ModuleType]:
    """The module that a page is, with its code in a file, where the engine finds the source of handlers."""
    page: Path = request.getfixturevalue("page")
    module = ModuleType(f"page_{page.stem.replace('-', '_')}")
    module.__file__ = str(tmp_path / "page.py")
    Path(module.__file__).write_text(as_program(page.read_text()))
    module.__dict__["stage"] = stage
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_what_stands_on_a_page_is_so(page: Path, module: ModuleType) -> None:
    wrong: list[str] = []
    for block in blocks_of(page.read_text()):
        if not block.is_hidden:
            _forget(wrong)
        before = set(workflows)
        if block.raises:
            _is_refused(block, module)
        else:
            _execute(block, module)
        if block.is_wrong:
            wrong += set(workflows) - before


def _forget(names: list[str]) -> None:
    """Let the right way, which comes after the wrong one, have the same name."""
    for name in names:
        workflows._workflows.pop(name, None)
    names.clear()


def _execute(block: Block, module: ModuleType) -> None:
    exec(compile(block.padded(), str(module.__file__), "exec", dont_inherit=True), module.__dict__)


def _is_refused(block: Block, module: ModuleType) -> None:
    name, _, message = block.raises.partition(": ")
    error = getattr(engine, name, None) or getattr(builtins, name)
    with pytest.raises(error, match=re.escape(message)):
        _execute(block, module)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_each_wrong_example_is_proven_wrong(page: Path) -> None:
    blocks = blocks_of(page.read_text())
    assert [block.line for block in blocks if block.is_wrong and not block.is_proven] == []
    assert [block.line for block in blocks if block.raises and not block.is_wrong] == []
