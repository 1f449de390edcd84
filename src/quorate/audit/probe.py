"""One changed unit, and which teachers it moved."""

from __future__ import annotations

from dataclasses import dataclass, field

from quorate.audit.neighbouring import Change, Touched
from quorate.types import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One changed unit, and what it did.

    Attributes
    ----------
    change : {"add", "remove", "replace"}
        What was done to the unit.
    touched : str
        What of the unit changed: its features, an outlier among them, its label, …
    unit : int
        Which of the audited units, 0, 1, …; not its id.
    moved : int
        How many teachers' parameters or votes changed.
    voted_otherwise : int
        How many of these vote otherwise somewhere on the table.
    resized : bool
        Whether the number of teachers changed.
    stopped : bool
        Whether the whole training stopped with an exception.
    teachers : Secret
        Which ones moved.
    """

    change: Change
    touched: Touched
    unit: int
    moved: int
    voted_otherwise: int
    resized: bool
    stopped: bool
    teachers: Secret[frozenset[int]] = field(repr=False)
