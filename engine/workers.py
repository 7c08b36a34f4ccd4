"""Workers from code: list them, drain one or a whole cluster, and resume it."""

from engine.steer.workers import drain, drain_of, resume, running

__all__ = ["drain", "drain_of", "resume", "running"]
