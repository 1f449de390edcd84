"""Logistic regression on the private rows themselves, by noisy gradient rounds in public coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from itertools import count as numbers
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError

from quorate.accounting import Guarantee
from quorate.accounting.neighbouring import Neighbouring
from quorate.arguments import count
from quorate.data import PublicPool, check_classes, fingerprint
from quorate.direct.descend import PURPOSE, descend
from quorate.direct.model import published_model
from quorate.direct.plan import DirectPlan, FeatureMapName, feature_map_for, plan_direct
from quorate.direct.rounds import PrivateUnits
from quorate.direct.schema import Schema, UsableRows, codes_of, slots_of
from quorate.errors import DataRefused, InvalidParameter, SeededNoiseRefused
from quorate.ledger import Budget, GuaranteeScope, Ledger, Reservation
from quorate.pipeline.task import unit_of
from quorate.release import Charge, GivenLedger, guarantee_of, ledger_location, session
from quorate.release.guarantee import N_IS_PUBLIC
from quorate.release.keys import fingerprint_key
from quorate.release.source import noise_and_key
from quorate.release.target import floor_budget
from quorate.types import FloatArray, Secret


class PrivateLogisticRegression(ClassifierMixin, BaseEstimator):
    r"""Fit a linear classifier to private rows in coordinates that the unlabelled public pool defines.

    Each unit's gradient is clipped and turned into integers; their sum is released with noise, round after round
    (noisy gradient descent). The pool's second moment whitens the features, so that a few rounds suffice and one step
    size fits all directions. The result is a scikit-learn Pipeline that may be published; every prediction is free.

    Parameters
    ----------
    classes : sequence of str, int or bool
        Every label there may be, in the order of ``predict_proba``.
    epsilon, delta : float
        What this fit may cost; ε > 0, 0 < δ < 1. There is no default.
    feature_map : {"auto", "linear", "rbf", "both"}
        What the classifier is linear in: rows scaled to length one, features of a Gaussian kernel told by the pool,
        or both side by side. "auto" is linear where all columns are indicators or words, and both where there are
        numbers.
    n_records : int, optional
        Number of private units, where it may be published: persons where ``groups`` are given, else records. Declared
        wrongly it costs accuracy and never privacy. Where it is not declared it is read, treated as public, and the
        guarantee is for replacing one unit.
    unit : str, optional
        The word for whose data is protected; "person" where ``groups`` are given to ``fit``, else "record".
    ledger : path or Ledger, optional
        As for :class:`~quorate.PrivateClassifier`. The same fit on the same data in the same ledger goes on where it
        was broken off, and costs nothing when it is finished.
    unsafe_noise_seed : int, optional
        For tests and demos. The fit is reproducible, therefore not private, and everything it writes says so.

    Attributes
    ----------
    model_ : Pipeline
        Encoder (where there is one), feature map, and a ``LogisticRegression`` that holds the released coefficients.
    coef_, intercept_ : arrays
        Of that ``LogisticRegression``, per feature of the map.
    guarantee_ : Guarantee
        What was promised, and its caveats.
    plan_ : DirectPlan
        Coordinates, settings and noise: public facts, fixed before a private row was seen.
    n_rounds_ : int
        Rounds that the coefficients rest on.
    classes_ : (n_classes,) array
        The declared classes.
    n_features_in_ : int
        Width of the public pool.

    Notes
    -----
    Privacy: what ``fit`` leaves in public attributes is (ε, δ)-differentially private for one unit. What a unit adds
    to a round is, bit for bit, a function of that unit's rows and public facts, of Euclidean length at most 2^k grid
    steps; replacing a unit moves the sum by at most 2·2^k. Private rows decide on no refusal: rows that cannot be
    used are left out.

    References
    ----------
    Bassily, Smith and Thakurta (2014), arXiv:1405.7085; Dong, Roth and Su (2022), arXiv:1905.02383; for conditioning by
    public moments Li et al. (2022), arXiv:2202.05963.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from quorate import PrivateLogisticRegression, PublicPool
    >>> X, y = make_classification(6_000, n_features=8, random_state=0)
    >>> clf = PrivateLogisticRegression(classes=[0, 1], epsilon=1.0, delta=1e-5, n_records=5_000)
    >>> clf.fit(X[:5_000], y[:5_000], public=PublicPool(X[5_000:5_500])).score(X[5_500:], y[5_500:]) > 0.8
    True
    """

    def __init__(
        self,
        *,
        classes: Sequence[Any],
        epsilon: float,
        delta: float,
        feature_map: FeatureMapName = "auto",
        n_records: int | None = None,
        unit: str | None = None,
        ledger: GivenLedger = None,
        unsafe_noise_seed: int | None = None,
    ) -> None:
        self.classes = classes
        self.epsilon = epsilon
        self.delta = delta
        self.feature_map = feature_map
        self.n_records = n_records
        self.unit = unit
        self.ledger = ledger
        self.unsafe_noise_seed = unsafe_noise_seed

    def fit(self, X: Any, y: Any, *, public: Any = None, groups: Any | None = None) -> PrivateLogisticRegression:
        """Go the noisy rounds and publish their mean.

        Parameters
        ----------
        X : (n_records, n_features) array, sparse matrix, pandas or polars frame
            Private rows.
        y : (n_records,)
            Private labels. A row whose label is none of `classes` is left out.
        public : PublicPool
            Public unlabelled rows with the same columns.
        groups : (n_records,), optional
            Whose row it is. The guarantee is then for everything of one person.

        Raises
        ------
        InvalidParameter, DataRefused
            If an argument, the pool or a column is wrong; nothing was charged. No private value decides on it.
        BudgetExhausted
            If the ledger has too little left; nothing was charged.
        """
        epsilon, delta = floor_budget(self.epsilon, self.delta)
        unit = unit_of(self.unit, grouped=groups is not None)
        classes = check_classes(self.classes)
        declared = None if self.n_records is None else count("n_records", self.n_records, at_least=1)
        noise, _ = noise_and_key(self.unsafe_noise_seed)
        schema = Schema.of(_pool(public).rows())
        pool = schema.numbers(schema.pool)
        feature_map = feature_map_for(self.feature_map, pool)

        rows, usable = schema.parsed(X)
        codes, (unit_keys, owned) = codes_of(y, classes), slots_of(groups, rows.shape[0])
        if not len(codes) == len(unit_keys) == rows.shape[0]:
            raise DataRefused("X, y and groups differ in length; give one label, and one id, for every row")
        private = UsableRows.of(schema, rows, usable & owned, codes, unit_keys, grouped=groups is not None)
        plan = plan_direct(
            feature_map,
            pool,
            n_classes=len(classes),
            n_units=declared or max(private.n_slots, 1),
            epsilon=epsilon,
            delta=delta,
        )
        units = Secret(PrivateUnits(plan.coordinates(private.rows), private.codes, private.starts))
        data = fingerprint(rows, codes, unit_keys, fingerprint_key(ledger_location(self.ledger)))
        target = Budget(epsilon, delta)
        with session(self.ledger, budget=target, fingerprint=data, seeded=noise.seeded) as ledger:
            reservation = self._reservation(ledger, plan, data, delta=delta, unit=unit, seeded=noise.seeded)
            weights, n_rounds = descend(plan, units, reservation, noise)
            promised = guarantee_of(
                ledger,
                plan.event,
                delta=delta,
                mechanism=f"at most {plan.settings.rounds} noisy sums of clipped gradients, discrete Gaussian noise of "
                f"{plan.sigma * plan.grid.step:.6g} on each of {plan.round_event.numbers:,} numbers, "
                f"clip {plan.grid.clip:.6g}",
                seeded=noise.seeded,
                before="the first round",
            )
        self.model_ = published_model(plan, schema, weights, classes)
        self.coef_: FloatArray = self.model_[-1].coef_
        self.intercept_: FloatArray = self.model_[-1].intercept_
        self.guarantee_: Guarantee = promised
        self.plan_ = plan
        self.n_rounds_ = n_rounds
        self.classes_ = np.asarray(list(classes))
        self.n_features_in_ = int(schema.pool.shape[1])
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return ``(n_points,)`` classes, free for ever."""
        return np.asarray(self._fitted().predict(X))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return ``(n_points, n_classes)`` probabilities, in the order of the declared classes."""
        return np.asarray(self._fitted().predict_proba(X))

    def decision_function(self, X: Any) -> FloatArray:
        """Return scores: ``(n_points,)`` for two classes, else ``(n_points, n_classes)``."""
        return np.asarray(self._fitted().decision_function(X))

    def export(self, path: str | Path) -> Path:
        """Write the model with skops, for anybody who has scikit-learn.

        Raises
        ------
        SeededNoiseRefused
            If the noise was seeded: such a model carries no guarantee and does not leave.
        """
        import skops.io

        model = self._fitted()
        if self.guarantee_.seeded:
            raise SeededNoiseRefused(
                "seeded noise: this fit is reproducible, therefore not private. Export is refused. Remove "
                "unsafe_noise_seed"
            )
        skops.io.dump(model, Path(path))
        return Path(path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def _fitted(self) -> Any:
        if not hasattr(self, "model_"):
            raise NotFittedError(
                "this PrivateLogisticRegression is not fitted; call fit(X, y, public=PublicPool(...)) first"
            )
        return self.model_

    def _reservation(
        self, ledger: Ledger, plan: DirectPlan, data: str, *, delta: float, unit: str, seeded: bool
    ) -> Reservation:
        """Charge all rounds at once; the same fit finds its own charge again, and an abandoned one is charged anew."""
        change = Neighbouring.of("replace" if self.n_records is None else "add-remove-replace", unit)
        # A sum does not know rows by their position, so deleting one is what removing it is.
        caveats = (N_IS_PUBLIC,) if self.n_records is None else ()
        told = repr((plan.digest, data, change.stated, [repr(each) for each in check_classes(self.classes)]))
        key = f"direct {blake2b(told.encode(), digest_size=16).hexdigest()}"
        for attempt in numbers():
            charge = Charge(
                event=plan.event,
                delta=delta,
                purposes={PURPOSE: plan.settings.rounds},
                key=f"{key} {attempt}",
                scope=GuaranteeScope.about(change, caveats=caveats),
                seeded=seeded,
            )
            reservation = charge.reserve(ledger)
            stored = any(block.answers is not None for block in reservation.blocks(PURPOSE))
            if stored or reservation.remaining(PURPOSE):
                return reservation
        raise AssertionError("the attempts have no end")  # pragma: no cover


def _pool(public: Any) -> PublicPool:
    if isinstance(public, PublicPool):
        return public
    if public is None:
        raise InvalidParameter(
            "public= is missing: the coordinates come from unlabelled public rows; give public=PublicPool(X_public)"
        )
    raise InvalidParameter(
        f"public must be a PublicPool, got {type(public).__name__}; write public=PublicPool(X_public), so that "
        "model selection cannot cut it along private folds"
    )


__all__ = ["PrivateLogisticRegression"]
