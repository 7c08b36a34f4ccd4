"""What Django looks for in every app: the tables of the demo."""

from studio.demo.order.models import LedgerEntry, Reservation, Stock

__all__ = ["LedgerEntry", "Reservation", "Stock"]
