"""A number in a declared range, by noisy rounds on the private rows themselves, or by votes of teachers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NoReturn, Self

import numpy as np
from sklearn.base import RegressorMixin

from quorate.ambient import own_switches
from quorate.arguments import one_of
from quorate.data.labels import TargetRange, finite_numbers
from quorate.direct.config import DirectConfig
from quorate.direct.task import DirectTask
from quorate.errors import InvalidParameter, PreconditionFailed, named
from quorate.estimators.by_rounds import FittedRounds, LearnsByRounds, arguments_given, arguments_of_one
from quorate.estimators.checked import check_of_numbers, check_of_rounds
from quorate.estimators.decided import WITHOUT_ANY
from quorate.estimators.known_arguments import known_arguments, rows_and_labels
from quorate.findings import warn_of
from quorate.report import Facts, Utility
from quorate.run.method import CheckResult
from quorate.run.method_config import MethodConfig
from quorate.run.pool_cautions import calibrates_twice_caution
from quorate.run.public_facts import WAYS, ChosenMethod, named_method
from quorate.run.resources import processes
from quorate.run.scores import score_numbers
from quorate.stored_names import stored_as
from quorate.students.prediction_sets import COVERAGE, CoveragePromise, Limits, OneLimit
from quorate.types import FloatArray
from quorate.voting.numbers import NumberConfig, NumberTask, prepare_numbers


@stored_as("quorate.estimators.private_regressor.PrivateRegressor")
@known_arguments
@dataclass(eq=False, repr=False, kw_only=True)
class PrivateRegressor(RegressorMixin, LearnsByRounds):
    r"""Predict a number in a declared range, by a linear model in coordinates that the public pool defines.

    By the direct method, which is the default, noisy rounds go over the private rows themselves. By votes, teachers on
    disjoint parts of the private rows predict the number on public rows, and their noisy means are released, on which
    the model is fitted.

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
    method : {"auto", "votes", "direct"}, default "auto"
        "auto" takes votes where `teacher`, `n_teachers` or `queries` is given, else the direct method.
    teacher : regressor, optional
        Of votes: any regressor with ``fit`` and ``predict``, or a Pipeline, unfitted: each teacher is a copy, fitted on
        its own part of the rows, encoded as the public rows are. By default many small ridge regressions in
        coordinates of the pool.
    n_teachers : int or "auto"
        Of votes: K.
    queries : int, "auto" or "all"
        Of votes: ℓ, the public rows on which the teachers predict; by default all, or 10,000 of them.
    n_jobs : int, optional
        Of votes: processes; as many as there are cores by default.
    n_records, unit, whole_ids, scheduler
        As for :class:`~quorate.PrivateLogisticRegression`.
    feature_map, text, marginals, rounds, clip, neighbours
        Of the direct method, as for :class:`~quorate.PrivateLogisticRegression`; `clip` is in widths of the part where
        most targets lie, times coordinates; with fewer than 16 rounds no round counts targets, and that part is the
        whole range.
    calibration_share : float, optional
        In (0, 1): the share of the units that is held out for :meth:`predict_interval`, in the same charge, where no
        public rows have targets. Nothing learns from them; `n_records` must be declared. Too few are refused, with the
        number that would do.
    coverage : float, default 0.9
        In (0, 1), of at most three decimals: that of these intervals; others are refused.
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
    method_ : ChosenMethod
        "votes" or "direct", to which it is equal, and the reason as ``method_.why``.
    n_teachers_, mechanism_ : int, NoisyMean
        Of votes: K, and what crossed the boundary.
    plan_ : DirectPlan
        Of the direct method: coordinates, settings and noise: public facts, fixed before a private row was seen.
    column_kinds_, epsilon_, delta_, ledger_, n_rounds_, pool_, n_features_in_, feature_names_in_
        As of :class:`~quorate.PrivateLogisticRegression`.

    Notes
    -----
    Privacy: what ``fit`` leaves in public attributes is (ε, δ)-differentially private for one unit. What a unit adds
    to a round is, bit for bit, a function of that unit's rows and public facts, of Euclidean length at most 2^k grid
    steps. By votes a unit belongs to one teacher, whose prediction moves each sum of K predictions by at most the whole
    range, whether the unit is added, removed or replaced; a teacher without a finite prediction counts as the middle of
    the range, and the divisor is K. A target that is no finite number makes its row unusable: it adds nothing, and no
    message says so.

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

    target_range: tuple[float, float] | None = None
    method: Literal["auto", "votes", "direct"] = "auto"
    teacher: Any = None
    n_teachers: int | Literal["auto"] = "auto"
    queries: int | Literal["auto", "all"] = "auto"
    n_jobs: int | None = None

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

        Warns
        -----
        QuorateWarning
            If rows of the public pool are among these, so that what they promise is not what they say.

        Notes
        -----
        Privacy: a function of the published model and of public rows.
        """
        predictions = self.predict(X)
        kept = self._original("takes no calibration rows; the original does")
        targets = finite_numbers(y, name="calibrate(X, y)", n_rows=len(predictions))
        rows = self._reader.as_the_pool(X, as_given=True)
        if kept.are_public(rows, "calibration"):
            schema, public = kept.task.schema, kept.task.has_public_pool
            others = {"the public pool": schema.pool if public else None}
            warn_of([calibrates_twice_caution(rows, others, "calibrate(X, y)", kinds=schema.kinds)])
            off = np.abs(targets - predictions)
            self._off = Limits.of(off, width=self._range.width)
        return self

    @own_switches()
    def predict_interval(self, X: Any, coverage: float = COVERAGE) -> FloatArray:
        """Return where the target may be, so that it is there in a share of rows that is asked for: free.

        Parameters
        ----------
        X : (n_points, n_features)
            Rows, drawn as those that :meth:`calibrate` took, or as the private ones: for others nothing is promised.
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
            If :meth:`calibrate` was not called, and no units were held out.
        InvalidParameter
            If its rows are too few for this coverage, with the number that would do; or the limit was chosen on units
            held out, for another coverage.
        """
        predictions, off = self.predict(X), self._calibrated().limit(coverage)
        return np.column_stack([predictions - off, predictions + off])

    def coverage_promise(self, coverage: float = COVERAGE) -> CoveragePromise:
        """Return what :meth:`predict_interval` promises of a coverage in (0, 1), as a value that prints as a sentence.

        Raises as :meth:`predict_interval` does.
        """
        return self._calibrated().promised(coverage)

    def _calibrated(self) -> Limits | OneLimit:
        self._fitted()
        if self._off is None:
            raise PreconditionFailed(
                f"intervals need public rows with targets. First call calibrate(X, y). {WITHOUT_ANY}"
            )
        return self._off

    @own_switches()
    def facts(self, *, evaluation: tuple[Any, Any] | None = None) -> Facts:
        """Gather what a report says.

        Parameters
        ----------
        evaluation : (X, y), optional
            *Public* rows with targets, to score the model on. Where more of the private rows are among them than chance
            explains, the report has no score, and a line on the terminal says why.
        """
        kept, utility = self._original("has no ledger; the original reports"), Utility()
        if evaluation is not None:
            X, y = rows_and_labels(evaluation)
            predicted = self.predict(X)
            truth = self._range.clipped(finite_numbers(y, name="evaluation", n_rows=len(predicted)))
            if kept.are_public(self._reader.as_the_pool(X, as_given=True), "evaluation"):
                utility = Utility(number=score_numbers(predicted, truth))
        return kept.facts(self.ledger, utility)

    def ask(self, X: Any) -> NoReturn:
        """Refuse a question, since no answer is kept back: PreconditionFailed says what to call instead."""
        raise PreconditionFailed("there is nothing to ask: no answers are kept back. predict() asks the model, free")

    def _take(self, kept: FittedRounds) -> None:
        for name in ("plan_", "n_rounds_", "pool_", "n_teachers_", "mechanism_"):
            if name in vars(self):  # of a fit by the other method
                delattr(self, name)
        super()._take(kept)
        task = kept.task
        limit = None if task.held is None else task.held.plan.published(kept.result.limit)
        self._off = None if limit is None else limit.limits
        assert task.target_range is not None  # noqa: S101 - as _predicted declares it
        self._range = task.target_range
        self.method_ = self._chosen()
        if isinstance(task, NumberTask):
            self.n_teachers_, self.mechanism_ = task.n_teachers, task.mechanism

    def _predicted(self) -> dict[str, Any]:
        return {"target_range": TargetRange.of(self.target_range)}

    def _chosen(self) -> ChosenMethod:
        """Return the method of a fit, by arguments alone; raises InvalidParameter where they do not go together."""
        of_votes = arguments_given(self, arguments_of_one(self, NumberConfig, DirectConfig, but=("n_jobs",)))
        of_direct = arguments_given(self, arguments_of_one(self, DirectConfig, NumberConfig))
        way = one_of("method", self.method, WAYS)
        if way == "auto" and not of_votes:
            return ChosenMethod("direct", "no teacher is given")
        if way == "direct" and of_votes:
            raise InvalidParameter(
                f'{named(of_votes[0])} is for votes of teachers, and {named("method")} is "direct"; leave it out, or '
                f"take {named('method', 'votes')}"
            )
        if way != "direct" and of_direct:
            reason = f'{named("method")} is "votes"' if way == "votes" else f"{named(of_votes[0])} is for votes"
            raise InvalidParameter(
                f"{named(of_direct[0])} is for the direct method, and {reason}; leave one of the two out"
            )
        if way == "auto":
            return ChosenMethod("votes", f"{' and '.join(of_votes)} {'are' if of_votes[1:] else 'is'} for votes")
        return named_method("direct" if way == "direct" else "votes")

    def _task(self, X: Any, y: Any, *, schema: Any = None, **how: Any) -> DirectTask | NumberTask:
        n_jobs = processes(self.n_jobs)  # a wrong one is refused whichever method it is
        if self._chosen().by == "direct":
            return self._direct_task(X, y, schema=schema, **how)
        if schema is not None:
            raise InvalidParameter(
                "schema= is for the direct method, and votes for a number need public rows; give "
                f"public=PublicPool(X_public), or take {named('method', 'direct')}"
            )
        arguments = {name: getattr(self, name) for name in arguments_of_one(self, NumberConfig, MethodConfig)}
        arguments["n_jobs"] = n_jobs
        task: NumberTask = self._prepared(prepare_numbers, NumberConfig, arguments, X, y, **how)
        return task

    def _check(self, X: Any, y: Any, **tables: Any) -> CheckResult:
        """Say what :meth:`fit` would do and cost: :func:`quorate.check`."""
        task = self._task(X, y, **tables, begin=False)
        if isinstance(task, NumberTask):
            return check_of_numbers(task, self.ledger, chosen=self._chosen())
        return check_of_rounds(task, self.ledger)
