r"""How many labelled rows a private choice among finitely many concepts needs: the proof, and its figure.

Let H be a set of concepts that does not depend on the m labelled rows, :math:`h^* \in H` one with
:math:`err(h^*) \le \kappa\alpha`, and let h be chosen by the exponential mechanism at ε with mistakes as scores. Then
for a bad h, one with :math:`err(h) > \alpha`,

.. math::

    P(h) \le \min(1, e^{-\frac{\varepsilon}{2}(M(h) - M(h^*))}) \le e^{-s (M(h) - M(h^*))},
    \qquad 0 \le s \le \varepsilon / 2,

where M counts mistakes. One row adds 1 to the difference with a probability :math:`p_+`, and −1 with :math:`p_-`, and
:math:`p_+ - p_- > \alpha - err(h^*)`, :math:`p_- \le err(h^*)`; so with independent rows

.. math::

    E[P(h)] \le \left(1 - p_+ (1 - e^{-s}) + p_- (e^s - 1)\right)^m
        \le \left(1 - \alpha\,(1 - e^{-s}) + \kappa\alpha\,(e^s - 1)\right)^m = (1 - \alpha r)^m,

since what is added grows with :math:`p_-`. A bad concept is chosen with probability at most
:math:`|H| (1 - \alpha r)^m \le \beta` if :math:`m \ge (\log|H| + \log 1/\beta) / (-\log(1 - \alpha r))`. The best s
is :math:`\min(\varepsilon/2, \frac12 \log 1/\kappa)`. Permute-and-flip's :math:`P(h)` is at most
its coin's, which is the same minimum.

*Any labels.* Let h* be a best concept of H, whatever it errs by, and h bad: :math:`err(h) > err(h^*) + \alpha`. Then
:math:`p_+ - p_- > \alpha` and :math:`p_+ + p_- \le 1`. With :math:`t = p_+ + p_-` a row's factor is at most
:math:`1 - t + t \cosh s - \alpha \sinh s`, which grows with t, so

.. math::

    E[P(h)] \le (\cosh s - \alpha \sinh s)^m,

and a bad concept is chosen with probability at most β if
:math:`m \ge (\log|H| + \log 1/\beta) / (-\log(\cosh s - \alpha \sinh s))`; the best s is
:math:`\min(\varepsilon/2, \operatorname{artanh} \alpha)`. A choice from a whole class needs no true concept.

**One choice among candidates whose number may be private: a single candidate is taken without a draw.**
"""

from __future__ import annotations

from collections.abc import Callable
from math import atanh, ceil, expm1, inf, log, log1p, sinh

import numpy as np

from quorate.learners.concepts.protocol import ConceptClass
from quorate.mechanisms import CandidateChoice
from quorate.noise import NoiseSource
from quorate.theory.bns15 import sauer
from quorate.types import IntArray


def choice_rows(log_size: float, *, alpha: float, beta: float, epsilon: float, share: float = 0.0) -> int:
    r"""Return m: with as many labelled rows, a concept of error above α is chosen with probability at most β.

    `log_size`: :math:`\log |H|`. `alpha`, `beta`: in (0, 1). `epsilon`: ε of the choice. `share`: κ in [0, 1): the best
    concept's error is at most κα.
    """
    best = -log(share) / 2 if share else inf
    s = min(epsilon / 2, best)
    rate = -expm1(-s) - (share * expm1(s) if share else 0.0)
    return max(1, ceil((log_size - log(beta)) / -log1p(-alpha * rate)))


def agnostic_choice_rows(log_size: float, *, alpha: float, beta: float, epsilon: float) -> int:
    r"""Return m: with as many labelled rows, an error of more than α beyond the best has a probability of at most β.

    `log_size`: :math:`\log |H|`. `alpha`, `beta`: in (0, 1). `epsilon`: ε of the choice.

    References
    ----------
    KLNRS11, Theorem 3.4, for labels that no concept explains.
    """
    s = min(epsilon / 2, atanh(alpha))
    lost = alpha * sinh(s) - 2 * sinh(s / 2) ** 2  # 1 − cosh s + α sinh s, without cancellation
    return max(1, ceil((log_size - log(beta)) / -log1p(-lost)))


def growth_of(concepts: ConceptClass) -> Callable[[int], int]:
    """Return the class's own bound on its dichotomies on so many points; Sauer's lemma where it has none.

    References
    ----------
    Sauer (1972); BNS15, Theorem B.2.
    """
    own: Callable[[int], int] | None = getattr(concepts, "growth", None)
    return own or (lambda n_points: sauer(n_points, concepts.vc_dimension))


def deviation_rows(growth: Callable[[int], int], *, seen: float, true: float, beta: float) -> int:
    r"""Return n: on as many independent rows, all pairs of concepts that differ on a share `seen` differ by `true`.

    For one target c, with probability 1 − β, every concept h with :math:`dis_D(h, c) \le` `seen` has a true
    disagreement of at most `true` (Vapnik's relative deviation): :math:`L \le L_n + 2\sqrt{L_n A} + 4A` with
    :math:`A = (\log S(2n) + \log(4/\beta))/n`, S = `growth`. Its solution is
    :math:`A \le ((\sqrt{4\,true - 3\,seen} - \sqrt{seen})/4)^2`.

    References
    ----------
    Boucheron, Bousquet, Lugosi (2005), "Theory of classification", Corollary 5.2; Anthony and Shawe-Taylor (1993).
    """
    slack = ((4 * true - 3 * seen) ** 0.5 - seen**0.5) / 4
    allowed = slack * slack

    def enough(n: int) -> bool:
        return bool(log(growth(2 * n)) + log(4 / beta) <= allowed * n)

    high = 1
    while not enough(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def chosen(mechanism: CandidateChoice, scores: IntArray, noise: NoiseSource) -> int:
    """Choose one of some candidates by their ``(n_candidates,)`` int64 scores: its index.

    On some private points a whole class collapses to one dichotomy. A refusal to choose would tell that; taking the one
    there is tells no more than a choice that could not have come out otherwise.
    """
    return int(mechanism.release_many(scores[np.newaxis], noise)[0]) if len(scores) > 1 else 0
