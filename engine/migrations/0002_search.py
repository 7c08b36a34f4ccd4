"""Search paths and the values found there; `search/` has the triggers that keep them."""

from pathlib import Path

from django.db import migrations, models
from django.db.models import CASCADE, CheckConstraint, CompositePrimaryKey, Index, Q, UniqueConstraint

from engine.models.fields import NumericField

SQL = Path(__file__).parent / "search"


class Migration(migrations.Migration):
    dependencies = (("engine", "0001_start"),)

    operations = [
        migrations.CreateModel(
            name="IndexedPath",
            fields=[
                ("key", models.AutoField(primary_key=True, serialize=False)),
                ("workflow", models.CharField(max_length=64)),
                ("path", models.CharField(max_length=207)),
                ("is_complete", models.BooleanField(default=False, db_default=False)),
                ("filled_to", models.BigIntegerField(default=0, db_default=0)),
                ("is_declared", models.BooleanField(default=True, db_default=True)),
            ],
            options={
                "db_table": "engine_indexedpath",
                "constraints": [
                    UniqueConstraint(fields=["workflow", "path"], name="engine_indexedpath_path"),
                    CheckConstraint(
                        condition=Q(path__regex=r"^(params|output)(\..+)?$"), name="engine_indexedpath_form"
                    ),
                    CheckConstraint(
                        condition=Q(is_declared=True) | Q(is_complete=False),
                        name="engine_indexedpath_removed",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SearchValue",
            fields=[
                (
                    "pk",
                    CompositePrimaryKey(
                        "instance_id",
                        "path_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "instance",
                    models.ForeignKey(
                        "engine.instance",
                        on_delete=CASCADE,
                        related_name="search_values",
                        db_constraint=False,
                        db_index=False,
                    ),
                ),
                (
                    "path",
                    models.ForeignKey(
                        "engine.indexedpath",
                        on_delete=CASCADE,
                        related_name="values",
                        db_constraint=False,
                        db_index=False,
                    ),
                ),
                ("text", models.CharField(max_length=256, null=True, db_collation="C")),
                ("number", NumericField(null=True)),
            ],
            options={
                "db_table": "engine_searchvalue",
                "indexes": [
                    # Equal texts, and texts with a given beginning, newest instance first.
                    Index(fields=["path", "text", "instance"], name="engine_searchvalue_text"),
                    # Numbers in a range.
                    Index(
                        fields=["path", "number", "instance"],
                        condition=Q(number__isnull=False),
                        name="engine_searchvalue_number",
                    ),
                ],
            },
        ),
        migrations.RunSQL(
            (SQL / "values.sql").read_text(),
            "DROP FUNCTION engine_index_started() CASCADE; DROP FUNCTION engine_index_ended() CASCADE; "
            "DROP FUNCTION engine_index_deleted() CASCADE; "
            "DROP FUNCTION engine_search_value(json, text); DROP FUNCTION engine_json_at(json, text[])",
        ),
    ]
