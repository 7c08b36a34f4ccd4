"""The Studio's permissions, default groups that hold them, and counts of limited events.

A database made by an earlier version, in which other migrations did this, gets what it lacks.
"""

from typing import Any

from django.db import migrations, models
from django.db.migrations.recorder import MigrationRecorder

PERMISSIONS = [
    ("view", "Can see workflows, instances and the audit trail"),
    ("operate", "Can start and steer instances"),
    ("approve", "Can answer requests that name nobody"),
    ("administer", "Can administer the Studio"),
]
GROUPS = {
    "reprise-viewer": ["view"],
    "reprise-operator": ["view", "operate", "approve"],
    "reprise-approver": ["view", "approve"],
    "reprise-admin": ["view", "operate", "approve", "administer"],
}


def make_groups(apps: Any, schema_editor: Any) -> None:
    """Create the groups that do not exist. An existing group belongs to the project and gets no permissions."""
    applied = MigrationRecorder(schema_editor.connection).applied_migrations()
    if ("studio", "0002_permissions") in applied:
        return  # people may have changed or deleted the groups since
    database = schema_editor.connection.alias
    model = apps.get_model("auth", "Group")
    grants = model.permissions.through
    held = make_permissions(apps, database)
    for name, codenames in GROUPS.items():
        group, is_new = model.objects.using(database).get_or_create(name=name)
        if is_new:
            rows = [grants(group_id=group.pk, permission_id=held[codename].pk) for codename in codenames]
            grants.objects.using(database).bulk_create(rows)


def make_permissions(apps: Any, database: str) -> dict[str, Any]:
    """Create the permissions now: Django creates them after the last migration, too late for the groups."""
    types = apps.get_model("contenttypes", "ContentType").objects.using(database)
    permissions = apps.get_model("auth", "Permission").objects.using(database)
    of, _ = types.get_or_create(app_label="studio", model="access")
    # By keys: between objects, the project's routers would have a say.
    return {
        codename: permissions.get_or_create(
            content_type_id=of.pk, codename=codename, defaults={"name": name}
        )[0]
        for codename, name in PERMISSIONS
    }


class CreateThrottle(migrations.CreateModel):
    """Create the table, unless an earlier version has."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if "studio_throttle" not in schema_editor.connection.introspection.table_names():
            super().database_forwards(app_label, schema_editor, from_state, to_state)


class Migration(migrations.Migration):
    initial = False  # `migrate --fake-initial` must not take the table for all of this
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]
    operations = [
        migrations.CreateModel(
            name="Access",
            fields=[("id", models.BigAutoField(primary_key=True))],
            options={"managed": False, "default_permissions": (), "permissions": PERMISSIONS},
        ),
        migrations.RunPython(make_groups, migrations.RunPython.noop),
        CreateThrottle(
            name="Throttle",
            fields=[
                ("key", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("n", models.PositiveIntegerField()),
                ("ends_at", models.DateTimeField()),
            ],
            options={
                "indexes": [
                    # The sweep of counts that are over.
                    models.Index(fields=["ends_at"], name="studio_throttle_over"),
                ],
            },
        ),
    ]
