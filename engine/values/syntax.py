"""Python's own parser, made safe for threads."""

from __future__ import annotations

import ast
import threading

# Some Python versions count the depth of the syntax tree for all threads together. If a finalizer lets another thread
# parse meanwhile, the first one fails with a SystemError (python/cpython#106905).
_one_at_a_time = threading.Lock()


def parse(text: str, file: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of a module. Raises SyntaxError or ValueError if the text is not Python."""
    with _one_at_a_time:
        return ast.parse(text, file)
