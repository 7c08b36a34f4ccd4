from django.db import migrations

from engine.migrations._notices import NOTE_INSTANCE_AND_OTHERS


class Migration(migrations.Migration):
    dependencies = [("engine", "0008_ended_requests")]

    operations = [migrations.RunSQL(*NOTE_INSTANCE_AND_OTHERS)]
