"""A student from the class of votes: where the ensemble's majority lives (LZCW21 Theorem 20)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from quorate.ambient import own_switches
from quorate.arguments import count
from quorate.data import take
from quorate.errors import InvalidParameter
from quorate.stored_names import stored_as
from quorate.students.declared import fit_student, takes_weights
from quorate.students.student import EstimatorStudent, StudentData
from quorate.students.values import VoteShareStudent


@stored_as("quorate.students.voting_class.VotingClass")
@dataclass(frozen=True)
class VotingClass(EstimatorStudent):
    r"""Learn a vote of hypotheses by AdaBoost, from the labels that were released.

    A majority of teachers from a class H is usually not in H, so that a student from H may fail where the ensemble
    does not. It is in :math:`\mathrm{Vote}_K(H)`, whose VC dimension can be more than K times that of H (Notes). Where
    noisy votes were released, every public point gets the class with the largest share that :class:`VoteShareStudent`
    estimates: boosting turns to the points it gets wrong, and does not bear with labels that noise has changed.

    Parameters
    ----------
    estimator : estimator, optional
        H: a scikit-learn classifier that takes ``sample_weight``. A logistic regression by default.
    n_estimators : int, optional
        Rounds of boosting; as many as there are teachers, K, by default. Each is one fit on the public pool.

    Raises
    ------
    InvalidParameter
        If the classifier takes no weights, or `n_estimators` is no number of rounds.

    Notes
    -----
    Theorem 20: with probability :math:`1 - 2\gamma` the error beyond that of the infinite ensemble is at most
    :math:`4T/m + 5(Kd + \log(4/\gamma))/m`, where T bounds the number of points labelled otherwise than it would. Its
    proof needs :math:`Kd\log(2em/d)` for Kd (:func:`quorate.theory.lzcw21_theorem_20_by_growth`): there is a class of
    VC dimension 2 whose votes of K = 2 have VC dimension 5.

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang, 2021), Theorem 20; Freund and Schapire (1997), AdaBoost.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> VotingClass(DecisionTreeClassifier(max_depth=1), n_estimators=50).learner
    AdaBoostClassifier(estimator=DecisionTreeClassifier(max_depth=1))
    """

    n_estimators: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_estimators is not None:
            count("n_estimators", self.n_estimators, at_least=1)
        hypothesis = super().learner
        if hasattr(hypothesis, "steps") or not takes_weights(hypothesis):
            raise InvalidParameter(
                f"VotingClass boosts by weights, and {type(hypothesis).__name__} takes none in fit; choose another "
                "classifier, outside of a Pipeline"
            )

    @property
    def learner(self) -> Any:
        """The boosted classifier; K, where it is left open, is known to the data alone."""
        return self._boosted({} if self.n_estimators is None else {"n_estimators": self.n_estimators})

    @own_switches()
    def fit(self, data: StudentData) -> Any:
        """Return the vote; where the first hypothesis is no better than a coin, that hypothesis alone."""
        rounds = data.n_teachers if self.n_estimators is None else self.n_estimators
        rows, codes = data.labels()
        if data.released.holds_values and len(data.answered):
            codes = VoteShareStudent().model(data, data.points)(data.points).argmax(axis=1)
            rows = np.arange(len(codes))
        known, seed = take(data.pool, rows), data.estimator_seed
        try:
            return fit_student(self._boosted({"n_estimators": rounds}), known, codes, data.classes, seed=seed)
        except ValueError as error:
            if "worse than random" not in str(error):
                raise
            return fit_student(super().learner, known, codes, data.classes, seed=seed)

    def _boosted(self, rounds: dict[str, int]) -> Any:
        from sklearn.ensemble import AdaBoostClassifier

        return AdaBoostClassifier(super().learner, **rounds)
