"""The trained teachers of one run, as one secret value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from quorate.arguments import count
from quorate.ensemble.linear import LinearVoters
from quorate.errors import InvalidParameter
from quorate.types import Secret

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quorate.ensemble.teachers import Voter

_MOST_KEPT = 2**26  # bytes of stacked coefficients


@dataclass(frozen=True, eq=False)
class Ensemble:
    """K trained teachers. The number of classes is public; everything else about it is secret.

    Parameters
    ----------
    voters : Secret[tuple[Voter, ...]], (K,)
        In the order of the teachers' numbers.
    n_classes : int
        C, at least 1.

    Notes
    -----
    How many of the voters abstain is secret, and so is how many there are: where each unit has a teacher, that is how
    many units there are. A run's public number of teachers is its recipe's, as it was declared.

    The ensemble does not pickle, since a Secret does not; see
    :func:`~quorate.ensemble.dump_voters`.

    Examples
    --------
    >>> from quorate.ensemble import ConstantVoter
    >>> Ensemble(Secret((ConstantVoter(0), ConstantVoter(1))), n_classes=2)
    Ensemble(n_classes=2)
    """

    voters: Secret[tuple[Voter, ...]]
    n_classes: int
    _stacked: dict[int, Secret[LinearVoters]] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        count("n_classes", self.n_classes, at_least=1)
        if not isinstance(cast("Any", self.voters), Secret):
            raise InvalidParameter(f"voters must be a Secret, got {type(self.voters).__name__}")

    @classmethod
    def from_chunks(cls, chunks: Iterable[Secret[tuple[Voter, ...]]], n_classes: int) -> Ensemble:
        """Join what :func:`~quorate.ensemble.train_chunk` gave for consecutive numbers."""
        return cls(Secret(tuple(voter for chunk in chunks for voter in chunk.reveal())), n_classes)

    def linear(self, width: int) -> Secret[LinearVoters]:
        """Return its linear classifiers of `width` features, stacked; kept for the next count, unless they are large.

        A classifier is not to be changed once it is in an ensemble.
        """
        known = self._stacked.get(width)
        if known is not None:
            return known
        stacked = Secret(LinearVoters.of(self.voters.reveal(), width, self.n_classes))
        if stacked.reveal().n_bytes <= _MOST_KEPT:
            self._stacked[width] = stacked
        return stacked

    def __repr__(self) -> str:
        return f"Ensemble(n_classes={self.n_classes})"
