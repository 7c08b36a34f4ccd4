import pytest
from django.db import connection


@pytest.mark.django_db
def test_the_database_is_postgresql_and_commits_survive_a_crash() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('fsync'), current_setting('synchronous_commit')")
        assert cursor.fetchone() == ("on", "on")
        cursor.execute("SELECT current_setting('full_page_writes')")
        assert cursor.fetchone() == ("on",)
    assert connection.pg_version >= 15_00_00
