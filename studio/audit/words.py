"""How the audit trail describes what users did."""

from __future__ import annotations

from typing import Any

from engine.models import Audit
from engine.status.sentences import bidi
from engine.steer import pauses, retention, schedules
from engine.steer.requests import ANSWER

ACTIONS = {
    "start": "started",
    "pause": "paused",
    "resume": "resumed",
    "terminate": "terminated",
    "send_event": "sent an event",
    "accept_code": "accepted the new code",
    "retry_now": "retried it now",
    "wake_now": "woke it",
    "retry_rollback": "retried the rollback",
    "retry_step": "retried the failed step",
    "fail_step": "let the step fail",
    "skip_step": "skipped the step",
    "restart": "restarted",
    "delete": "deleted",
    "answer": "answered",
    "error-resolve": "resolved the error",
    "error-ignore": "ignored the error",
    "error-reopen": "reopened the error",
    "error-note": "noted of the error",
    "bulk-start": "started the bulk job",
    "bulk-pause": "paused the bulk job",
    "bulk-resume": "resumed the bulk job",
    "bulk-abort": "aborted the bulk job",
    "bulk-retry-failed": "retried what failed in the bulk job",
    "note": "noted",
    "schedule-pause": "paused the schedule",
    "schedule-resume": "resumed the schedule",
    "schedule-run": "ran the schedule",
    "workflow-pause": "paused the workflow",
    "workflow-resume": "resumed the workflow",
    "worker-drain": "drained the worker",
    "worker-resume": "resumed the worker",
    "webhook-create": "made the webhook",
    "webhook-change": "changed the webhook",
    "webhook-rotate": "changed the secret of the webhook",
    "webhook-pause": "paused the webhook",
    "webhook-resume": "resumed the webhook",
    "webhook-delete": "deleted the webhook",
    "webhook-test": "sent a test to the webhook",
    "webhook-send-again": "sent a delivery again to the webhook",
    "retention": "deleted instances past their retention",
    "sign_in": "signed in",
    "create_token": "created the token",
    "revoke_token": "revoked the token",
    "view-create": "made the shared view",
    "view-change": "changed the shared view",
    "view-move": "moved the shared view",
    "view-delete": "deleted the shared view",
    "template-create": "saved the template",
    "template-change": "overwrote the template",
    "template-delete": "deleted the template",
}

_SUBJECTS = (
    "schedule",
    "webhook",
    "view",
    "template",
    "error",
    "worker",
    "bulk",
)  # what it was about, if not an instance


def action_text(entry: Audit) -> str:
    """Describe what a user did, or was not allowed to do."""
    verb = verb_name(entry.verb)
    data = entry.data if isinstance(entry.data, dict) else {}
    if entry.verb == schedules.REFUSED:
        return f"could not start the planned run of schedule {_isolated(data.get('schedule'))}"
    subject = next((data[one] for one in _SUBJECTS if data.get(one)), None)
    of = f" {_isolated(subject)}" if subject else ""
    if entry.outcome == "denied":
        return f"denied: {verb}{of}"
    if entry.verb == pauses.RESUME and data.get("count"):
        return f"released {data['released']:,} of the paused workflow"
    if entry.verb == ANSWER:
        return f"answered {_isolated(data.get('request', ''))}"
    if entry.verb == retention.VERB:
        return f"deleted {sum(data.values())} past their retention"
    if data.get("token"):
        return _token_text(entry, data)
    if data.get("is_retry"):
        return f"retried {_isolated(data['from_step'])}"
    if data.get("from_step"):
        return f"restarted from {_isolated(data['from_step'])}"
    if data.get("steps"):
        return _steps_text(entry, data)
    kind = data.get("type")
    return f"sent event {_isolated(kind)}" if kind else f"{ACTIONS.get(entry.verb, verb)}{of}"


def token_scope(entry: Audit) -> str:
    """Return what a token that an entry is about may do; empty for any other entry."""
    data = entry.data if isinstance(entry.data, dict) else {}
    if not data.get("token"):
        return ""
    verbs, patterns = data.get("verbs") or (), data.get("workflows") or ()
    return f"{', '.join(verbs)} on {'all workflows' if '*' in patterns else ', '.join(patterns)}"


def done_name(entry: Audit) -> str:
    """Return what a user did, without what it was about."""
    return ACTIONS.get(entry.verb, verb_name(entry.verb))


def verb_name(verb: str) -> str:
    """Return a verb of the log, or a status, in plain words."""
    return verb.replace("_", " ").replace("-", " ")


def _token_text(entry: Audit, data: dict[str, Any]) -> str:
    done, owner = ACTIONS.get(entry.verb, verb_name(entry.verb)), data.get("owner")
    if owner is None:
        done = done.replace("the token", "the team token")
    of = f" of {_isolated(owner)}" if owner not in (None, entry.actor) else ""
    return f"{done} “{_isolated(data.get('name'))}”{of}"


_OF_STEPS = {
    "retry_now": "retried {} early",
    "wake_now": "woke {} early",
    "retry_step": "retried {}",
    "fail_step": "let {} fail",
    "skip_step": "supplied the output of {}",
}


def _steps_text(entry: Audit, data: dict[str, Any]) -> str:
    """Name the step whose back-off or sleep a person ended or that was decided, or say how many there were."""
    total = data.get("total", len(data["steps"]))
    what = f"“{_isolated(data['steps'][0])}”" if total == 1 else f"{total} steps"
    return _OF_STEPS[entry.verb].format(what)


def _isolated(text: object) -> str:
    return bidi.isolated(str(text))
