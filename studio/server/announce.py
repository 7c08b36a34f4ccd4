"""Log the start and the end of the web process."""

from __future__ import annotations

import logging
import sys

import psycopg

from engine import workflows
from engine.status import schema
from engine.version import VERSION
from studio.health.readiness import APPS
from studio.machine.ready import tell_ready

logger = logging.getLogger("reprise.web")


def announce_web() -> None:
    """Log when the server starts to serve and when it ends. Works with daphne and runserver only."""
    reactor = sys.modules.get("twisted.internet.reactor")
    if reactor is not None:
        # In a thread: the database may be slow to answer.
        reactor.addSystemEventTrigger("after", "startup", tell_ready)
        reactor.addSystemEventTrigger("after", "startup", reactor.callInThread, _started)
        reactor.addSystemEventTrigger("after", "shutdown", _stopped)


def _started() -> None:
    logger.info("Web started: %s", _facts())
    try:
        lacking, unknown = schema.missing(apps=APPS), schema.unknown()
    except psycopg.Error:
        return  # the database is down; pages say so
    if lacking:
        logger.error("%s Pages fail until that is done.", schema.sentence(lacking))
    if unknown:
        logger.error("%s Pages may fail until that is done.", schema.sentence_about_unknown(unknown))


def _stopped() -> None:
    logger.info("Web stopped: %s", _facts())


def _facts() -> str:
    return f"Reprise {VERSION}, database {schema.described()}, {len(workflows)} workflow{'s' * (len(workflows) != 1)}"
