"""Python's own parser, for threads."""

from __future__ import annotations

import ast
import threading

# Some Pythons count the depth of the tree that is built for all threads together, and a thread that is let in by a
# finalizer meanwhile makes the other one fail with a SystemError (python/cpython#106905).
_one_at_a_time = threading.Lock()


def parse(text: str, file: str = "<unknown>") -> ast.Module:
    """Return the tree of a module. Raises SyntaxError or ValueError if the text is not Python."""
    with _one_at_a_time:
        return ast.parse(text, file)
