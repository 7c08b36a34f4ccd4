"""One request for each operation of the API that does what the operation is for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.studio.api.shop import NO_MAIL, NO_PAPER, ORDER, PAID


@dataclass(frozen=True, slots=True)
class Call:
    """A request, and the status of its answer to somebody who may."""

    operation: str
    method: str
    path: str
    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


_SHIP = "/workflows/ship-order/instances"
_WAITING, _PAUSED, _COMPLETE = f"{_SHIP}/order-1042", f"{_SHIP}/order-1039", f"{_SHIP}/order-1041"
_ASKING = "/workflows/refund/instances/refund-7"
_WEEKLY = "/schedules/sales-report/weekly"
_MAIL, _PAPER = f"/errors/{NO_MAIL}", f"/errors/{NO_PAPER}"


def _read(operation: str, path: str) -> Call:
    return Call(operation, "GET", path)


def _do(operation: str, path: str, body: Any, status: int = 200) -> Call:
    return Call(operation, "POST", path, body, status)


CALLS = (
    _read("read_me", "/me"),
    _read("list_workflows", "/workflows"),
    _read("read_workflow", "/workflows/sales-report"),
    _read("list_paused_workflows", "/paused-workflows"),
    _do("pause_workflow", "/workflows/ship-order/pause", {"reason": "The courier is on strike."}),
    _do("resume_workflow", "/workflows/sales-report/resume", {"reason": "The strike is over.", "count": 1}),
    _do("start_instance", _SHIP, {"params": ORDER, "id": "order-1043", "tags": ["eu"]}, 201),
    _do(
        "start_instances",
        f"{_SHIP}/batch",
        {
            "items": [
                {"params": ORDER, "id": "order-1044"},
                {"params": {"customer": "Bo", "lines": []}, "id": "order-1045"},
            ]
        },
    ),
    _read("list_instances", "/instances?workflow=ship-order&status=open&limit=1"),
    _read("read_instance", f"{_COMPLETE}?full=true"),
    _read("list_steps", f"{_WAITING}/steps"),
    _read("read_step", f"{_COMPLETE}/steps/1"),
    _read("list_events", f"{_COMPLETE}/events"),
    _read("list_children", f"{_COMPLETE}/children"),
    _read("list_generations", f"{_COMPLETE}/generations"),
    _read("list_logs", f"{_COMPLETE}/logs"),
    _read("list_actions", f"{_PAUSED}/audit"),
    _read("list_requests_of", f"{_ASKING}/requests"),
    _read("read_payload", f"{_COMPLETE}/payloads/output"),
    _read("read_step_payload", f"{_COMPLETE}/steps/1/payloads/output"),
    _do("pause_instance", f"{_WAITING}/pause", {"reason": "The customer has called."}),
    _do("resume_instance", f"{_PAUSED}/resume", {"reason": "They still want it."}),
    _do("terminate_instance", f"{_WAITING}/terminate", {"reason": "Ordered twice.", "rollback": False}),
    _do(
        "restart_instance",
        f"{_COMPLETE}/restart",
        {"reason": "It was lost.", "from_step": "label", "kind": "child"},
    ),
    _do("preview_restart", f"{_COMPLETE}/restart/preview", {"from_step": "label", "kind": "child"}),
    _do(
        "retry_step",
        "/workflows/print-label/instances/label-3/retry-step",
        {"reason": "There is paper again."},
    ),
    _do(
        "fail_step",
        "/workflows/print-label/instances/label-4/fail-step",
        {"step": "print", "reason": "They have cancelled."},
    ),
    _do(
        "skip_step",
        "/workflows/print-label/instances/label-5/skip-step",
        {"step": "print", "output": "JD0427", "reason": "Printed by hand."},
    ),
    _do(
        "retry_now", "/workflows/send-receipt/instances/receipt-3/retry-now", {"reason": "Mail works again."}
    ),
    _do(
        "wake_now",
        "/workflows/remind/instances/remind-5/wake-now",
        {"step": "a week", "reason": "They called."},
    ),
    _do("retry_rollback", f"{_SHIP}/order-1038/retry-rollback", {"reason": "The warehouse is back."}),
    _do("accept_code", f"{_SHIP}/order-1037/accept-code", {"reason": "Only a comment has changed."}),
    _read("list_bulk_jobs", "/bulk-jobs"),
    _do("preview_bulk_job", "/bulk-jobs/preview", {"action": "retry", "query": "workflow:print-label"}),
    _do(
        "start_bulk_job",
        "/bulk-jobs",
        {
            "action": "pause",
            "instances": [
                {"workflow": "ship-order", "id": "order-1042"},
                {"workflow": "refund", "id": "refund-7"},
            ],
            "reason": "The bank does not answer.",
        },
        201,
    ),
    _read("read_bulk_job", "/bulk-jobs/receipts-now"),
    _read("list_bulk_items", "/bulk-jobs/labels-again/items?outcome=failed"),
    _do("pause_bulk_job", "/bulk-jobs/receipts-now/pause", {"reason": "They look at it first."}),
    _do("resume_bulk_job", "/bulk-jobs/orders-go-on/resume", {"reason": "The courier comes."}),
    _do("abort_bulk_job", "/bulk-jobs/receipts-now/abort", {"reason": "One by one, then."}),
    _do("retry_failed_bulk_items", "/bulk-jobs/labels-again/retry-failed", {}),
    _do("add_note", f"{_WAITING}/notes", {"text": "The customer calls back at four."}, 201),
    Call("delete_instance", "DELETE", _COMPLETE, {"reason": "The customer asked for it."}),
    _do(
        "send_event",
        f"{_WAITING}/events",
        {"type": "payment-received", "payload": PAID, "dedup_key": "ch_82"},
        202,
    ),
    _do(
        "send_event_to",
        "/events",
        {"workflow": "ship-order", "id": "order-1042", "type": "payment-received", "payload": PAID},
        202,
    ),
    _read("list_requests", "/requests?mine=true"),
    _do(
        "answer_request",
        f"{_ASKING}/requests/1/answer",
        {"answer": {"refund": True}, "comment": "The lid broke."},
    ),
    _read("list_error_groups", "/errors?workflow=send-receipt"),
    _read("read_error_group", _PAPER),
    _read("list_error_group_instances", f"{_PAPER}/instances"),
    _read("read_error_group_trend", f"{_MAIL}/trend?unit=hour"),
    _read("read_error_group_shares", f"{_MAIL}/shares"),
    _do("resolve_error_group", f"{_MAIL}/resolve", {"reason": "The mail server has more memory."}),
    _do("ignore_error_group", f"{_MAIL}/ignore", {"reason": "They are moving it.", "count": 20}),
    _do("reopen_error_group", f"{_PAPER}/reopen", {"reason": "It is out of paper again."}),
    _do(
        "add_error_group_note", f"{_MAIL}/notes", {"text": "The provider knows. Looking again at 03:45."}, 201
    ),
    _read("list_schedules", "/schedules"),
    _do("pause_schedule", f"{_WEEKLY}/pause", {"reason": "Holidays."}),
    _do("resume_schedule", "/schedules/sales-report/yearly/resume", {}),
    _do("run_schedule", f"{_WEEKLY}/run", {"reason": "The boss asked for it."}, 201),
    _read("list_workers", "/workers"),
    _do("drain_worker", "/workers/web-1:4711/drain", {"reason": "The host is replaced at noon."}),
    _do("resume_worker", "/workers/web-1:4712/resume", {"reason": "It has more memory now."}),
    _read("read_health", "/health"),
    _read("list_audit", "/audit?verb=pause"),
)
BY_OPERATION = {call.operation: call for call in CALLS}
