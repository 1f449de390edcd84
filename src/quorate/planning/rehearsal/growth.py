r"""What a larger run is more right, by a law of the whole, the halves and the quarters of what a rehearsal has.

A model scores each class. Let the score of the true one lead by :math:`\mu` on average, in a choice among C; around
that, scores vary by :math:`\tau^2` from row to row, which no number of rows takes away, and by :math:`v/s` where the
model has learned from s of them (rows, or independent teachers). With normal scores the choice is right as often as

.. math:: A = \int \varphi(z - \sqrt2\,d)\, \Phi(z)^{C - 1}\, dz, \qquad d = \mu \big/ \sqrt{\tau^2 + v/s},

which is :math:`\Phi(d)` for two classes: the law of a forced choice among alternatives (Green and Swets, 1966), with
the *sensitivity* d. So it is :math:`1/d^2`, and not A, that falls in proportion to one over the size. A itself falls so
only where :math:`v/s` is small beside :math:`\tau^2`, and it is not where a few hundred rows play tens of thousands for
a model of hundreds of effective dimensions.

Let the *share* :math:`\rho = (v/s)/(\tau^2 + v/s)` be that of the whole. The accuracies of the whole, of the halves and
of the quarters tell it; how well, the rows that were scored say, which are the same ones for all three. Before anything
is seen a share has the density :math:`4(1 - \rho)^3`: shares of 1/5 on average, as on tables on which nothing is
reported, and none that would leave no error at all. So what few rows say little about is not taken at its word: the
correction is the mean over the shares, weighed by how well each explains what was seen, and its standard deviation is
theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from quorate.deferred import special
from quorate.types import FloatArray

SHARES = 1 - (1 - (np.arange(50) + 0.5) / 50) ** (1 / 4)  # ρ: each of them as likely, before anything is seen
LARGEST = 8.0  # sensitivity beyond which nothing is ever wrong
NODES = 80


@cache
def _forced_choice(n_classes: int) -> tuple[FloatArray, FloatArray]:
    """Return sensitivities from 0 on, and how often a choice among so many classes is right with each."""
    sensitivities = np.linspace(0.0, LARGEST, 801)
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    beaten = special.ndtr(nodes[:, None] + np.sqrt(2) * sensitivities) ** (n_classes - 1)
    return sensitivities, np.asarray(weights @ beaten / weights.sum())


def accuracy_of(sensitivity: FloatArray, n_classes: int) -> FloatArray:
    """Return how often a choice among classes is right."""
    return np.interp(sensitivity, *_forced_choice(n_classes))


def sensitivity_of(accuracy: float, n_classes: int) -> float:
    """Return the sensitivity of a choice that is right so often; 0 where a guess is as good."""
    sensitivities, right = _forced_choice(n_classes)
    return float(np.interp(accuracy, right, sensitivities))


@dataclass(frozen=True, kw_only=True, slots=True)
class Growth:
    """What the true size adds.

    `mean`: of the accuracy. `variance`: of that, by what few scored rows leave open of it.
    """

    mean: float
    variance: float


def growth(losses: FloatArray, whole: float, *, size: float, n_classes: int) -> Growth:
    """Return what the true size adds to the accuracy of the whole.

    `losses`: of each scored row, how much more often it was right with the whole than with a half, and than with a
    quarter. `whole`: accuracy with the whole. `size`: of the whole, as a share of the true size. `n_classes`: c.
    """
    n = len(losses)
    sensitivity = sensitivity_of((whole * n + 0.5) / (n + 1), n_classes)  # all right of n is no proof
    variances = np.array([1.0, 2.0, 4.0, min(size, 1.0)])  # of the whole, halves, quarters and all rows, where v/s is 1
    lengths = np.sqrt(1 - SHARES[:, None] + SHARES[:, None] * variances)
    right = accuracy_of(sensitivity / lengths, n_classes)
    apart = losses.mean(axis=0) - (right[:, :1] - right[:, 1:-1])
    unsure = np.cov(losses.T) / n + np.eye(2) / n**2
    fits = np.einsum("ij,jk,ik->i", apart, np.linalg.inv(unsure), apart)
    weights = np.exp(-(fits - fits.min()) / 2)
    weights /= weights.sum()
    added = right[:, -1] - right[:, 0]
    mean = float(weights @ added)
    return Growth(mean=mean, variance=float(weights @ (added - mean) ** 2))
