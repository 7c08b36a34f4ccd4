"""Why a delivery is refused."""

from __future__ import annotations


class DeliveryError(Exception):
    """A delivery that does nothing. The sender gets `status`, `code` and `detail`."""

    def __init__(self, status: int, code: str, detail: str, *, field: str = "") -> None:
        super().__init__(detail)
        self.status, self.code, self.detail, self.field = status, code, detail, field


class NotGenuineError(DeliveryError):
    """A delivery that was not signed with the secret, or cannot prove it. Nothing of it is stored."""

    def __init__(self, detail: str, *, status: int = 401, code: str = "wrong_signature") -> None:
        super().__init__(status, code, detail)
