"""The trained teachers of one run, as one secret value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from quorate.arguments import count
from quorate.errors import InvalidParameter
from quorate.types import Secret

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quorate.ensemble.teachers import Voter


@dataclass(frozen=True, eq=False)
class Ensemble:
    """K trained teachers. K and the number of classes are public; everything else about it is secret.

    Parameters
    ----------
    voters : Secret[tuple[Voter, ...]], (K,)
        In the order of the teachers' numbers.
    n_classes : int
        C, at least 1.

    Notes
    -----
    How many of the voters abstain is secret. The ensemble does not pickle, since a Secret does not; see
    :func:`~quorate.ensemble.dump_voters`.

    Examples
    --------
    >>> from quorate.ensemble import ConstantVoter
    >>> Ensemble(Secret((ConstantVoter(0), ConstantVoter(1))), n_classes=2)
    Ensemble(n_teachers=2, n_classes=2)
    """

    voters: Secret[tuple[Voter, ...]]
    n_classes: int

    def __post_init__(self) -> None:
        count("n_classes", self.n_classes, at_least=1)
        if not isinstance(cast("Any", self.voters), Secret):
            raise InvalidParameter(f"voters must be a Secret, got {type(self.voters).__name__}")

    @classmethod
    def from_chunks(cls, chunks: Iterable[Secret[tuple[Voter, ...]]], n_classes: int) -> Ensemble:
        """Join what :func:`~quorate.ensemble.train_chunk` gave for consecutive numbers."""
        return cls(Secret(tuple(voter for chunk in chunks for voter in chunk.reveal())), n_classes)

    @property
    def n_teachers(self) -> int:
        """K."""
        return len(self.voters.reveal())

    def __repr__(self) -> str:
        return f"Ensemble(n_teachers={self.n_teachers}, n_classes={self.n_classes})"
