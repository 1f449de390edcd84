"""What a run of the direct method was fixed by, and how far it got."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.report.plain import Plain, require


@dataclass(frozen=True, kw_only=True, slots=True)
class Rounds(Plain):
    """The settings of noisy gradient rounds, all of them public facts, and what became of the rounds.

    Parameters
    ----------
    feature_map : str
        What the model is linear in, in words.
    n_coordinates : int
        Numbers that a row has in public coordinates.
    effective_dimension, ridge : float
        d(κ) and κ.
    clip : float
        B: the length that the gradient of one unit is cut off at.
    noise : float
        Standard deviation on each number of a round, in the unit of the gradient.
    rounds, stored, interrupted : int
        T, the rounds that the model rests on, and those that were drawn and lost when a process ended.
    rate, momentum : float
        η, and the share of a step that is kept for the next.
    n_units : int
        n₀, the number of units that a step is divided by.
    residual_ridge : float or None
        κ of what kernels add to linear features, which is whitened by itself; None where there is one whitening.
    averaged : float or None
        The share of the rounds, the last ones, whose weights were averaged; None for half of them.
    shrunk : bool or None
        Whether weights were shrunk by their known error afterwards; None for no.

    Examples
    --------
    >>> Rounds(feature_map="rows scaled to length one", n_coordinates=40, effective_dimension=21.5, ridge=0.01,
    ...        clip=2.1, noise=14.2, rounds=12, stored=12, interrupted=0, rate=4.0, momentum=0.0, n_units=6000).rounds
    12
    """

    feature_map: str
    n_coordinates: int
    effective_dimension: float
    ridge: float
    clip: float
    noise: float
    rounds: int
    stored: int
    interrupted: int
    rate: float
    momentum: float
    n_units: int
    residual_ridge: float | None = None
    averaged: float | None = None
    shrunk: bool | None = None

    LEFT_OUT: ClassVar[tuple[str, ...]] = ("residual_ridge", "averaged", "shrunk")

    def _check(self) -> None:
        require(min(self.rounds, self.n_coordinates, self.n_units) >= 1, "rounds, n_coordinates and n_units are >= 1")
        require(min(self.stored, self.interrupted) >= 0, "stored and interrupted are counts, expected >= 0")
        require(self.stored + self.interrupted <= self.rounds, "a round is stored or lost, once")
        require(self.clip > 0 and self.noise > 0, "clip and noise are > 0")
