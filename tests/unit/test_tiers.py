"""Every test is in one of the two tiers, by its folder or by a mark."""

from __future__ import annotations

import pytest

from tests.tiers import FIRST, SECOND, TESTS, ModuleOfTier, tier_of

Request = pytest.FixtureRequest


def collected(request: Request, path: str, *, module: str = "", test: str = "") -> pytest.Item:
    """Make tests of a module, with or without a mark."""
    parent = pytest.Module.from_parent(request.session, path=TESTS / path)
    item = pytest.Function.from_parent(parent, name="test_it", callobj=lambda: None)
    for node, mark in ((parent, module), (item, test)):
        if mark:
            node.add_marker(mark)
    return item


@pytest.mark.parametrize(
    ("path", "module", "test", "tier"),
    [
        ("unit/test_it.py", "", "", FIRST),
        ("unit/test_it.py", "", SECOND, SECOND),
        ("process/test_it.py", FIRST, "", FIRST),
        ("process/test_it.py", SECOND, "", SECOND),
        ("process/test_it.py", SECOND, FIRST, FIRST),
        ("process/test_it.py", FIRST, SECOND, SECOND),
    ],
)
def test_the_nearest_mark_names_the_tier_or_else_the_folder(
    request: Request, path: str, module: str, test: str, tier: str
) -> None:
    item = collected(request, path, module=module, test=test)
    assert tier_of(item) == tier


def test_of_a_module_that_names_no_tier_nothing_is_collected(request: Request) -> None:
    module = ModuleOfTier.from_parent(request.session, path=TESTS / "process" / "ledger.py")
    with pytest.raises(module.CollectError, match=r"tests/process/ledger\.py names no tier\. Mark it with"):
        module.collect()
