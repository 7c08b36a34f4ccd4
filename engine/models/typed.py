"""Models whose annotations name a type, such as that of what a workflow returns: `Instance[str]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic

from typing_extensions import TypeVar  # with a default: annotations may leave the type out

# Not Any by default: mypy would then take every column for Any.
Output_co = TypeVar("Output_co", covariant=True, default=object)

if TYPE_CHECKING:

    class Typed(Generic[Output_co]):
        """For type checkers."""

else:

    class Typed:
        # Not Generic: Django could not make the model of a migration's state from a class with that base.
        def __class_getitem__(cls, output):
            return cls
