from django.db import migrations, models
from django.db.models import Q
from django.db.models.functions import Collate, Lower

from engine.migrations._operations import AddIndexAgain


class Migration(migrations.Migration):
    atomic = False  # so that the table can be written meanwhile

    dependencies = [("engine", "0005_safe_times")]

    operations = [
        AddIndexAgain(
            model_name="instance",
            index=models.Index(Collate(Lower("id"), "C"), name="engine_instance_id_start"),
        ),
        AddIndexAgain(
            model_name="instance",
            index=models.Index(
                fields=["workflow", "-finished_at"],
                condition=Q(status="errored"),
                name="engine_instance_failed",
            ),
        ),
        AddIndexAgain(
            model_name="instance",
            index=models.Index(
                fields=["workflow", "-key"],
                condition=Q(status="waiting", waiting_for="retry"),
                name="engine_instance_retrying",
            ),
        ),
        AddIndexAgain(
            model_name="instance",
            index=models.Index(
                fields=["workflow", "-key"],
                condition=Q(status="paused", error__isnull=False),
                name="engine_instance_paused",
            ),
        ),
    ]
