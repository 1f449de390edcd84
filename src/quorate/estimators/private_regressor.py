"""A number in a declared range, by noisy rounds on the private rows themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin

from quorate.ambient import own_switches
from quorate.data.cell_text import each
from quorate.data.identity import as_column, as_list
from quorate.data.notation import number
from quorate.data.target_range import TargetRange
from quorate.ensemble.workers.cluster.scheduler import DaskScheduler
from quorate.errors import DataRefused, PreconditionFailed
from quorate.estimators.by_rounds import LearnsByRounds
from quorate.estimators.checked import check_of_rounds
from quorate.estimators.fitted_rounds import FittedRounds
from quorate.estimators.known_arguments import known_arguments, tables_by_name
from quorate.release import GivenLedger
from quorate.run.check_result import CheckResult
from quorate.stored_names import stored_as
from quorate.students.prediction_sets import COVERAGE, CoveragePromise, Limits, promised
from quorate.types import FloatArray


@stored_as("quorate.estimators.private_regressor.PrivateRegressor")
class PrivateRegressor(RegressorMixin, LearnsByRounds):
    r"""Predict a number in a declared range, by a linear model in coordinates that the public pool defines.

    Each target is cut off at the ends of the range and written as a place in it, from 0 to 1. What a unit adds to a
    round is its residual, place less predicted place, times its coordinates, clipped and turned into integers; their
    sum is released with noise, as by :class:`~quorate.PrivateLogisticRegression`, at the same price. The result is a
    scikit-learn Pipeline that may be published; every prediction is free.

    The first two of the rounds count how many units' targets lie in each cell of the range, with the same noise. The
    others measure residuals by the part of the range where most targets lie, so that the range may be declared many
    times wider than the targets need.

    Parameters
    ----------
    target_range : (float, float)
        The least and the largest value that the target can have: a public statement, never read off the private rows.
        A target beyond it is taken as the nearer end; predictions are cut off there, too. There is no default. With few
        units, whose counts noise hides, a range much wider than the targets costs accuracy.
    epsilon, delta : float
        What this fit may cost; ε > 0, 0 < δ < 1. There is no default.
    feature_map, text, marginals, rounds, clip, n_records, unit, whole_ids, neighbours, scheduler
        As for :class:`~quorate.PrivateLogisticRegression`; `clip` is in widths of the part where most targets lie,
        times coordinates; with fewer than 16 rounds no round counts targets, and that part is the whole range.
    ledger, unsafe_noise_seed, verbose
        As for :class:`~quorate.PrivateLogisticRegression`.

    Attributes
    ----------
    model_ : Pipeline
        Encoder (where there is one), feature map, and a ``LinearRegression`` that holds the released coefficients. Its
        predictions are not cut off at the ends of the range; those of :meth:`predict` are.
    coef_, intercept_ : (n_features,) array, float
        Of that ``LinearRegression``, per feature of the map, in the unit of the target.
    guarantee_ : Guarantee
        What was promised, and its caveats.
    plan_ : DirectPlan
        Coordinates, settings and noise: public facts, fixed before a private row was seen.
    column_kinds_, epsilon_, delta_, ledger_, n_rounds_, pool_, n_features_in_, feature_names_in_
        As of :class:`~quorate.PrivateLogisticRegression`.

    Notes
    -----
    Privacy: what ``fit`` leaves in public attributes is (ε, δ)-differentially private for one unit. What a unit adds
    to a round is, bit for bit, a function of that unit's rows and public facts, of Euclidean length at most 2^k grid
    steps. A target that is no finite number makes its row unusable: it adds nothing, and no message says so.

    The loss is that of a generalised linear model whose mean is :math:`1/2 + w^\top z/4`, cut off at the ends of the
    range: large residuals count no more than the clip, as in Huber's loss.

    References
    ----------
    Bassily, Smith and Thakurta (2014), arXiv:1405.7085, for noisy gradient rounds; Dong, Roth and Su (2022),
    arXiv:1905.02383, for their price; Huber (1964) for clipped residuals.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate import PrivateRegressor, PublicPool
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(6_000, 4))
    >>> y = 50 + 10 * X[:, 0] + rng.normal(size=6_000)
    >>> model = PrivateRegressor(target_range=(0, 100), epsilon=1.0, delta=1e-5, n_records=5_000)
    >>> model.fit(X[:5_000], y[:5_000], public=PublicPool(X[5_000:5_200])).score(X[5_200:], y[5_200:]) > 0.8
    True
    """

    _called = "PrivateRegressor"
    _limits: Limits | None = None  # how far off predictions were on public rows

    @known_arguments
    def __init__(
        self,
        *,
        target_range: tuple[float, float] | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        feature_map: Any = "auto",
        text: Sequence[str] = (),
        marginals: float | None = None,
        rounds: int | None = None,
        clip: float | None = None,
        n_records: int | None = None,
        unit: str | None = None,
        whole_ids: bool = False,
        neighbours: Literal["auto", "add-or-remove", "replace"] = "auto",
        scheduler: DaskScheduler | None = None,
        ledger: GivenLedger = None,
        unsafe_noise_seed: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.target_range = target_range
        self.epsilon = epsilon
        self.delta = delta
        self.feature_map = feature_map
        self.text = text
        self.marginals = marginals
        self.rounds = rounds
        self.clip = clip
        self.n_records = n_records
        self.unit = unit
        self.whole_ids = whole_ids
        self.neighbours = neighbours
        self.scheduler = scheduler
        self.ledger = ledger
        self.unsafe_noise_seed = unsafe_noise_seed
        self.verbose = verbose

    @tables_by_name
    def fit(
        self, X: Any, y: Any, *, public: Any = None, groups: Any | None = None, schema: Any = None
    ) -> PrivateRegressor:
        """Go the noisy rounds and publish their mean.

        Parameters
        ----------
        X : (n_records, n_features) array, sparse matrix, pandas or polars frame
            Private rows.
        y : (n_records,)
            Private targets. A row whose target is no finite number is left out; one beyond `target_range` is taken as
            the nearer end.
        public : PublicPool, optional
            Public rows with the same columns, without targets.
        groups : (n_records,), optional
            Whose row it is. The guarantee is then for everything of one person.
        schema : Schema or mapping of str to declaration, optional
            Where there are no public rows: what the columns of the frame hold, as :class:`~quorate.Schema` takes it.

        Raises
        ------
        InvalidParameter, DataRefused
            If an argument, the pool or a column is wrong; nothing was charged. No private value decides on it.
        BudgetExhausted
            If the ledger has too little left; nothing was charged.
        PreconditionFailed
            If the ledger holds the same fit in coordinates of other bits; nothing more was charged.

        Warns
        -----
        QuorateWarning
            For each caution of :func:`quorate.check`, with its code, before anything is charged.
        """
        return self._fit(X, y, public=public, groups=groups, schema=schema)

    @own_switches()
    def predict(self, X: Any) -> FloatArray:
        """Return ``(n_points,)`` numbers within the range, free for ever."""
        predictions = self._fitted().predict(self._model_rows(X))
        return self._range.clipped(np.asarray(predictions, dtype=np.float64))

    @own_switches()
    def calibrate(self, X: Any, y: Any) -> Self:
        """Note how far predictions are off on public rows, for :meth:`predict_interval`: free. The model stays.

        Parameters
        ----------
        X : (n_rows, n_features)
            *Public* rows, drawn as those that the model will be asked about, and not in the public pool. Where private
            rows are among them nothing is noted, and a line on the terminal says why.
        y : (n_rows,)
            Their targets, finite numbers; they may lie beyond `target_range`.

        Raises
        ------
        DataRefused
            If a target is no finite number, or there is not one for each row.
        PreconditionFailed
            If this is a copy, which cannot tell whether private rows are among these.

        Notes
        -----
        Privacy: a function of the published model and of public rows.
        """
        predictions = self.predict(X)
        if not hasattr(self, "_kept"):
            raise PreconditionFailed(f"a copy of a fitted {self._called} takes no calibration rows; the original does")
        targets = np.array(each(number, as_list(as_column(y))), dtype=np.float64)
        if targets.shape != predictions.shape or not np.isfinite(targets).all():
            raise DataRefused(
                f"calibrate(X, y) needs a finite number for each of {len(predictions):,} rows; leave out rows without"
            )
        if self._kept.are_public(self._reader.as_the_pool(X, as_given=True), "calibration"):
            off = np.abs(targets - predictions)
            self._limits = Limits.of(off, unit=self._range.width)
        return self

    @own_switches()
    def predict_interval(self, X: Any, coverage: float = COVERAGE) -> FloatArray:
        """Return where the target may be, so that it is there in a share of rows that is asked for: free.

        Parameters
        ----------
        X : (n_points, n_features)
            Rows, drawn as those that :meth:`calibrate` took: for others nothing is promised.
        coverage : float, default 0.9
            In (0, 1). :meth:`coverage_promise` says how far below it chance may have it.

        Returns
        -------
        (n_points, 2) array
            The lower and the upper end, as far from what :meth:`predict` returns for every row; they may lie beyond
            `target_range`, as targets may.

        Raises
        ------
        PreconditionFailed
            If :meth:`calibrate` was not called.
        InvalidParameter
            If its rows are too few for this coverage, with the number that would do.
        """
        predictions, off = self.predict(X), self._calibrated().limit(coverage)
        return np.column_stack([predictions - off, predictions + off])

    def coverage_promise(self, coverage: float = COVERAGE) -> CoveragePromise:
        """Return what :meth:`predict_interval` promises of a coverage in (0, 1), as a value that prints as a sentence.

        Raises as :meth:`predict_interval` does.
        """
        return promised(self._calibrated().n_rows, coverage)

    def _calibrated(self) -> Limits:
        self._fitted()
        if self._limits is None:
            raise PreconditionFailed("intervals need public rows with targets; first: calibrate(X, y)")
        return self._limits

    def _take(self, kept: FittedRounds) -> None:
        super()._take(kept)
        self._limits = None
        assert kept.task.target_range is not None  # noqa: S101 - as _predicted declares it
        self._range = kept.task.target_range

    def _predicted(self) -> dict[str, Any]:
        return {"target_range": TargetRange.of(self.target_range)}

    def _check(self, X: Any, y: Any, *, public: Any, groups: Any | None, schema: Any = None) -> CheckResult:
        """Say what :meth:`fit` would do and cost: :func:`quorate.check`."""
        task = self._task(X, y, public=public, groups=groups, schema=schema, begin=False)
        return check_of_rounds(task, self.ledger)
