"""The classifier: private labelled rows in, a publishable student out; a thin shell over the rooms below."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError

from quorate.accounting import Guarantee
from quorate.arguments import truth
from quorate.data import PrivateRecords, check_features, encode_labels, match_columns
from quorate.ensemble import Partition, Preprocessing
from quorate.errors import DataRefused, SecretRefused, SeededNoiseRefused
from quorate.estimators.checked import check_of_teachers
from quorate.estimators.fitted_run import FittedRun
from quorate.labelling import Released, Strategy
from quorate.ledger import Budget
from quorate.outcomes import warn_of
from quorate.pipeline.check_result import CheckResult
from quorate.pipeline.config import RunConfig
from quorate.pipeline.facts import RunMetadata, guarantee, score
from quorate.pipeline.flow import run_pipeline
from quorate.pipeline.inputs import HOLDS_PRIVATE
from quorate.pipeline.planned_run import PlannedRun, planned_run
from quorate.pipeline.prepare import prepare
from quorate.pipeline.task import Task
from quorate.release import Account, GivenLedger, RollbackGuard, ledger_location, session
from quorate.release.keys import fingerprint_key
from quorate.release.source import noise_and_key
from quorate.release.target import floor_budget
from quorate.renamed import RenamedAttribute, renamed_arguments
from quorate.report import Facts, Utility, render_html, render_text
from quorate.students import Declined, class_probabilities
from quorate.types import FloatArray, Secret

# Arguments that RunConfig has under the same names.
ASKED = (
    "classes", "epsilon", "delta", "teacher", "student", "n_teachers", "queries", "mechanism", "online_answers",
    "n_records", "n_rows", "unit", "partition", "declined", "prior_matching", "batched", "preprocessing", "n_jobs",
)  # fmt: skip


class PrivateClassifier(ClassifierMixin, BaseEstimator):
    """Learn from private labelled rows through votes, and hold a student that may be published.

    ``fit`` trains an ensemble of teachers on disjoint parts of the private rows, lets them vote on public points,
    releases the votes through a Gaussian mechanism, and fits a student on what was released (LZCW21 Alg. 3; PATE18).

    Parameters
    ----------
    teacher : estimator or Teacher, default LogisticRegression(C=100)
        Any scikit-learn classifier or Pipeline, unfitted: each teacher is a clone, fitted on its own shard. Or a
        :class:`quorate.ensemble.Teacher`, which trains on a shard and votes in its own way. The default sees numbers
        in units of the public pool, where columns have units of their own, and more than 256 columns in the 64
        leading directions of the pool.
    student : estimator or student, optional
        By default the model of the noisy votes itself, linear or curved, and of released classes a logistic
        regression. Any scikit-learn classifier or Pipeline, unfitted; or a way to learn of :mod:`quorate.students`,
        such as ``VoteShareStudent(shares="auto")``. It sees public points and released answers alone.
    classes : sequence of str, int or bool
        Every label there may be, in the order of ``predict_proba``. Required: the labels that happen to be in the
        data are private.
    epsilon, delta : float
        What this fit may cost; ε > 0, 0 < δ < 1. There is no default.
    n_teachers : int or "auto"
        K.
    queries : int, "auto", "all" or a strategy
        ℓ, the public points whose labels are released. A strategy of :mod:`quorate.labelling.active`, such as
        ``Margin(300)``, chooses them from the answers released so far, up to its cap; price and noise are the cap's.
    mechanism : "auto", the name of a mechanism, or a mechanism
        What crosses the boundary: any of :mod:`quorate.mechanisms` that answers from votes, or one of your own, whose
        privacy the guarantee calls your statement. A name, or a class, leaves its noise to the budget, which buys the
        least that the schedule allows.
    online_answers : int, default 0
        Answers kept back for :meth:`ask`, at the same noise and inside the same cap.
    ledger : path or Ledger, optional
        A path: a new ledger gets ``Budget(epsilon, delta)``, an existing one must have that much left. None keeps it
        in memory, and the guarantee says that nothing durable was recorded.
    unit : str, optional
        The word for whose data is protected; "person" where ``groups`` are given to ``fit``, else "record".
    n_records : int, optional
        Number of private units, where it may be published. Where it is needed and not declared it is read, and the
        guarantee says that it is treated as public.
    n_rows : int, optional
        Number of private rows, where ``groups`` are given to ``fit`` and it may be published: the number of teachers
        follows from rows and units. Where it is not declared, it is read if `n_records` is read too, and the guarantee
        says so; beside a declared `n_records` it is not read, and each unit counts as one row.
    partition : {"hash", "balanced"}
        A keyed hash of the unit's identity (add, remove or replace), or equal sizes (replace only).
    declined : {"drop", "random"}
        What becomes of a query that was declined. One that was never asked has no label either way.
    prior_matching : bool, default False
        For two classes: each teacher sets its own threshold, so that it votes for class 1 as often on the public pool
        as its shard holds it. It keeps strongly regularised teachers of a rare class from voting the larger one
        everywhere; weakly regularised ones it does not help.
    batched : bool, default True
        Whether teachers that are plain logistic regression or ridge classification, bare or at the end of a Pipeline,
        are solved to their optimum by quorate, each from its own shard alone. False leaves every fit to the estimator,
        whose solver stops near the optimum and takes longer. It says nothing to other teachers.
    preprocessing : {"inside", "public"}
        "public" says that steps which are fitted already were fitted on public data.
    n_jobs : int, optional
        Processes; as many as there are cores by default.
    allow_hopeless : bool, default False
        Whether to pay for a run that can answer nothing: where even a unanimous vote is unlikely to pass the
        mechanism's test, or noise drowns the mean of all answers. Such a run is refused otherwise.
    unsafe_noise_seed : int, optional
        For tests and demos. The run is reproducible, therefore not private, and everything it writes says so.

    Attributes
    ----------
    student_ : estimator
        The fitted student, behind the public encoder where rows are encoded.
    guarantee_ : Guarantee
        What was promised, and its caveats.
    released_ : Released
        The released answers, in the order of `queries_`.
    queries_ : (n_queries,) int array
        Rows of the public pool that were asked; by a strategy, in the order in which it asked.
    ex_post_epsilon_ : float or None
        What the answers drawn so far cost, read after the fact where a strategy stopped early; `guarantee_` holds.
    recipe_ : Recipe
        K, ℓ and the mechanism, with a reason for each choice that was left open.
    plan_ : PlannedRun
        What was expected beside what came.
    classes_ : (n_classes,) array
        The declared classes.
    n_features_in_ : int
        Width of the public pool.

    Notes
    -----
    Privacy: what ``fit`` leaves in public attributes, and all that :meth:`ask` ever answers, is (ε, δ)-differentially
    private for one unit of the private rows. Refusals of whole tables, timing and the operator's own access are
    outside the guarantee.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from quorate import PrivateClassifier, PublicPool
    >>> X, y = make_classification(6_000, n_features=8, random_state=0)
    >>> clf = PrivateClassifier(classes=[0, 1], epsilon=2.0, delta=1e-5, n_records=5_000)
    >>> clf.fit(X[:5_000], y[:5_000], public=PublicPool(X[5_000:5_500])).score(X[5_500:], y[5_500:]) > 0.7
    True
    """

    @renamed_arguments(jobs="n_jobs")
    def __init__(
        self,
        teacher: Any = None,
        student: Any = None,
        *,
        classes: Sequence[Any],
        epsilon: float,
        delta: float,
        n_teachers: int | Literal["auto"] = "auto",
        queries: int | Literal["auto", "all"] | Strategy = "auto",
        mechanism: Any = "auto",
        online_answers: int = 0,
        ledger: GivenLedger = None,
        unit: str | None = None,
        n_records: int | None = None,
        n_rows: int | None = None,
        partition: Partition = "hash",
        declined: Declined = "drop",
        prior_matching: bool = False,
        batched: bool = True,
        preprocessing: Preprocessing = "inside",
        n_jobs: int | None = None,
        allow_hopeless: bool = False,
        unsafe_noise_seed: int | None = None,
    ) -> None:
        self.teacher = teacher
        self.student = student
        self.classes = classes
        self.epsilon = epsilon
        self.delta = delta
        self.n_teachers = n_teachers
        self.queries = queries
        self.mechanism = mechanism
        self.online_answers = online_answers
        self.ledger = ledger
        self.unit = unit
        self.n_records = n_records
        self.n_rows = n_rows
        self.partition = partition
        self.declined = declined
        self.prior_matching = prior_matching
        self.batched = batched
        self.preprocessing = preprocessing
        self.n_jobs = n_jobs
        self.allow_hopeless = allow_hopeless
        self.unsafe_noise_seed = unsafe_noise_seed

    jobs = RenamedAttribute("n_jobs")

    def fit(self, X: Any, y: Any, *, public: Any = None, groups: Any | None = None) -> PrivateClassifier:
        """Train teachers, release answers, fit the student. Each call is a release of its own and is charged.

        Parameters
        ----------
        X : (n_records, n_features) array, sparse matrix, pandas or polars frame
            Private rows.
        y : (n_records,)
            Private labels, all in `classes`.
        public : PublicPool
            Public unlabelled rows with the same columns.
        groups : (n_records,), optional
            Whose row it is. The guarantee is then for everything of one person.

        Raises
        ------
        InvalidParameter, DataRefused
            If an argument or a table is wrong; nothing was charged.
        BudgetExhausted
            If the ledger has too little left; nothing was fitted or charged.

        Warns
        -----
        QuorateWarning
            For each caution of :func:`quorate.check`, with its code, before anything is charged.
        """
        started, how = datetime.now(UTC).isoformat(timespec="seconds"), "PrivateClassifier(...).fit(X, y, public=...)"
        task = self._task(X, y, public=public, groups=groups)
        warn_of(task.recipe.cautions)
        budget, guard = Budget(*floor_budget(self.epsilon, self.delta)), RollbackGuard()
        with session(self.ledger, budget=budget, guard=guard, seeded=task.noise.seeded) as ledger:
            result = run_pipeline(task, ledger)
            promised = guarantee(task, ledger, result.reservation)
            private, key = task.inputs.private.reveal(), Secret(secrets.token_bytes(32))
            self._kept = FittedRun(
                task=task.without_private_rows(),
                result=result,
                account=Account(charge=result.charge, ledger=ledger, budget=budget, guard=guard),
                memo=result.memo(task),
                records=PrivateRecords(private.X, private.codes, key, digests=private.digests),
                metadata=RunMetadata(title="PrivateClassifier.fit", command=how, started=started),
            )
        self.guarantee_: Guarantee = promised
        self.student_ = result.student
        self.released_: Released = result.released
        self.queries_ = result.queries
        self.recipe_ = task.recipe
        self.classes_ = np.asarray(list(task.inputs.classes))
        self.n_features_in_ = int(task.inputs.public.shape[1])
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Classify by the student: free for ever. Returns ``(n_points,)`` classes."""
        return np.asarray(self._student().predict(self._public_rows(X)))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the student's ``(n_points, n_classes)`` probabilities, in the order of the declared classes."""
        return class_probabilities(self._student(), self._public_rows(X), self.classes_.tolist())

    def ask(self, X: Any) -> list[Any]:
        """Ask the ensemble: charged to the answers kept back at ``fit``, then to those that a strategy left unasked.

        Parameters
        ----------
        X : (n_queries, n_features)
            Points to classify, with the columns of the public pool.

        Returns
        -------
        list
            A class for each point, or None for declined. A point that was answered before gets the same answer and
            costs nothing.

        Raises
        ------
        BudgetExhausted
            If fewer answers are left than there are new points; nothing is drawn then.
        """
        self._student()
        return self._kept.ask(self._public_rows(X), self.ledger)

    @property
    def ex_post_epsilon_(self) -> float | None:
        """What the answers drawn so far cost, read after the fact and never a guarantee; None for no less than it."""
        self._student()
        return self._kept.ex_post_epsilon(self.ledger)

    @property
    def plan_(self) -> PlannedRun:
        """What was expected, from public facts, beside what came."""
        return planned_run(self._kept.task, self.released_, self._student())

    def facts(self, *, evaluation: tuple[Any, Any] | None = None) -> Facts:
        """Gather what a report says.

        Parameters
        ----------
        evaluation : (X, y), optional
            *Public* rows with labels, to score the student on.

        Raises
        ------
        DataRefused
            If more of the private records are among them than chance explains.
        """
        self._student()
        kept = self._kept
        utility = Utility()
        if evaluation is not None:
            X, y = evaluation
            codes = encode_labels(y, kept.task.inputs.classes, name="evaluation labels")
            _, rows = match_columns(  # in the order of the private columns, so that rows are known again
                kept.task.inputs.public, self._public_rows(X), called=("the public pool", "evaluation")
            )
            if kept.records.are_in(rows, codes):
                raise DataRefused(f"evaluation {HOLDS_PRIVATE}")
            utility = Utility(student=score(self, X, self.classes_[codes], self.classes_.tolist()))
        return kept.facts(self.ledger, utility)

    def report(self, path: str | Path, *, evaluation: tuple[Any, Any] | None = None) -> Path:
        """Write the public report: one self-contained HTML file; `evaluation` is that of :meth:`facts`."""
        page = Path(path)
        page.write_text(render_html(self.facts(evaluation=evaluation)), encoding="utf-8")
        return page

    def summary(self, *, evaluation: tuple[Any, Any] | None = None) -> str:
        """Return the end of a run as a table for the terminal, 80 columns wide."""
        return render_text(self.facts(evaluation=evaluation))

    def export(self, path: str | Path) -> Path:
        """Write the student with skops, for anybody who has scikit-learn.

        Raises
        ------
        SeededNoiseRefused
            If the noise was seeded: such a student carries no guarantee and does not leave.
        """
        import skops.io

        student = self._student()
        if self._kept.task.noise.seeded:
            raise SeededNoiseRefused(
                "seeded noise: this run is reproducible, therefore not private. Every output is marked and export is "
                "refused. Remove unsafe_noise_seed"
            )
        skops.io.dump(student, Path(path))
        return Path(path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        if hasattr(self, "_kept"):
            raise SecretRefused(
                "a fitted PrivateClassifier holds the run's key and is neither pickled nor copied; export() writes the "
                "student, which may travel"
            )
        return dict(super().__getstate__())

    def _task(self, X: Any, y: Any, *, public: Any, groups: Any | None, begin: bool = True) -> Task:
        """Check everything and fill in what was left open; nothing is written where `begin` is False."""
        noise, key = noise_and_key(self.unsafe_noise_seed)
        asked = {name: getattr(self, name) for name in ASKED}
        asked["allow_hopeless"] = truth("allow_hopeless", self.allow_hopeless)
        return prepare(
            RunConfig(**asked),
            X,
            y,
            public=public,
            groups=groups,
            key=key,
            fingerprint_key=fingerprint_key(ledger_location(self.ledger), begin=begin),
            noise=noise,
        )

    def _check(self, X: Any, y: Any, *, public: Any, groups: Any | None, evaluation: Any = None) -> CheckResult:
        """Say what :meth:`fit` would do and cost: :func:`quorate.check`."""
        task = self._task(X, y, public=public, groups=groups, begin=False)
        return check_of_teachers(task, self.ledger, evaluation=evaluation)

    def _student(self) -> Any:
        if not hasattr(self, "student_"):
            raise NotFittedError("this PrivateClassifier is not fitted; call fit(X, y, public=PublicPool(...)) first")
        return self.student_

    def _public_rows(self, X: Any) -> Any:
        rows, pool = check_features(X, "X", allow_missing=True), self._kept.task.inputs.public
        if rows.shape[1] != pool.shape[1]:
            raise DataRefused(
                f"X has {rows.shape[1]} features, but {type(self).__name__} is expecting {pool.shape[1]} features as "
                "input; give the columns of the public pool"
            )
        rows, _ = match_columns(rows, pool)
        self._kept.task.views.student.check(rows, "X")
        return rows
