"""What people type to start a bulk job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from django.http import QueryDict

from engine.steer.audit import MAX_REASON
from studio.forms.pace import PACES, pace_of
from studio.forms.tokens import new_token, token_of


@dataclass(frozen=True, slots=True)
class StartForm:
    """Why, how fast, the number that was typed to go on, and how many the page had said.

    `token` starts one job only. `resumes` ends the pauses of the workflows.
    """

    token: str
    reason: str = ""
    typed: str = ""
    said: int = 0
    pace: str = "all"
    resumes: bool = False

    @classmethod
    def new(cls) -> Self:
        return cls(new_token())

    @classmethod
    def of(cls, given: QueryDict) -> Self:
        said = given.get("said", "")
        return cls(
            token=token_of(given.get("token", "")),
            reason=given.get("reason", "").replace("\0", "").strip()[:MAX_REASON],
            typed=given.get("number", "").strip()[:20],
            said=int(said) if said.isascii() and said.isdecimal() and len(said) < 10 else 0,
            pace=pace_of(given),
            resumes=bool(given.get("resume")),
        )

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of the job that say how fast, and whether its workflows are resumed."""
        return {**PACES[self.pace], "resume_workflows": self.resumes}

    @property
    def problem(self) -> str:
        return "" if self.reason else "Not started. Enter a reason."

    def confirms(self, count: int) -> bool:
        """Return whether the typed number is this one; separators do not matter."""
        return "".join(self.typed.replace(",", "").split()) == str(count)
