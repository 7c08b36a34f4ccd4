"""What the methods of an instance call. The functions know the models, which therefore do not import them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from engine.models.audit import Audit

InstanceT = TypeVar("InstanceT")  # an instance
E_co = TypeVar("E_co", covariant=True)  # an event


class Steering(Protocol[InstanceT, E_co]):
    """The functions behind the methods of an instance: `engine.steer.methods`, set when Django starts."""

    def pause(self, instance: InstanceT, *, by: Any, reason: str) -> InstanceT: ...
    def resume(self, instance: InstanceT, *, by: Any, reason: str) -> InstanceT: ...
    def terminate(self, instance: InstanceT, *, rollback: bool, by: Any, reason: str) -> InstanceT: ...
    def retry_rollback(self, instance: InstanceT, *, by: Any, reason: str) -> InstanceT: ...
    def retry_now(self, instance: InstanceT, *, by: Any, reason: str) -> InstanceT: ...
    def wake_now(
        self, instance: InstanceT, step: str | None, count: int, *, by: Any, reason: str
    ) -> InstanceT: ...
    def accept_code(self, instance: InstanceT, *, by: Any, reason: str) -> InstanceT: ...
    def restart(
        self,
        instance: InstanceT,
        from_step: str | None,
        count: int,
        kind: str,
        *,
        params: Any,
        keys: str,
        by: Any,
        reason: str,
    ) -> InstanceT: ...
    def retry_step(
        self, instance: InstanceT, step: str | None, count: int, *, by: Any, reason: str
    ) -> InstanceT: ...
    def fail_step(self, instance: InstanceT, step: str, count: int, *, by: Any, reason: str) -> InstanceT: ...
    def skip_step(
        self, instance: InstanceT, step: str, count: int, *, output: Any, by: Any, reason: str
    ) -> InstanceT: ...
    def delete(self, instance: InstanceT, *, by: Any, reason: str) -> None: ...
    def result(self, instance: InstanceT) -> Any: ...
    def send_event(
        self, instance: InstanceT, type: Any, payload: Any, dedup_key: str | None, *, by: Any, reason: str
    ) -> E_co: ...
    def add_note(self, instance: InstanceT, text: str, *, by: Any) -> Audit: ...
