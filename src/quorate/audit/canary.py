"""The canary attack on a whole run: plant a poisoned unit or not, run everything, and guess which from the release.

What runs is behind :class:`Target`, so that an estimator, the command line or a service is attacked by the same code.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate.arguments import one_of
from quorate.audit.claims import Claim
from quorate.audit.probe import Change
from quorate.audit.sampled import AuditResult, audit_mechanism
from quorate.errors import InvalidParameter
from quorate.noise import NoiseSource


class Target(Protocol):
    """A whole pipeline: private rows in, what everybody may see out."""

    def fit(self, X: Any, y: Any, public: Any) -> Any:
        """Train on private rows, and return what is released about the public ones: labels, noisy votes, answers.

        Each call is a run of its own, with fresh randomness and a fresh budget.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Canary:
    """One poisoned unit: a row that is unlike all others, with a label of its own.

    `X` ``(n_features,)``: its features; queries near it show most. `y`: its label. `change`: "add" or "replace":
    whether it is appended as a unit that was not there, or takes the place of the last row.
    """

    X: Any = field(repr=False)
    y: Any = field(repr=False)
    change: Change = "add"

    def __post_init__(self) -> None:
        one_of("change", self.change, ("add", "replace"))


def audit_target(
    target: Target,
    X: ArrayLike,
    y: ArrayLike,
    public: Any,
    canary: Canary,
    claimed: Claim,
    confidence: float = 0.95,
    runs: int = 200,
    *,
    seed: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> AuditResult:
    """Bound the privacy loss of a whole run from below, with a poisoned canary unit.

    Raises InvalidParameter if an argument is of the wrong kind or shape.

    `target`: what is attacked, from private rows to release.
    `X` ``(n_rows, n_features)``: private rows without the canary, each a unit: made-up ones, or some that may be used
    for this.
    `y` ``(n_rows,)``: their labels.
    `public`: handed to the target as it is; the queries that the attacker would choose.
    `canary`: the unit whose presence is to be told.
    `claimed`: what the whole run claims for one unit.
    `confidence`: of the bound, in (0, 1).
    `runs`: at least 40. Each is a whole training; a few hundred find a flaw that is gross, not a tenth of noise too
    little.
    `seed`: of the secret bits alone: the target draws its own noise.
    `progress`, `clock`: as for :func:`~quorate.audit.audit_mechanism`.

    A run is audited as any mechanism is: the secret bit says on which of two neighbouring tables it is made
    (Jagielski, Ullman, Oprea 2020; Nasr et al. 2021). The result speaks of everything between table and release:
    partition, training, votes, mechanism, student.

    Examples
    --------
    >>> from quorate.audit import PureClaim
    >>> class NoPrivacy:
    ...     def fit(self, X, y, public):
    ...         return [int(np.any(np.all(X == row, axis=1))) for row in public]
    >>> X, y = np.zeros((5, 2)), np.zeros(5, dtype=int)
    >>> found = audit_target(NoPrivacy(), X, y, [[9.0, 9.0]], Canary([9.0, 9.0], 1), PureClaim(1.0), runs=100, seed=0)
    >>> found.violated
    True
    """
    if not hasattr(target, "fit"):
        raise InvalidParameter(f"target must have fit(X, y, public), got {type(target).__name__}")
    tables = _neighbours(np.asarray(X), np.asarray(y), canary)
    mechanism = _WholeRun(target, tables, public)
    bit = np.array([0]), np.array([1])
    return audit_mechanism(
        mechanism, bit, claimed, confidence, runs, seed=seed, progress=progress, clock=clock, n_jobs=1
    )  # fmt: skip


class _WholeRun:
    """A mechanism whose "counts" are the number of the table that a run is made on."""

    def __init__(self, target: Target, tables: tuple[tuple[NDArray[Any], NDArray[Any]], ...], public: Any) -> None:
        self._target, self._tables, self._public = target, tables, public

    def release(self, counts: NDArray[Any], noise: NoiseSource) -> Any:
        X, y = self._tables[int(counts[0])]
        return self._target.fit(X.copy(), y.copy(), self._public)


def _neighbours(X: NDArray[Any], y: NDArray[Any], canary: Canary) -> tuple[tuple[NDArray[Any], NDArray[Any]], ...]:
    row = np.asarray(canary.X)
    if X.ndim != 2 or y.shape != X.shape[:1] or row.shape != X.shape[1:] or not len(X):
        raise InvalidParameter(
            f"X must be (n_rows, n_features), y (n_rows,) and the canary (n_features,), got {X.shape}, {y.shape} and "
            f"{row.shape}"
        )
    kept = len(X) if canary.change == "add" else len(X) - 1
    return (X, y), (np.concatenate([X[:kept], row[None]]), np.append(y[:kept], canary.y))
