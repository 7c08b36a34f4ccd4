"""Follow what an instance records: what is there, and then each committed change, exactly once.

Nothing keeps a list of events: rows change. A `Mark` says which transactions a reader has seen, so that the rows of all
others are found whatever order they commit in and whatever their times are. A `Cursor` is a place between two marks.
"""

from engine.status.changes.cursor import Cursor, InvalidCursorError
from engine.status.changes.kinds import Kind
from engine.status.changes.marks import Look, Mark, look
from engine.status.changes.reading import Change, End, Page, read

__all__ = [
    "Change",
    "Cursor",
    "End",
    "InvalidCursorError",
    "Kind",
    "Look",
    "Mark",
    "Page",
    "look",
    "read",
]
