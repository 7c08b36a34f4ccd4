"""Run workflows in a test: in its process, its transaction and its thread, with a clock that stands still.

    with workflow_test(ship_order) as test:
        test.mock("charge", error=Declined("no"), times=2)
        test.send_event("packed", {"boxes": 2})
        instance = test.run(Order(...))
        assert instance.output == "shipped"

It runs the engine itself, with its real statements and its real replay. See docs/testing.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.testing.errors import NonDeterministicHandlerError as NonDeterministicHandlerError
    from engine.testing.errors import NotCompleteError as NotCompleteError
    from engine.testing.errors import NotFinishedError as NotFinishedError
    from engine.testing.errors import UnusedError as UnusedError
    from engine.testing.errors import WorkflowTestError as WorkflowTestError
    from engine.testing.story import WorkflowTest as WorkflowTest
    from engine.testing.story import workflow_test as workflow_test
    from engine.testing.waiting import Wait as Wait

# Imported on first use: pytest imports the plugin in this package even if Django is not set up.
_HOMES = {
    **dict.fromkeys(
        (
            "NonDeterministicHandlerError",
            "NotCompleteError",
            "NotFinishedError",
            "UnusedError",
            "WorkflowTestError",
        ),
        "engine.testing.errors",
    ),
    "Wait": "engine.testing.waiting",
    **dict.fromkeys(("WorkflowTest", "workflow_test"), "engine.testing.story"),
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return __all__
