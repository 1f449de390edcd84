"""Logistic regression on the private rows themselves, by noisy gradient rounds in public coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.ambient import own_switches
from quorate.arguments import truth
from quorate.data import check_classes
from quorate.data.unit_ids import only_whole_ids
from quorate.direct.flow import DirectResult
from quorate.direct.task import DirectTask
from quorate.estimators.by_rounds import FittedRounds, LearnsByRounds
from quorate.estimators.checked import check_of_rounds
from quorate.estimators.decided import Decided
from quorate.estimators.known_arguments import known_arguments, rows_and_labels
from quorate.report import Facts, Utility
from quorate.run.look import NO_LOOK, look_by_cells
from quorate.run.method import CheckResult
from quorate.stored_names import stored_as
from quorate.students.decision_threshold import DecisionThreshold, require_pool
from quorate.types import FloatArray, IntArray


@stored_as("quorate.estimators.private_logistic_regression.PrivateLogisticRegression")
@known_arguments
@dataclass(eq=False, repr=False, kw_only=True)
class PrivateLogisticRegression(Decided, LearnsByRounds):
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
    feature_map : {"auto", "linear", "rbf", "both", "kernels", "chi2", "trees", "patches"} or fitted transformer
        What the classifier is linear in: rows scaled to length one, features of a Gaussian kernel told by the pool,
        or both side by side; "kernels" is rows scaled to length one, and what a Gaussian kernel and a product of
        kernels of single columns add to them; for counts the additive chi-squared kernel, for tables with steps the
        leaves of random trees, for square grey images their patches, all learned from the pool. "auto" is "kernels"
        for numbers and for categories of at most 32 values, both side by side where numbers are one quantity, as pixels
        are, and linear for indicators and words. A transformer is fitted by you on public
        rows, and what it makes of a row is scaled to length one; it sees one private row at a time, and a row that it
        fails on is left out. It must be of parts that skops loads without being told to trust them, since the published
        model holds it.
    text : sequence of str
        Columns of running text in a frame; their words are weighed by how rare they are in the pool (TF-IDF).
    marginals : float, optional
        Where ``fit`` gets a schema: the share of μ² for noisy marginals, in [0, 1). By default a tenth, and up to .3
        where units are few for many columns; a tenth of columns that are mostly lists, of fewer than 2,000 units. Where
        they are mostly numbers and neither of two classes is declared to be rare, noisy sums over pairs of columns get
        another .05 to .1. 0: no pool is drawn, and rows are scaled to length one as they are.
    rounds, clip : int, float, optional
        T ≥ 1 and B > 0 in place of what follows from public facts: the number of rounds, and the length that the
        gradient of one unit is cut off at.
    n_records : int, optional
        Number of private units, where it may be published: persons where ``groups`` are given, else records. Declared
        wrongly it costs accuracy and never privacy. Where it is not declared it is read, treated as public, and the
        guarantee is for replacing one unit alone.
    unit, whole_ids, calibration_share, coverage, decision_threshold
        As for :class:`~quorate.PrivateClassifier`.
    neighbours : {"auto", "add-or-remove", "replace"}
        For which change of one unit ε is: the noise for "replace" is about twice that for "add-or-remove", at the same
        ε. "auto" is add or remove where `n_records` is declared and replace where it is read. Where the ledger has a
        relation already, a fit is charged at that one. With a declared number the guarantee states ε for both.
    private_temperature : bool, default False
        Whether one more round, at the price of the others, counts how often the model is right, by how sure it is. Its
        scores are divided by the temperature that follows: for where no public rows have labels to
        :meth:`calibrate` with.
    scheduler : DaskScheduler, optional
        Whose workers add up the rounds, in place of this machine: the same sums, bit for bit.
    class_shares : mapping, optional
        Shares of classes, such as ``{"yes": 0.04}``: a public statement, never read off the private labels. The rarer
        one of two classes is, the fewer dimensions the fit learns in; with another share than that which a ledger has
        a fit for, a fit is another one, and charged.
    ledger : path or Ledger, optional
        As for :class:`~quorate.PrivateClassifier`. The same fit on the same data in the same ledger goes on where it
        was broken off, and costs nothing when it is finished; :meth:`resume` never charges. Where machine, libraries
        or threads changed the last bits of the coordinates meanwhile, it is refused, and nothing is charged.
    unsafe_noise_seed : int, optional
        For tests and demos. The fit is reproducible, therefore not private, and everything it writes says so.
    verbose : bool or int, default False
        Whether ``fit`` shows how far it is, as for :class:`~quorate.PrivateClassifier`.

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
    column_kinds_ : ColumnKinds
        What each column is read as, by a rule that looks at the public pool alone.
    epsilon_, delta_, ledger_ : float, float, Ledger or path
        ε and δ of `guarantee_` as they are printed; where the fit was charged, which is `ledger` or one in memory.
    n_rounds_ : int
        Rounds that the coefficients rest on.
    classes_ : (n_classes,) array
        The declared classes.
    pool_ : frame, (n_rows, n_columns)
        Where ``fit`` got a schema: the rows that were drawn from noisy counts. They may be published.
    n_features_in_, feature_names_in_ : int, (n_features,) array of str
        Width of the public pool, and the names of its columns where they are texts.

    Notes
    -----
    Privacy: what ``fit`` leaves in public attributes is (ε, δ)-differentially private for one unit. What a unit adds
    to a round is, bit for bit, a function of that unit's rows and public facts, of Euclidean length at most 2^k grid
    steps: adding or removing a unit moves the sum by at most that, replacing one by twice that. Private rows decide on
    no refusal: rows that cannot be used are left out.

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
    >>> clf.fit(X[:5_000], y[:5_000], public=PublicPool(X[5_000:5_200])).score(X[5_200:], y[5_200:]) > 0.8
    True
    """

    _called = "PrivateLogisticRegression"  # in reports and messages

    classes: Sequence[Any] | None = None
    private_temperature: bool = False
    class_shares: Mapping[Any, float] | None = None
    decision_threshold: DecisionThreshold | Mapping[str, float] = "accuracy"

    def _take(self, kept: FittedRounds) -> None:
        super()._take(kept)
        assert isinstance(kept.task, DirectTask)  # noqa: S101 - whose labels are classes
        assert isinstance(kept.result, DirectResult)  # noqa: S101 - likewise
        self._calibrated, self._paid_temperature = None, kept.result.temperature
        held = kept.task.held
        self._held_sets = None if held is None else held.plan.published(kept.result.limit)
        self.classes_ = np.asarray(list(kept.task.classes))
        self._deciding()  # while the pool is at hand: a copy has none

    @own_switches()
    def predict(self, X: Any) -> NDArray[Any]:
        """Return ``(n_points,)`` classes, free for ever."""
        self._fitted()
        return np.asarray(self._deciding().predict(self._model_rows(X)))

    @own_switches()
    def predict_proba(self, X: Any) -> FloatArray:
        """Return ``(n_points, n_classes)`` probabilities, in the order of the declared classes."""
        return np.asarray(self._fitted().predict_proba(self._model_rows(X)))

    @own_switches()
    def decision_function(self, X: Any) -> FloatArray:
        """Return scores: ``(n_points,)`` for two classes, else ``(n_points, n_classes)``."""
        return np.asarray(self._fitted().decision_function(self._model_rows(X)))

    @own_switches()
    def facts(self, *, evaluation: tuple[Any, Any] | None = None, scoring: str | None = None) -> Facts:
        """Gather what a report says.

        Parameters
        ----------
        evaluation : (X, y), optional
            *Public* rows with labels, to score the model on. Where more of the private rows are among them than chance
            explains, the report has no score, and a line on the terminal says why.
        scoring : str, optional
            What the model is judged by, as for :meth:`quorate.PrivateClassifier.facts`.
        """
        kept, utility = self._original("has no ledger; the original reports"), Utility()
        if evaluation is not None:
            X, y = rows_and_labels(evaluation)
            if (codes := self._public_codes(X, y, "evaluation")) is not None:
                utility = Utility(student=self._scored(X, codes, scoring))
        return self._with_decision(kept.facts(self.ledger, utility))

    def _published_model(self) -> Any:
        return self._deciding()

    def _predicted(self) -> dict[str, Any]:
        shares = None if self.class_shares is None else self._class_shares(check_classes(self.classes))
        paid = truth("private_temperature", self.private_temperature)
        return {"classes": self.classes, "class_shares": shares, "private_temperature": paid}

    def _task(self, X: Any, y: Any, **how: Any) -> DirectTask:
        task = self._direct_task(X, y, **how)
        require_pool(self._rule(task.classes), task.has_public_pool, self._class_shares(task.classes))
        return task

    def _check(
        self, X: Any, y: Any, *, public: Any, groups: Any | None, schema: Any = None, look: bool = False, **how: Any
    ) -> CheckResult:
        """Say what :meth:`fit` would do and cost: :func:`quorate.check`."""
        task = self._task(X, y, public=public, groups=groups, schema=schema, begin=False)
        ids = only_whole_ids(groups) if self.whole_ids else groups
        how |= {"public": public, "feature_map": self.feature_map, "shares": self._class_shares(task.classes)}
        return check_of_rounds(task, self.ledger, look=look_by_cells(task, y, ids) if look else NO_LOOK, **how)

    _model_rows = LearnsByRounds._model_rows

    def _publish(self, model: Any) -> None:
        self.model_, self.coef_, self.intercept_ = model, model[-1].coef_, model[-1].intercept_
        self._deciding()  # while the pool is at hand: a copy has none

    def _public_codes(self, X: Any, y: Any, name: str) -> IntArray | None:
        kept = self._original(f"takes no {name} rows; the original takes them")
        return kept.labelled(self._reader.as_the_pool(X, as_given=True), y, name)

    def _published(self) -> tuple[Any, Any]:
        task = self._kept.task if hasattr(self, "_kept") else None
        pool = task.schema if isinstance(task, DirectTask) and task.has_public_pool else None
        return self._fitted(), None if pool is None else pool.kinds(pool.pool)
