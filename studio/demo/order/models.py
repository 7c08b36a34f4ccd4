"""The shop's tables. An order's number is the id of its instance; nothing else of Reprise is in them."""
# ruff: noqa: DJ008 - nothing shows these rows as text

from typing import ClassVar, Self

from django.db import models
from django.db.models import CheckConstraint, Q


class Row(models.Model):
    objects: ClassVar[models.Manager[Self]]

    class Meta:
        abstract = True
        app_label = "demo"


class Stock(Row):
    sku = models.CharField(max_length=20, primary_key=True)
    available = models.IntegerField()

    class Meta(Row.Meta):
        constraints = [CheckConstraint(condition=Q(available__gte=0), name="demo_stock_never_below_zero")]


class Reservation(Row):
    order = models.CharField(max_length=100, primary_key=True)
    sku = models.CharField(max_length=20)
    quantity = models.PositiveIntegerField()
    state = models.CharField(max_length=8, default="reserved")  # reserved, shipped or released


class LedgerEntry(Row):
    key = models.CharField(max_length=64, primary_key=True)  # a repeated request has the same one
    order = models.CharField(max_length=100, db_index=True)
    cents = models.IntegerField()
    text = models.CharField(max_length=200)
    at = models.DateTimeField(auto_now_add=True)
