"""Bulk jobs from code: retry, pause, resume, terminate, restart or start many instances, in the background."""

from engine.jobs.actions import BulkAction
from engine.jobs.pace import Pace
from engine.jobs.previewing import Preview, Skipped, preview
from engine.jobs.reading import BulkStatus, Item, Job, get, items, jobs
from engine.jobs.starting import start_many
from engine.jobs.steering import abort, pause, resume, retry_failed, start

__all__ = [
    "BulkAction",
    "BulkStatus",
    "Item",
    "Job",
    "Pace",
    "Preview",
    "Skipped",
    "abort",
    "get",
    "items",
    "jobs",
    "pause",
    "preview",
    "resume",
    "retry_failed",
    "start",
    "start_many",
]
