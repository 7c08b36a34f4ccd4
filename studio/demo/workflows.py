"""What the engine looks for in every app: the workflows of the demo."""

from studio.demo.backup.workflow import database_backup
from studio.demo.order.workflow import order
from studio.demo.refund.workflow import refund
from studio.demo.release.workflow import rolling_release

__all__ = ["database_backup", "order", "refund", "rolling_release"]
