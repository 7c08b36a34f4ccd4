"""Declare workflows from the text of a module, as a deploy does."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from engine import workflows
from engine.declare.registry import Workflow


class Module:
    """A file with workflows. Its newest text is what the process has loaded."""

    def __init__(self, file: Path, patch: pytest.MonkeyPatch) -> None:
        self.file, self._patch = file, patch

    def load(self, text: str | bytes) -> None:
        """Write the file, and forget the workflows that were there before."""
        self._patch.setattr(workflows, "_workflows", {})
        self.file.write_bytes(text if isinstance(text, bytes) else text.encode())
        spec = importlib.util.spec_from_file_location(self.file.stem, self.file)
        assert spec is not None
        assert spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        # Not by its loader, which takes compiled code of a file with equal time and size.
        exec(compile(self.file.read_bytes(), self.file, "exec"), loaded.__dict__)

    def workflow(self, name: str = "orders") -> Workflow[Any, Any]:
        return workflows[name]
