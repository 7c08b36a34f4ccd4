"""Errors about bulk jobs."""

from engine.values.errors.base import RepriseError, shown


class BulkJobExistsError(RepriseError):
    """A bulk job was to be started with an id that another one has. Nothing was started.

    Choose another id, or read the job that has it: the same program may have started it before.
    """

    def __init__(self, id: str) -> None:
        self.id = id
        super().__init__(f"There already is a bulk job {shown(id)}.")


class BulkJobNotFoundError(RepriseError, LookupError):
    """No bulk job has that id: it never existed, or was deleted 30 days after its end.

    List the jobs to see the ids that there are.
    """

    def __init__(self, id: str) -> None:
        self.id = id
        super().__init__(f"There is no bulk job {shown(id)}.")
