from django.db import models


class Account(models.Model):
    number = models.CharField(max_length=20, primary_key=True)
    cents = models.IntegerField(default=0)

    class Meta:
        app_label = "shop"

    def __str__(self) -> str:
        return self.number
