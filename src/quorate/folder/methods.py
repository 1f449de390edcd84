"""The methods by the names that ``[method] by`` of ``quorate.toml`` has for them.

Nothing else in this room or in the command line asks which method a run has.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from quorate.errors import PreconditionFailed
from quorate.folder.by_direct import Direct
from quorate.folder.by_teachers import Teachers
from quorate.folder.choice import NOTHING_CHOSEN
from quorate.folder.folder import RunFolder
from quorate.folder.method import Method
from quorate.folder.settings import read_settings

METHODS: Mapping[str, Method] = {"votes": Teachers(), "direct": Direct()}


def method_of(root: Path) -> Method:
    """Return the method that the settings of a folder name, or that the planner chose when its run began."""
    by = read_settings(RunFolder(root).settings).method.by
    if by == "auto":
        raise PreconditionFailed(NOTHING_CHOSEN)
    return METHODS[by]
