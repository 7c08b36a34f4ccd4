"""The roles of the Studio, as groups that an admin puts people into."""

from typing import Any

from django.db import migrations

ROLES = ("viewer", "operator", "admin")


def make_groups(apps: Any, schema_editor: Any) -> None:
    for name in ROLES:
        apps.get_model("auth", "Group").objects.get_or_create(name=name)


class Migration(migrations.Migration):
    dependencies = [("auth", "0012_alter_user_first_name_max_length")]
    operations = [migrations.RunPython(make_groups, migrations.RunPython.noop)]
