"""Restarts from code: preview what a restart would do, and do it."""

from engine.steer.restart import preview, preview_retry, restart, retry_step

__all__ = ["preview", "preview_retry", "restart", "retry_step"]
