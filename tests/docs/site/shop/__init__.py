"""The application in the examples of the guide. It only notes what it is asked to do."""

calls: list[tuple[object, ...]] = []  # what was done, in order


def done(what: str) -> int:
    """Return how often something was done."""
    return sum(call[0] == what for call in calls)
