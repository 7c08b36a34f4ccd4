"""Errors about groups of failures."""

from engine.values.errors.base import RepriseError, shown


class FailureNotFoundError(RepriseError, LookupError):
    """No group of failures has that fingerprint: its last failure is long ago, or it never existed.

    List the groups to see the fingerprints that there are.
    """

    def __init__(self, fingerprint: str) -> None:
        self.fingerprint = fingerprint
        super().__init__(f"There is no group of failures with the fingerprint {shown(fingerprint)}.")
