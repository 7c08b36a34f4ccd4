from django.db import migrations


class Migration(migrations.Migration):
    """Once added the index of buffered events, which 0005 now adds without stopping those who write."""

    dependencies = [("engine", "0001_initial")]
    operations = []  # noqa: RUF012
