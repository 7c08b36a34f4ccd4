"""Workflows of Reprise itself, such as the one behind bulk jobs. Lists, counts and searches leave them out.

Nobody can declare a workflow with such a name: names that users give have no dot.
"""

from __future__ import annotations

PREFIX = "reprise."
BULK = f"{PREFIX}bulk"  # the workflow behind bulk jobs

# The condition for SQL with parameters, which read %% as %. PostgreSQL knows from its statistics how many rows it
# leaves, and finds the column in the index of the lists.
NOT_SYSTEM = f"workflow NOT LIKE '{PREFIX}%%'"


def is_system(workflow: str) -> bool:
    """Return whether it is a workflow of Reprise itself."""
    return workflow.startswith(PREFIX)
