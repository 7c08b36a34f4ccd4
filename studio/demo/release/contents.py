"""What a folder holds: the checksum of every file, and one version for all of them."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path


def checksums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file of the folder, by its path in it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }


def version(files: Mapping[str, str]) -> str:
    """Return the version of a release: it changes with every change of a file or of a name."""
    return hashlib.sha256(json.dumps(sorted(files.items())).encode()).hexdigest()[:12]
