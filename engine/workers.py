"""Workers from code: list them, drain one or a whole cluster, and resume it."""

from engine.steer.workers import Drained, drain, drain_of, resume, running

__all__ = ["Drained", "drain", "drain_of", "resume", "running"]
