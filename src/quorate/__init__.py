"""quorate: model-agnostic private learning.

An ensemble of teachers, trained on disjoint parts of private labelled rows, votes on public points; a privacy
mechanism releases what a budget allows; a student that saw released answers alone may be published.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quorate.data import PublicPool
    from quorate.data.declared_schema import Schema
    from quorate.errors import PrivacyWarning, QuorateWarning
    from quorate.estimators import (
        LabelPrivateClassifier,
        PrivateClassifier,
        PrivateLogisticRegression,
        PrivateRegressor,
        SubsampleAggregate,
        check,
    )
    from quorate.estimators.finished_run import load
    from quorate.ledger import Budget, Ledger
    from quorate.planning.planned import plan

__all__ = [
    "PrivateClassifier",
    "LabelPrivateClassifier",
    "PrivateLogisticRegression",
    "PrivateRegressor",
    "SubsampleAggregate",
    "check",
    "load",
    "PublicPool",
    "Schema",
    "Budget",
    "Ledger",
    "plan",
    "QuorateWarning",
    "PrivacyWarning",
    "show_versions",
    "__version__",
]

_ROOMS = {
    "PrivateClassifier": "quorate.estimators",
    "LabelPrivateClassifier": "quorate.estimators",
    "PrivateLogisticRegression": "quorate.estimators",
    "PrivateRegressor": "quorate.estimators",
    "SubsampleAggregate": "quorate.estimators",
    "check": "quorate.estimators",
    "load": "quorate.estimators.finished_run",
    "PublicPool": "quorate.data",
    "Schema": "quorate.data.declared_schema",
    "Budget": "quorate.ledger",
    "Ledger": "quorate.ledger",
    "plan": "quorate.planning.planned",
    "QuorateWarning": "quorate.errors",
    "PrivacyWarning": "quorate.errors",
}


def show_versions() -> None:
    """Print the versions of Python, quorate, and the libraries it uses that are installed: for a report of a fault.

    Examples
    --------
    >>> show_versions()
    Python        ...
    quorate       ...
    """
    import platform
    import re
    import sys
    from contextlib import suppress
    from importlib import metadata

    lines = [f"{'Python':<13} {platform.python_version()} on {platform.platform()}"]
    names = [re.split(r"[^\w-]", line, maxsplit=1)[0] for line in metadata.requires("quorate") or ()]
    for name in dict.fromkeys(("quorate", *names)):
        with suppress(metadata.PackageNotFoundError):  # of an extra that is not installed
            lines.append(f"{name:<13} {metadata.version(name)}")
    sys.stdout.write("\n".join(lines) + "\n")


def __getattr__(name: str) -> Any:
    """Load a public name or a room when it is first used: the command line starts without numerical libraries."""
    if name in _ROOMS:
        return getattr(import_module(_ROOMS[name]), name)
    if name == "__version__":
        return import_module("importlib.metadata").version("quorate")
    if not name.startswith("_") and find_spec(f"quorate.{name}") is not None:
        return import_module(f"quorate.{name}")
    raise AttributeError(f"module 'quorate' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
