"""Counts of events that are limited, shared by all processes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("studio", "0002_permissions"),
    ]

    operations = [
        migrations.CreateModel(
            name="Throttle",
            fields=[
                ("key", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("n", models.PositiveIntegerField()),
                ("ends_at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["ends_at"], name="studio_throttle_over")],
            },
        ),
    ]
