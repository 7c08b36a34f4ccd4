from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("engine", "0001_initial")]

    operations = [
        migrations.AddIndex(
            model_name="event",
            index=models.Index(
                fields=["instance", "key"], condition=Q(state="buffered"), name="engine_event_buffered"
            ),
        ),
    ]
