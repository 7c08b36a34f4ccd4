"""Which version of a workflow's code an address asks for, and with which it is compared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from engine.declare.registry import workflows as registry
from studio.workflows.code_difference import Compared, compared
from studio.workflows.code_versions import Kept, versions

_CODE = re.compile("[0-9a-f]{1,64}")


@dataclass(frozen=True, slots=True)
class Asked:
    """The version of an address, by default that of now. `against` is an older one to compare it with."""

    version: Kept
    against: Kept | None
    is_now: bool
    understood: tuple[str, ...]

    @property
    def compared(self) -> Compared | None:
        if self.against is None or self.against.source is None or self.version.source is None:
            return None
        return compared(self.against.source, self.version.source)

    @property
    def names(self) -> tuple[str, str]:
        """What the signs of the difference stand for."""
        before = "" if self.against is None else self.against.short
        return f"version {before}", f"version {self.version.short}{', the code now' if self.is_now else ''}"

    @property
    def lacking(self) -> list[Kept]:
        """The versions without source."""
        both = [self.version] if self.against is None else [self.against, self.version]
        return [one for one in both if one.code and one.source is None and not self._says_the_page(one)]

    @property
    def from_query(self) -> str:
        return "?from=" if self.is_now else f"?version={self.version.code}&from="

    def _says_the_page(self, one: Kept) -> bool:
        return one is self.version and self.is_now and self.against is None


def asked_of(name: str, given: Mapping[str, str]) -> Asked:
    """Read the address of a page of code."""
    workflow = registry.get(name)
    now = "" if workflow is None else workflow.fingerprint
    codes = {key: given.get(key, "") for key in ("version", "against")}
    valid = {key: code for key, code in codes.items() if _CODE.fullmatch(code)}
    code = valid.get("version", now)
    found = versions(name, {code, *valid.values()})
    nothing = Kept("", None)
    against = found.get(valid["against"]) if "against" in valid else None
    return Asked(found.get(code, nothing), against, code == now, ("from", "list", *valid))
