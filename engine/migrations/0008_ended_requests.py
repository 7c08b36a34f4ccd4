import django.db.models.deletion
from django.db import migrations, models

from engine.migrations._sql import COPY_ENDED_REQUESTS, KEEP_REQUEST_ALSO_ENDED


class Migration(migrations.Migration):
    dependencies = [("engine", "0007_notices")]

    operations = [
        migrations.CreateModel(
            name="EndedRequest",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "instance_id",
                        "generation",
                        "seq",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "instance",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="ended_requests",
                        to="engine.instance",
                    ),
                ),
                ("generation", models.IntegerField()),
                ("seq", models.IntegerField()),
                ("ended_at", models.DateTimeField()),
            ],
            options={
                "db_table": "engine_ended_request",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("ended_at__gte", "1970-01-01T00:00:00Z"),
                            ("ended_at__lt", "9999-12-31T00:00:00Z"),
                        ),
                        name="engine_ended_request_times",
                    )
                ],
                "indexes": [models.Index(fields=["-ended_at"], name="engine_ended_request_latest")],
            },
        ),
        # First what keeps new ones: none that ends meanwhile is missed.
        migrations.RunSQL(*KEEP_REQUEST_ALSO_ENDED),
        migrations.RunSQL(COPY_ENDED_REQUESTS, reverse_sql=migrations.RunSQL.noop),
    ]
