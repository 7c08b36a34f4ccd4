"""Schedules from code: pause, resume and run them, and list when they fire next."""

from engine.steer.schedules import pause, resume, run_now, upcoming

__all__ = ["pause", "resume", "run_now", "upcoming"]
