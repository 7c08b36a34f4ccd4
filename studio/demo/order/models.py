"""The shop's tables. Nothing of Reprise is in them but the ids of instances, which are the numbers of orders."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q


class Stock(models.Model):
    """How many of an article there are to sell."""

    sku = models.CharField(max_length=20, primary_key=True)
    available = models.IntegerField()

    objects: ClassVar[models.Manager[Stock]] = models.Manager()

    class Meta:
        app_label = "demo"
        constraints = [
            models.CheckConstraint(condition=Q(available__gte=0), name="demo_stock_never_below_zero")
        ]

    def __str__(self) -> str:
        return f"{self.available} {self.sku}"


class Reservation(models.Model):
    """What is put aside for an order."""

    order = models.CharField(max_length=100, primary_key=True)
    sku = models.CharField(max_length=20)
    quantity = models.PositiveIntegerField()
    state = models.CharField(max_length=8, default="reserved")  # reserved, shipped or released

    objects: ClassVar[models.Manager[Reservation]] = models.Manager()

    class Meta:
        app_label = "demo"

    def __str__(self) -> str:
        return f"{self.quantity} {self.sku} {self.state}"


class LedgerEntry(models.Model):
    """Money in, or out again. The key makes an entry one, however often it is made."""

    key = models.CharField(max_length=64, primary_key=True)
    order = models.CharField(max_length=100, db_index=True)
    cents = models.IntegerField()
    text = models.CharField(max_length=200)
    at = models.DateTimeField(auto_now_add=True)

    objects: ClassVar[models.Manager[LedgerEntry]] = models.Manager()

    class Meta:
        app_label = "demo"

    def __str__(self) -> str:
        return f"{self.text}: {self.cents}"
