"""Private prediction as a service: a finished run answers over HTTP until its answers are spent, and then its student.

What speaks HTTP, and what serves a run for weeks, belongs here: keys, strict input, the threads that answer, health,
metrics, the page of what is left, and a client. How an answer is charged, drawn and stored does not: that is
:mod:`quorate.labelling` over :mod:`quorate.ledger`, the same as for ``quorate ask``.

Begin with :mod:`quorate.service.app`, the routes; then :mod:`quorate.service.turns`, where requests that wait together
become one block, and :mod:`quorate.service.votes`, what is done with it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quorate.service.client import Client, NoAnswer, Refused

__all__ = ["Client", "NoAnswer", "Refused"]


def __getattr__(name: str) -> Any:
    """Load the client when it is first used: neither side needs what the other one loads."""
    if name in __all__:
        return getattr(import_module("quorate.service.client"), name)
    raise AttributeError(f"module 'quorate.service' has no attribute {name!r}")
