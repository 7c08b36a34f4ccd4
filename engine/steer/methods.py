"""The implementation of the methods of instances and workflows.

The functions import the models and the declarations, so these cannot import the functions: they get this module when
Django starts (`engine.apps`).
"""

from engine.steer.decisions import fail_step, skip_step
from engine.steer.deletion import delete, delete_many
from engine.steer.events import send_event
from engine.steer.launch import get, get_or_start, start, start_many
from engine.steer.lifecycle import accept_code, pause, resume, retry_rollback, terminate
from engine.steer.notes import add_note
from engine.steer.restart import restart, retry_step
from engine.steer.results import result
from engine.steer.wake_ups import retry_now, wake_now

__all__ = [
    "accept_code",
    "add_note",
    "delete",
    "delete_many",
    "fail_step",
    "get",
    "get_or_start",
    "pause",
    "restart",
    "result",
    "resume",
    "retry_now",
    "retry_rollback",
    "retry_step",
    "send_event",
    "skip_step",
    "start",
    "start_many",
    "terminate",
    "wake_now",
]
