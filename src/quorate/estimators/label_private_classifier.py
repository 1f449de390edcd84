"""Only the labels are private: every feature may serve as the public pool."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from quorate.accounting import Guarantee
from quorate.ambient import own_switches, unwarned
from quorate.arguments import truth
from quorate.data import (
    PublicPool,
    check_features,
    encode_labels,
    is_frame,
    match_columns,
    missing_columns,
    n_rows,
    needs_encoding,
    refuse_infinite,
    refuse_missing,
    refuse_private_rows,
    take,
)
from quorate.data.rows import image_shape
from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed
from quorate.estimators.by_rounds import arguments_of_one
from quorate.estimators.checked import check_of_teachers, refuse_public
from quorate.estimators.decided import Scored
from quorate.estimators.known_arguments import known_arguments, refuse_one_row, tables_by_name
from quorate.estimators.reporting import ShownEstimator, Standing, write_model, write_report
from quorate.estimators.resumable import by_fit, charged, refuse_lost_ledger, went_on
from quorate.findings import warn_of
from quorate.labelling import Released, Strategy
from quorate.ledger import Budget, Ledger
from quorate.release import GivenLedger, ledger_location, session
from quorate.release.charge import floor_budget, noise_and_key
from quorate.release.keys import with_key
from quorate.report import Facts, render_text
from quorate.report.words import Language
from quorate.run.facts import RunMetadata
from quorate.run.method import CheckResult
from quorate.run.method_config import MethodConfig
from quorate.run.progress import wanted
from quorate.run.scores import with_calibration
from quorate.stored_names import stored_as
from quorate.students import class_probabilities
from quorate.students.prediction_sets import Limits, OneLimit, calibrated, require_calibration
from quorate.types import FloatArray, IntArray, Secret
from quorate.voting.config import RunConfig
from quorate.voting.flow import RunResult
from quorate.voting.method import facts, guarantee
from quorate.voting.models import Role, built_in
from quorate.voting.prepare import prepare
from quorate.voting.recipe import Recipe
from quorate.voting.resumed import fit_key
from quorate.voting.task import Task

_GAPS = {
    "taker": "this LabelPrivateClassifier",
    "advice": "fill them; one that was fitted on a data frame with gaps fills them itself",
}
CLASSES_WERE_READ = "which labels occur was read off the data and is treated as public"


def _with_public_classes(y: Any) -> NDArray[Any]:
    """Return labels that name the classes, as scikit-learn checks them; of members of enumerations the values."""
    if isinstance(y, list | tuple) or getattr(getattr(y, "dtype", None), "kind", "") == "O":
        y = [label.value if isinstance(label, Enum) else label for label in y]
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    assert_all_finite(labels, input_name="y")
    with unwarned():  # its warning about many classes would be a function of private labels
        check_classification_targets(labels)
    return labels


def _or_logistic(model: Any, role: Role, rows: Any) -> Any:
    """The model that was given; or ours, which scales numbers first. Of a frame with texts the encoder does that."""
    if model is not None or hasattr(rows, "columns"):
        return model
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(with_mean=isinstance(rows, np.ndarray)), built_in("logistic", role))


@stored_as("quorate.estimators.label_private_classifier.LabelPrivateClassifier")
@known_arguments
@dataclass(eq=False, repr=False)
class LabelPrivateClassifier(Scored, ShownEstimator):
    """Learn from rows whose labels are private and whose features are not (BTT18 Section 4).

    Every row goes to one teacher, by its position, which is public; so a label changes one teacher at most. All rows
    without their labels are the public pool, on which the teachers vote and from which the student learns. No other
    public data are needed.

    It promises less than :class:`quorate.PrivateClassifier`: *labels only*. Whoever sees the student may learn
    anything about the features, who is in the table and how many they are. Use it where the table without its labels
    could be published as it is.

    Parameters
    ----------
    teacher : estimator, optional; by default as for :class:`quorate.PrivateClassifier`, columns scaled
        Any classifier with ``fit`` and ``predict``, or a Pipeline, unfitted: each teacher is a copy, fitted on its own
        shard. Or a function, or a :class:`quorate.ensemble.Teacher`.
    student : estimator or student, optional; by default as for :class:`quorate.PrivateClassifier`, columns scaled
        Any scikit-learn classifier or Pipeline, unfitted, or a way to learn of :mod:`quorate.students`.
    classes : sequence of str, int or bool, or "public"
        Every label there may be, in the order of ``predict_proba``. "public" states that *which* labels occur in the
        data is no secret; they are read then, and the guarantee says so.
    epsilon, delta : float
        What this fit may cost; ε > 0, 0 < δ < 1. There is no default.
    n_teachers : int or "auto"
        K.
    queries : int, "auto", "all" or a strategy
        ℓ, the rows whose votes are released.
    mechanism : "auto", the name of a mechanism, or a mechanism
        What crosses the boundary, as for :class:`quorate.PrivateClassifier`.
    ledger : path or Ledger, optional
        As for :class:`quorate.PrivateClassifier`; with a path, :meth:`resume` goes on with a fit whose process ended.
    unit : str, optional
        The word for whose labels are protected, where ``groups`` are given to ``fit``; "person" by default.
    prior_matching, batched, n_jobs, allow_hopeless, unsafe_noise_seed, verbose
        As for :class:`quorate.PrivateClassifier`.

    Attributes
    ----------
    student_ : estimator
        The fitted student.
    guarantee_ : Guarantee
        What was promised; its neighbours are "replace one label".
    released_ : Released
        The released answers, in the order of `queries_`.
    queries_ : (n_queries,) int array
        Rows that were asked.
    recipe_, n_teachers_, mechanism_ : Recipe, int, mechanism
        K, ℓ and the mechanism; and K and the mechanism of it.
    epsilon_, delta_ : float
        ε and δ of `guarantee_` as they are printed.
    classes_ : (n_classes,) array
        The declared classes.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Notes
    -----
    Privacy: what ``fit`` leaves behind is (ε, δ)-differentially private for one label (with ``groups``: for all
    labels of one person), features and number of rows being public. The estimator keeps no label, vote or teacher,
    and may be pickled.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from quorate import LabelPrivateClassifier
    >>> X, y = make_classification(750, n_features=6, random_state=0)
    >>> clf = LabelPrivateClassifier(classes=[0, 1], epsilon=1.0, delta=1e-5).fit(X[:250], y[:250])
    >>> clf.score(X[250:], y[250:]) > 0.7, clf.guarantee_.neighbours
    (True, 'replace one label')
    """

    _called = "LabelPrivateClassifier"
    _reads_missing = False

    teacher: Any = None
    student: Any = None
    _: KW_ONLY
    classes: Sequence[Any] | Literal["public"] | None = None
    epsilon: float | None = None
    delta: float | None = None
    n_teachers: int | Literal["auto"] = "auto"
    queries: int | Literal["auto", "all"] | Strategy = "auto"
    mechanism: Any = "auto"
    ledger: GivenLedger = None
    unit: str | None = None
    prior_matching: bool = False
    batched: bool = True
    n_jobs: int | None = None
    allow_hopeless: bool = False
    unsafe_noise_seed: int | None = None
    verbose: bool | int = False

    @tables_by_name
    def fit(self, X: Any, y: Any, *, groups: Any | None = None) -> LabelPrivateClassifier:
        """Train teachers on all rows, release votes on them, fit the student. Each call is charged.

        Parameters
        ----------
        X : (n_rows, n_features) array, sparse matrix, pandas or polars frame
            Features, which are public.
        y : (n_rows,)
            Private labels.
        groups : (n_rows,), optional
            Whose label it is, which is public too. The guarantee is then for all labels of one person.

        Raises
        ------
        InvalidParameter, DataRefused, ValueError
            If an argument or a table is wrong; nothing was charged.
        BudgetExhausted
            If the ledger has too little left; nothing was fitted or charged.

        Warns
        -----
        QuorateWarning
            For each caution of :func:`quorate.check`, with its code, before anything is charged.
        """
        verbose, metadata, nonce = wanted(self.verbose), self._metadata("fit", "X, y"), secrets.token_hex(16)
        task = self._task(X, y, groups=groups, nonce=nonce)
        warn_of(task.recipe.cautions)
        budget = Budget(task.facts.epsilon, task.facts.delta)
        with session(self.ledger, budget=budget, seeded=task.noise.seeded) as ledger:
            result = charged(task, ledger, nonce=nonce, of=by_fit(task), verbose=verbose)
            self._take(task, result, ledger, metadata)
        return self

    @tables_by_name
    def resume(self, X: Any, y: Any, *, groups: Any | None = None) -> LabelPrivateClassifier:
        """Go on with a fit whose process ended: the same teachers, the labels that are still owed, and no charge.

        Of a fit that was finished, the labels are in its ledger, and the same student learns from them.

        Parameters
        ----------
        X, y, groups
            What ``fit`` was given.

        Raises
        ------
        InvalidParameter, DataRefused, ValueError
            As ``fit`` does; or if `ledger` is none that outlives a process.
        LedgerMismatch
            If the ledger was charged for other data.
        PreconditionFailed
            If it holds no fit of these arguments and versions of libraries.
        """
        refuse_lost_ledger(self.ledger)
        verbose, metadata = wanted(self.verbose), self._metadata("resume", "X, y")
        task = self._task(X, y, groups=groups, begin=False, try_models=False)
        with session(self.ledger, budget=None) as ledger:
            result = went_on(task, ledger, of=by_fit(task), verbose=verbose)
            self._take(result.task, result, ledger, metadata)
        return self

    def _take(self, task: Task, result: RunResult, ledger: Ledger, metadata: RunMetadata) -> None:
        self.guarantee_: Guarantee = guarantee(task, ledger, result.reservation)
        self._standing = Standing.of(self.guarantee_, ledger)
        self._facts: Facts = facts(task, result, ledger, metadata)
        self._kinds = task.views.student.kinds
        self._columns = take(task.inputs.public, [0])  # one public row: which columns there are, and of which kind
        self.student_, self._calibrated = result.model, None
        self._records = task.inputs.records()
        self.released_: Released = result.released
        self.queries_: IntArray = result.queries
        self.recipe_: Recipe = task.recipe
        self.n_teachers_, self.mechanism_ = task.recipe.n_teachers, task.recipe.mechanism
        self.classes_ = np.asarray(list(task.inputs.classes))

    @own_switches()
    def predict(self, X: Any) -> NDArray[Any]:
        """Classify by the student. Returns ``(n_points,)`` classes."""
        check_is_fitted(self)
        return np.asarray(self.student_.predict(self._matched(X)))

    @own_switches()
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the student's ``(n_points, n_classes)`` probabilities, in the order of the declared classes."""
        check_is_fitted(self)
        return class_probabilities(self.student_, self._matched(X), self.classes_.tolist())

    @own_switches()
    def calibrate(self, X: Any, y: Any) -> Self:
        """Divide the student's scores by a temperature, and make :meth:`predict_set`, by labels that are public: free.

        `X`, `y`: rows with *public* labels, 100 or more and none of ``fit``. It goes on and refuses as
        :meth:`quorate.PrivateClassifier.calibrate` does.
        """
        check_is_fitted(self)
        if not hasattr(self, "_records"):
            raise PreconditionFailed("a copy of a fitted LabelPrivateClassifier is not calibrated; the original is")
        student = self.student_ if self._calibrated is None else self._calibrated[0]
        classes, rows = self.classes_.tolist(), self._as_fitted(X)
        codes = encode_labels(y, classes, name="calibration labels", n_rows=n_rows(rows))
        require_calibration(student, len(codes), name="calibrate(X, y)")
        refuse_private_rows(rows, self._records, name="calibration")
        self.student_, calibration = calibrated(student, self._kinds(rows), codes, classes)
        self._calibrated, self._facts = (student, calibration), with_calibration(self._facts, calibration)
        return self

    def _limits(self) -> Limits | OneLimit:
        check_is_fitted(self)
        return super()._limits() if self._calibrated is None else self._calibrated[1].limits

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what private rows are known by: a copy predicts, and the original calibrates."""
        return {name: value for name, value in super().__getstate__().items() if name != "_records"}

    @own_switches()
    def report(self, path: str | Path, *, language: Language = "en") -> Path:
        """Write the public report: one self-contained HTML file; `language`: "en", "de" or "fr"."""
        check_is_fitted(self)
        return write_report(lambda: self._facts, path, language)

    @own_switches()
    def summary(self) -> str:
        """Return the end of a fit as a table for the terminal, 80 columns wide."""
        check_is_fitted(self)
        return render_text(self._facts)

    @own_switches()
    def export(self, path: str | Path) -> Path:
        """Write the student with skops, for anybody who has scikit-learn.

        Raises
        ------
        SeededNoiseRefused
            If the noise was seeded: such a student carries no guarantee and does not leave.
        """
        check_is_fitted(self)
        return write_model(self.student_, path, seeded=self._facts.seeded)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.unsafe_noise_seed is None
        tags.classifier_tags.poor_score = True  # how good it is depends on ε
        return tags

    def _task(
        self, X: Any, y: Any, *, groups: Any | None, begin: bool = True, nonce: str = "", try_models: bool = True
    ) -> Task:
        """Check everything and fill in what was left open; nothing is written where `begin` is False."""
        epsilon, delta = floor_budget(self.epsilon, self.delta)
        rows = self._rows(X, reset=True)
        labels = _with_public_classes(y) if isinstance(self.classes, str) else y
        arguments = {name: getattr(self, name) for name in arguments_of_one(self, RunConfig, MethodConfig)}
        config = replace(
            RunConfig(**{**arguments, "classes": self._declared(labels)}, epsilon=epsilon, delta=delta),
            default_teacher=_or_logistic(None, "teacher", rows),
            default_student=_or_logistic(None, "student", rows),
            n_records=None if groups is not None else n_rows(rows),
            n_rows=n_rows(rows) if groups is not None else None,
            unit=self.unit,
            partition="balanced",
            allow_hopeless=truth("allow_hopeless", self.allow_hopeless),
            labels_only=True,
            try_models=try_models,
            classes_were_read=isinstance(self.classes, str),
            caveats=(CLASSES_WERE_READ,) if isinstance(self.classes, str) else (),
        )

        def prepared(beside: Secret[bytes]) -> Task:
            noise, key = noise_and_key(self.unsafe_noise_seed, fit_key(beside, nonce))
            tables: dict[str, Any] = {"public": PublicPool(rows), "groups": groups}
            return prepare(config, rows, labels, **tables, key=key, fingerprint_key=beside, noise=noise)

        return with_key(ledger_location(self.ledger), prepared, begin=begin)

    def _check(self, X: Any, y: Any, *, public: Any, groups: Any | None, **how: Any) -> CheckResult:
        """Say what :meth:`fit` would do and cost: :func:`quorate.check`."""
        refuse_public(self, public)
        unfitted = type(self)(**self.get_params(deep=False))  # looking at rows sets attributes
        task = unfitted._task(X, y, groups=groups, begin=False)
        return check_of_teachers(task, self.ledger, **how)

    def _declared(self, labels: NDArray[Any]) -> Any:
        if not isinstance(self.classes, str):
            return self.classes
        if self.classes != "public":
            raise InvalidParameter(
                parameter="classes",
                got=self.classes,
                expected='a list of classes, or "public" where which occur is no secret',
            )
        classes = np.unique(labels)
        if len(classes) < 2:
            raise InvalidParameter("classes: one class occurs in y, and a classifier needs two; declare classes=")
        return classes.tolist()

    def _rows(self, X: Any, *, reset: bool) -> Any:
        refuse_one_row(X, texts=False)
        if (shape := image_shape(X)) is not None:
            raise DataRefused(
                f"X: expected a 2-D table, got an array of {len(shape) + 1} dimensions; give one row of numbers for "
                "each label"
            )
        X = check_features(X, allow_missing=True)
        if not is_frame(X):
            refuse_missing(X, **_GAPS)
            return validate_data(self, X, reset=reset, accept_sparse="csr", dtype="numeric")
        refuse_infinite(X)
        validate_data(self, X, reset=reset, skip_check_array=True)
        if needs_encoding(X) or missing_columns(X).any():
            if not (reset or is_frame(self._columns)):
                refuse_missing(X, **_GAPS)
            return X
        X = np.column_stack([X[name].to_numpy() for name in X.columns])  # numbers mean the same in any container
        return check_array(X, dtype="numeric")

    def _as_fitted(self, X: Any) -> Any:
        _, rows = match_columns(self._columns, self._rows(X, reset=False), called=("the rows of fit", "X"))
        return rows

    def _matched(self, X: Any) -> Any:
        return self._kinds(self._as_fitted(X))
