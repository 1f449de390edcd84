"""Predictions that are private one by one, for any labels: no concept is released (LWY25, Theorem 4.2)."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from quorate.accounting import ApproxDP, Guarantee
from quorate.accounting.attacker import budget_cautions
from quorate.accounting.neighbouring import N_IS_PUBLIC
from quorate.ambient import own_switches
from quorate.arguments import count, one_of, real
from quorate.errors import DataRefused, InvalidParameter, SecretRefused, act
from quorate.findings import warn_of
from quorate.labelling import Memo
from quorate.labelling.questions import distinct
from quorate.learners.agnostic.price import (
    LARGEST_TARGET,
    MOST_CANDIDATES,
    check_limit,
    choice_at,
    least_rows,
    refuse_plan,
    relabelled_sample,
    relabels,
    rows_for,
    short_of,
)
from quorate.learners.agnostic.voting import PURPOSE, Hypotheses, PredictionPlan, plan_predictions
from quorate.learners.base.exponential import MECHANISMS, Selection, check_theorem, growth_of
from quorate.learners.concepts.protocol import Concept, ConceptClass
from quorate.learners.fit_charge import LABELLED_IS_PUBLIC, REPLACE_ONE_RECORD, RowsNeeded
from quorate.learners.sample import UNLABELLED, Sample, read_sample, refuse_groups, two_classes
from quorate.ledger import Budget, GuaranteeScope
from quorate.noise import NoiseSource
from quorate.release import Account, Charge, RollbackGuard, guarantee_of, ledger_location, session
from quorate.release.charge import STAGE, floor_budget, floor_epsilon, noise_and_key
from quorate.release.keys import fingerprint_key
from quorate.release.session import NoFolds
from quorate.stored_names import stored_as
from quorate.types import Secret

_THEOREM = "LWY25 Theorem 4.2, every constant stated,"


@stored_as("quorate.learners.agnostic.prediction.AgnosticPrediction")
@dataclass(kw_only=True, eq=False, repr=False)
class AgnosticPrediction(NoFolds, BaseEstimator):
    r"""Answer single queries about as well as the best concept of the class, each answer private; no model leaves.

    Some classes cannot be learned privately at all, or only from many rows; single predictions can be had from
    :math:`VC/(\alpha\varepsilon) + VC/\alpha^2` rows. ``fit`` relabels a secret sample, as
    :class:`~quorate.learners.AgnosticLearner` does, cuts it into parts and learns a consistent concept on each. They
    stay secret. ``ask`` lets them vote, and releases one label.

    `concepts`: the class.
    `epsilon`: ε of all predictions together.
    `delta`: δ of all predictions together. Where it is above 0, m predictions cost about √m times one; else m times.
    `n_queries`: how many predictions there may be, of distinct points.
    `cutoff`: T ≥ 1, with a `delta` above 0: the whole budget then pays for T points that are declined, and a point on
    which the concepts agree is answered at no price of its own, however many there are.
    `alpha`, `beta`: the theorem's: error more than α above the best concept's with probability at most β over the fit.
    `selection`: "permute-and-flip" or "exponential": what chooses the labelling.
    `limit`: labellings to choose from at most.
    `classes`, `rows`, `ledger`, `unsafe_noise_seed`: as for :class:`~quorate.learners.PrivateLearner`; the price is
    charged by each ``fit`` as a whole.
    `guarantee_`: for one replaced record; the number of rows is public. `plan_`: sizes, and how the budget was split;
    public. `answers_left_`: how many more distinct points may be asked; none once T were declined.

    Privacy: given the relabelled rows, one replaced row changes one hypothesis and so one vote: each answer is
    :math:`\varepsilon_p`-DP, and all of them, whatever is asked and however it was chosen after earlier answers,
    :math:`(\varepsilon_A, \delta_A)`-DP by the exact composition of pure releases; at δ = 0,
    :math:`\varepsilon_A = n_{queries}\, \varepsilon_p` (:mod:`~quorate.learners.agnostic.voting` has the proof). With
    the relabelling they cost what :class:`~quorate.learners.agnostic.price.AgnosticPrice` says of that. With a `cutoff`
    they are one :class:`~quorate.mechanisms.StableSparseVector` at :math:`(\varepsilon_A, \delta_A)`: the distance of
    the votes from a tie moves by 1 at most. Each ``fit``
    draws a sample of its own and is charged again, also in the same ledger.

    Error: :math:`\varphi(a_0 + a_1 + a_2)` (:mod:`~quorate.learners.agnostic.bound`) and
    :func:`~quorate.learners.agnostic.voting.voting_error`, or ``stable_error``, together.

    LWY25 (Li, Wang, Ye), Lemmas 3.1 and 4.1 and Theorem 4.2; Dwork and Feldman (2018), arXiv:1803.10266; Kairouz, Oh
    and Viswanath (2015), Theorem 3.3; Nandi and Bassily (2020), arXiv:1907.13553, for a `cutoff`.

    Examples
    --------
    >>> from quorate.learners.concepts import Thresholds
    >>> random = np.random.default_rng(0)
    >>> X = random.integers(0, 2**16, (40_000, 1))
    >>> y = (X[:, 0] < 30_000) ^ (random.random(40_000) < 0.1)
    >>> private = AgnosticPrediction(concepts=Thresholds(bits=16), epsilon=1.0, n_queries=2, unsafe_noise_seed=0)
    >>> private.fit(X, y).ask([[1_000], [60_000], [1_000]]).tolist()
    [1, 0, 1]
    >>> private.answers_left_, private.guarantee_.epsilon
    (0, 1.0)
    >>> stable = AgnosticPrediction(
    ...     concepts=Thresholds(bits=16), epsilon=1.0, delta=1e-6, n_queries=1_000, cutoff=2, unsafe_noise_seed=0
    ... ).fit(X, y)
    >>> stable.ask([[1_000], [60_000], [2_000]]).tolist(), stable.answers_left_
    ([1, 0, 1], 997)
    """

    concepts: ConceptClass
    epsilon: float
    delta: float = 0.0
    n_queries: int = 1
    cutoff: int | None = None
    alpha: float = 0.1
    beta: float = 0.1
    selection: Selection = "permute-and-flip"
    limit: int = MOST_CANDIDATES
    classes: Sequence[Any] | None = None
    rows: str = "any"
    ledger: Any = None
    unsafe_noise_seed: int | None = None

    def fit(self, X: Any, y: Any, *, groups: Any | None = None) -> Self:
        """Charge all predictions, and prepare to answer; nothing is released.

        Arguments, refusals and warnings are those of :meth:`PrivateLearner.fit
        <quorate.learners.private_learner.PrivateLearner.fit>`; rows without a label are left out.
        """
        with own_switches(), act():
            return self._prepare(X, y, groups=groups)

    def _prepare(self, X: Any, y: Any, *, groups: Any | None) -> Self:
        """Do what :meth:`fit` does."""
        target, n_queries = self._target(), self.n_queries
        refuse_groups("AgnosticPrediction", groups)
        noise, _ = noise_and_key(self.unsafe_noise_seed)
        sample = self._checked(X, y)
        plan = self._plan(sample.n_labelled, *target)
        event = plan.price.event
        delta = event.delta if isinstance(event, ApproxDP) else 0.0
        missed = tuple(short_of(self.alpha, plan.excess, _THEOREM))
        if self.rows == "theorem" and missed:
            raise DataRefused(f'rows="theorem": {missed[0]}. Change it, or take rows="any"')

        n_rows = sample.n_labelled + sample.n_unlabelled
        warn_of(budget_cautions(n_rows, *target, REPLACE_ONE_RECORD.unit))
        charge = Charge(
            event=event,
            delta=delta,
            purposes={PURPOSE: n_queries, **({} if self.cutoff is None else {STAGE: self.cutoff})},
            # A sample of its own for each fit, and so a charge of its own.
            key=f"agnostic prediction {secrets.token_hex(16)}",
            scope=GuaranteeScope.about(REPLACE_ONE_RECORD, caveats=(N_IS_PUBLIC, LABELLED_IS_PUBLIC)),
            seeded=noise.seeded,
        )
        budget = Budget(*target)
        fingerprints_key = fingerprint_key(ledger_location(self.ledger))
        guard = RollbackGuard()
        with session(self.ledger, budget=budget, guard=guard, seeded=noise.seeded) as ledger:
            ledger.bind(sample.fingerprint(fingerprints_key))
            charge.reserve(ledger)
            labels = sample.labels.reveal()
            known = labels != UNLABELLED
            hypotheses = self._hypotheses(sample.points.reveal()[known], labels[known].astype(np.uint8), plan, noise)
            promised = guarantee_of(
                ledger,
                event,
                delta=delta,
                mechanism=f"at most {n_queries:,} predictions {plan.released}, by "
                f"{plan.n_hypotheses:,} concepts learned on parts of {plan.price.n_sampled:,} of {sample.n_labelled:,} "
                f"labelled rows, sampled in secret and relabelled by a choice at ε = {plan.price.choice_epsilon:.4g}",
                seeded=noise.seeded,
                caveats=missed,
            )
            self._kept = Hypotheses(
                concepts=hypotheses,
                mechanism=plan.mechanism,
                n_queries=n_queries,
                noise=noise,
                account=Account(charge=charge, ledger=ledger, budget=budget, guard=guard),
                memo=Memo(),
            )
        self.plan_ = plan
        self.guarantee_: Guarantee = promised
        self.n_features_in_ = self.concepts.n_features
        self.classes_ = np.array([0, 1] if self.classes is None else list(two_classes(self.classes)))
        return self

    def ask(self, X: Any) -> NDArray[Any]:
        """Predict for some points, one answer each.

        `X` ``(n_points, n_features)``: public points of the class's domain.
        Returns: a point that was asked before gets the same answer and costs nothing. With a `cutoff` an array of
        objects: None for a point that was declined, and for one that comes after the last of T in the same call. Raises
        BudgetExhausted if fewer answers are left than there are new points, or T points were declined; nothing is drawn
        then. LedgerIntegrityError if the ledger is older than this object, which holds what was learned: an earlier
        copy of it was put back. Nothing is drawn then.
        """
        kept = self._fitted()
        points = self.concepts.check(X)
        digests = [row.tobytes() for row in points]
        memo = kept.memo
        with memo.lock:
            first, _ = distinct(digests)
            new = [i for i in first.tolist() if memo.recall(digests[i]) is None]
            if new:
                with kept.account.open(self.ledger) as (_, reservation):
                    answers = kept.ask(reservation, points[new])
                memo.remember(*zip(*((digests[i], code) for i, code in zip(new, answers, strict=True)), strict=True))
            codes = np.array([memo.recall(digest) for digest in digests], dtype=np.int64)
        if kept.stages is None:
            return np.asarray(self.classes_[codes])
        answered = self.classes_[np.maximum(codes, 0)].astype(object)
        answered[codes < 0] = None
        return np.asarray(answered)

    @property
    def answers_left_(self) -> int:
        """How many more distinct points may be asked."""
        kept = self._fitted()
        with kept.account.open(self.ledger) as (_, reservation):
            return 0 if kept.declines_left(reservation) == 0 else reservation.remaining(PURPOSE)

    def rows_needed(self) -> RowsNeeded:
        """Return how many labelled rows are proven to be enough for α and β, at ε.

        Raises InvalidParameter if a constructor argument is out of range, or no number of rows is enough.
        """
        return self._rows_needed(*self._target())

    def plan_for(self, n_labelled: int) -> PredictionPlan:
        """Return what a fit on so many labelled rows would do, and the error that is proven of it; it sees no row.

        Raises InvalidParameter, DataRefused if an argument is wrong, or there are too few rows for any plan.
        """
        return self._plan(count("n_labelled", n_labelled, at_least=2), *self._target())

    def __getstate__(self) -> dict[str, Any]:
        if hasattr(self, "_kept"):
            raise SecretRefused(
                "a fitted AgnosticPrediction holds concepts that were learned from private rows without privacy, and "
                "is neither pickled nor copied; its answers are in its ledger"
            )
        return dict(super().__getstate__())

    # --- what it is made of --------------------------------------------------------------------------------------

    def _target(self) -> tuple[float, float]:
        check_theorem(self)
        count("n_queries", self.n_queries, at_least=1)
        if self.cutoff is not None and count("cutoff", self.cutoff, at_least=1) > self.n_queries:
            raise InvalidParameter(
                f"cutoff must be at most n_queries={self.n_queries}, got {self.cutoff}; lower it, or raise n_queries"
            )
        one_of("selection", self.selection, MECHANISMS)
        one_of("rows", self.rows, ("any", "theorem"))
        check_limit(self.limit)
        real("epsilon", self.epsilon, at_most=LARGEST_TARGET, hint="no larger one is a promise: lower it")
        if not real("delta", self.delta, at_least=0, below=1):
            if self.cutoff is not None:
                raise InvalidParameter(
                    "cutoff needs a delta above 0, got 0.0; give a delta far below 1 / n_rows, or leave cutoff out"
                )
            return floor_epsilon(self.epsilon), 0.0
        return floor_budget(self.epsilon, self.delta)

    def _checked(self, X: Any, y: Any) -> Sample:
        sample = read_sample(self.concepts, X, y, self.classes)
        if sample.n_labelled < 2:
            raise DataRefused("y must hold at least two labels; some rows give scores and some are relabelled")
        return sample

    def _plan(self, n_rows: int, epsilon: float, delta: float, *, wanted: float | None = None) -> PredictionPlan:
        plan = plan_predictions(
            n_rows,
            epsilon=epsilon,
            delta=delta,
            n_queries=self.n_queries,
            cutoff=self.cutoff,
            growth=growth_of(self.concepts),
            beta=self.beta,
            wanted=self.alpha if wanted is None else wanted,
            fits=relabels(self.concepts, self.limit, n_rows),
        )
        refuse_plan(self.concepts, plan.price)
        choice_at(plan.price, self.selection)
        return plan

    def _rows_needed(self, epsilon: float, delta: float) -> RowsNeeded:
        labelled = rows_for(
            self.alpha, lambda n_rows: self._plan(n_rows, epsilon, delta, wanted=1.0).excess, start=least_rows(epsilon)
        )
        return RowsNeeded(labelled=labelled, unlabelled=0, theorem=_THEOREM)

    def _hypotheses(
        self, points: Any, labels: NDArray[np.uint8], plan: PredictionPlan, noise: NoiseSource
    ) -> Secret[tuple[Concept, ...]]:
        T, new = relabelled_sample(points, labels, self.concepts, plan.price, self.selection, noise)
        parts = np.array_split(np.arange(len(T)), plan.n_hypotheses)  # T is in random order
        return Secret(tuple(self.concepts.erm(T[part], new[part]) for part in parts))

    def _fitted(self) -> Hypotheses:
        if not hasattr(self, "_kept"):
            raise NotFittedError("this AgnosticPrediction is not fitted; call fit(X, y) first")
        return self._kept
