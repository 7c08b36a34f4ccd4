from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("engine", "0004_steering"),
    ]

    operations = [
        migrations.AddField(
            model_name="waiter",
            name="told_at",
            field=models.DateTimeField(null=True),
        ),
    ]
