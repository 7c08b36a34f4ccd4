"""Nothing any more. Until 0002 the roles were the groups viewer, operator and admin, and this made them.

A project may have groups of these names that mean something else, so databases made from now on get none of them.
"""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("auth", "0012_alter_user_first_name_max_length")]
    operations = ()
