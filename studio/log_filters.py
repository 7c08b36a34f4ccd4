"""Keep the log at one line for each request that Django refuses."""

from __future__ import annotations

import logging

LOGGERS = ("django.request", "django.security")


class RefusalFilter(logging.Filter):
    """Drop the traceback of a 4xx, and the second line about the same request."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.name.startswith(LOGGERS) or not 400 <= getattr(record, "status_code", 500) < 500:
            return True
        record.exc_info = record.exc_text = None
        # Anybody can cause it, so it is not an error of ours.
        record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
        request = getattr(record, "request", None)
        is_second = getattr(request, "_is_refusal_logged", False)
        if request is not None:
            request._is_refusal_logged = True
        return not is_second
