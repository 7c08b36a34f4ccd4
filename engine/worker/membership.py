"""What a process says of itself in its row of `engine_worker`, besides what it holds."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from engine.declare.registry import workflows
from engine.version import VERSION
from engine.worker.idle_memory import memory_kb

DIGITS = 7  # of a fingerprint, as many as Git shows


@dataclass(frozen=True)
class Membership:
    """The cluster that a process belongs to. `id` is the `worker_id` of the cluster's row."""

    cluster: str = ""
    id: int | None = None

    def values(self) -> dict[str, object]:
        return {
            "cluster": self.cluster,
            "cluster_id": self.id,
            "version": VERSION,
            "code": loaded_code(),
            "memory": memory_kb() * 1024 or None,
        }


def loaded_code() -> str:
    """Return a fingerprint of all handlers that this process has loaded."""
    known = sorted((name, workflows[name].fingerprint) for name in workflows)
    text = "\n".join(f"{name} {fingerprint}" for name, fingerprint in known)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
