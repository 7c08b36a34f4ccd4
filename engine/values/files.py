"""How source files are named to people."""

from __future__ import annotations

import os
from pathlib import Path


def top_package(path: Path) -> Path:
    """Return the top package that contains a file, or the file itself."""
    top = path
    while (top.parent / "__init__.py").exists():
        top = top.parent
    return top


def shown_file(file: str) -> str:
    """Return the path relative to the working directory or, outside of it, to the parent of its top package."""
    path = Path(file)
    if path.is_relative_to(Path.cwd()):
        return os.path.relpath(path)
    return str(path.relative_to(top_package(path).parent))
