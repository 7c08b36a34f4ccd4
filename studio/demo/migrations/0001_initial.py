from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="LedgerEntry",
            fields=[
                ("key", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("order", models.CharField(db_index=True, max_length=100)),
                ("cents", models.IntegerField()),
                ("text", models.CharField(max_length=200)),
                ("at", models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name="Reservation",
            fields=[
                ("order", models.CharField(max_length=100, primary_key=True, serialize=False)),
                ("sku", models.CharField(max_length=20)),
                ("quantity", models.PositiveIntegerField()),
                ("state", models.CharField(default="reserved", max_length=8)),
            ],
        ),
        migrations.CreateModel(
            name="Stock",
            fields=[
                ("sku", models.CharField(max_length=20, primary_key=True, serialize=False)),
                ("available", models.IntegerField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("available__gte", 0)), name="demo_stock_never_below_zero"
                    )
                ],
            },
        ),
    ]
