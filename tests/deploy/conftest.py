"""The database of the tests of processes, for these tests, too."""

from tests.process.conftest import process_database, process_server

__all__ = ["process_database", "process_server"]
