"""Refuse parameters in an address that would have no effect: a list must not silently show something else."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.http import HttpRequest

from studio.api.problems import ProblemError, WrongField

MOST_NAMED = 5  # parameters in an answer


def check(request: HttpRequest, known: Collection[str], lists: Collection[str] = ()) -> None:
    """Raise ProblemError for unknown parameters, and for those that came twice and are not among `lists`."""
    unknown = [name for name in request.GET if name not in known]
    if unknown:
        taken = f"This address takes {', '.join(sorted(known))}." if known else "This address takes none."
        detail = f"{unknown[0][:100]}: There is no parameter of this name. {taken}"
        raise _refusal(unknown, "unknown_parameter", taken, detail)
    repeated = [name for name, values in request.GET.lists() if len(values) > 1 and name not in lists]
    if repeated:
        message = "Send this parameter once."
        raise _refusal(repeated, "repeated_parameter", message, f"{repeated[0][:100]}: {message}")


def _refusal(names: Sequence[str], code: str, message: str, detail: str) -> ProblemError:
    errors: list[WrongField] = [
        {"path": name[:100], "code": code, "message": message} for name in names[:MOST_NAMED]
    ]
    return ProblemError(422, "invalid_request", detail, errors=errors)
