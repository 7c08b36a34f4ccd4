"""Does nothing any more. It created the groups viewer, operator and admin, which were the roles before 0002.

A project may use groups of these names for something else, so new databases do not get them.
"""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("auth", "0012_alter_user_first_name_max_length")]
    operations = ()
