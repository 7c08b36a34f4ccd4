"""Write the row of a group of failures before the first failure that belongs to it.

A worker writes each group once an hour at most, so that failures usually cost no statement of their own, and no failure
ever updates a row that another one updates. The row is committed before the flush that refers to it: an error here must
not keep an outcome from being written.
"""

from __future__ import annotations

import json
import logging
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict

import psycopg

from engine.values.fingerprint import Failed
from engine.worker.database.shift_connection import ShiftConnection

log = logging.getLogger("engine.journal")

MOST_KNOWN = 10_000
# Housekeeping may have deleted a group with the instances that failed. It keeps what is younger than a month.
KNOWN_SECONDS = 3600.0

# In the order of their fingerprints: two workers that meet the same new groups in different orders cannot deadlock. The
# failures of an hour before the first are counted, too: another worker may have met the group at the same time.
REGISTER = """
    INSERT INTO engine_failure (fingerprint, kin, workflow, step, phase, type, message, sample, frame, of_attempts,
        first_seen, counted_to)
    SELECT f.fingerprint, f.kin, f.workflow, f.step, f.phase, f.type, f.message, f.sample, f.frame, f.of_attempts,
        clock_timestamp(), date_trunc('hour', clock_timestamp() - interval '1 hour', 'UTC')
    FROM json_to_recordset(%(failures)s) AS f(fingerprint text, kin text, workflow text, step text, phase text,
        type text, message text, sample text, frame text, of_attempts bool)
    ORDER BY f.fingerprint
    ON CONFLICT (fingerprint) DO NOTHING
    RETURNING fingerprint
"""


class FailureGroups:
    """The groups that a worker has written."""

    def __init__(self, connection: ShiftConnection) -> None:
        self._connection = connection
        self._known = OrderedDict[str, float]()  # when each was written

    async def register(self, failures: Mapping[str, Failed]) -> None:
        """Write the groups that are new to this worker. Raises the error of a connection that is lost."""
        now = time.monotonic()
        new = [
            one
            for one in failures.values()
            if now - self._known.get(one.fingerprint, -KNOWN_SECONDS) >= KNOWN_SECONDS
        ]
        if not new:
            return
        try:
            await self._connection.execute(REGISTER, {"failures": json.dumps([asdict(one) for one in new])})
        except (psycopg.Error, UnicodeError) as error:
            if self._connection.is_lost(error):
                raise
            log.warning("a group of failures could not be written: %s", error)
            return
        for one in new:
            self._known[one.fingerprint] = now
            self._known.move_to_end(one.fingerprint)
        while len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
