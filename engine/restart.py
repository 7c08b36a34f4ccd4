"""Restarts from code: preview what a restart would do, and do it."""

from engine.steer.restart import preview, restart

__all__ = ["preview", "restart"]
