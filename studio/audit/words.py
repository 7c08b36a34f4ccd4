"""How the audit trail describes what users did."""

from __future__ import annotations

from engine.models import Audit
from engine.status.sentences import bidi
from engine.steer import retention, schedules
from engine.steer.requests import ANSWER

ACTIONS = {
    "start": "started",
    "pause": "paused",
    "resume": "resumed",
    "terminate": "terminated",
    "send_event": "sent an event",
    "accept_code": "accepted the new code",
    "retry_rollback": "retried the rollback",
    "restart": "restarted",
    "delete": "deleted",
    "answer": "answered",
    "schedule-pause": "paused the schedule",
    "schedule-resume": "resumed the schedule",
    "schedule-run": "ran the schedule",
    "retention": "deleted instances past their retention",
    "sign_in": "signed in",
}


def action_text(entry: Audit) -> str:
    """Describe what a user did, or was not allowed to do."""
    verb = verb_name(entry.verb)
    data = entry.data if isinstance(entry.data, dict) else {}
    if entry.verb == schedules.REFUSED:
        return f"could not start the planned run of schedule {_isolated(data.get('schedule'))}"
    of = f" {_isolated(data['schedule'])}" if data.get("schedule") else ""
    if entry.outcome == "denied":
        return f"denied: {verb}{of}"
    if entry.verb == ANSWER:
        return f"answered {_isolated(data.get('request', ''))}"
    if entry.verb == retention.VERB:
        return f"deleted {sum(data.values())} past their retention"
    if data.get("from_step"):
        return f"restarted from {_isolated(data['from_step'])}"
    kind = data.get("type")
    return f"sent event {_isolated(kind)}" if kind else f"{ACTIONS.get(entry.verb, verb)}{of}"


def verb_name(verb: str) -> str:
    """Return a verb of the log, or a status, in plain words."""
    return verb.replace("_", " ").replace("-", " ")


def _isolated(text: object) -> str:
    return bidi.isolated(str(text))
