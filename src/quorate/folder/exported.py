"""A folder that was exported, read again: each file is what the manifest says."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Final

from quorate.errors import PreconditionFailed

MANIFEST: Final = "manifest.json"


def read_exported(folder: Path, name: str) -> bytes:
    """Read a file of an exported folder.

    Raises PreconditionFailed if it is missing, or not what the manifest beside it says.
    """
    try:
        sums = json.loads((folder / MANIFEST).read_bytes())["sha256"]
        noted = str(sums[name])
        content = (folder / name).read_bytes()
    except (OSError, ValueError, KeyError, TypeError):
        raise PreconditionFailed(
            f"{folder} holds no {name} with its sum in {MANIFEST}; export the run again: quorate export RUN --to FOLDER"
        ) from None
    if sha256(content).hexdigest() != noted:
        raise PreconditionFailed(
            f"{folder / name} is not what was exported: its SHA-256 sum is not the one in {MANIFEST}. Find out who "
            "changed it, or export the run again"
        )
    return content
