"""Bulk jobs from code: retry, pause, resume, terminate or restart many instances, in the background."""

from engine.bulk.actions import BulkAction
from engine.bulk.previewing import Preview, Share, preview
from engine.bulk.reading import BulkStatus, Item, Job, get, items, jobs
from engine.bulk.steering import abort, pause, resume, retry_failed, start

__all__ = [
    "BulkAction",
    "BulkStatus",
    "Item",
    "Job",
    "Preview",
    "Share",
    "abort",
    "get",
    "items",
    "jobs",
    "pause",
    "preview",
    "resume",
    "retry_failed",
    "start",
]
