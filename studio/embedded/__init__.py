"""A real PostgreSQL from a wheel, for users who have not set DATABASE_URL."""

from studio.embedded.address import DATABASE, SOCKET_NAME, USER, socket_dir
from studio.embedded.place import EmbeddedError, Place, find_place
from studio.embedded.server import EmbeddedServer

__all__ = [
    "DATABASE",
    "SOCKET_NAME",
    "USER",
    "EmbeddedError",
    "EmbeddedServer",
    "Place",
    "find_place",
    "socket_dir",
]
