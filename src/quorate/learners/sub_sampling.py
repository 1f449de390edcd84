"""A private active learner: it asks for the labels of a few rows of a secret sample (BNS15, Algorithm 4).

Of t rows a random n are handed to an (ε, δ)-DP learner, m of them with their labels: a random m, or the m smallest
indices, as printed. Price and proof: ``docs/theory/learner-proofs.md``, the fifth section.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import exp, expm1, log1p
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np

from quorate.ambient import own_switches
from quorate.arguments import count, one_of, real
from quorate.errors import DataRefused, InvalidParameter, QuorateError
from quorate.findings import Finding, Severity, caution
from quorate.learners.amplification import (
    Price,
    kept_share,
    largest_count,
    random_arrangement,
    rounded_up_count,
    rounded_up_price,
    smallest_count,
    without_replacement,
)
from quorate.learners.concepts.protocol import Concept, Points
from quorate.learners.fit_charge import inner_at
from quorate.learners.private_learner import UNLABELLED, CodedLabels, Plan, PrivateLearner, RowsNeeded, coded_labels
from quorate.learners.sample import Sample, two_classes
from quorate.learners.transformed_learner import BaseFit, TransformedLearner
from quorate.noise import NoiseSource
from quorate.stored_names import stored_as
from quorate.types import IntArray, Secret

#: Which rows of the sample are asked for their labels.
Asked: TypeAlias = Literal["random", "first"]


def subsampling(price: Price, *, n_rows: int, n_kept: int, labelled: Asked = "random") -> Price:
    """Return the price of a learner that is run on a secret sample of n of t rows, m of them with their labels.

    `price`: of the learner on the sample; ε at most 250. `labelled`: whether a random m have labels, or the m smallest
    indices. It covers what the learner answers, and not which labels were asked for.
    """
    one_of("labelled", labelled, ("random", "first"))
    if labelled == "random":
        return without_replacement(price, n_rows=n_rows, n_kept=n_kept)
    real("price.epsilon", price.epsilon, at_most=250)
    rate = kept_share(n_rows, n_kept)
    once, twice = expm1(price.epsilon), expm1(2 * price.epsilon)
    epsilon = log1p(rate * (twice - once) / (1 + rate * once))
    theta = (1 - rate) * -expm1(-price.epsilon) / (1 + rate * once)
    return rounded_up_price(epsilon, rate * (1 + theta * exp(price.epsilon)) * price.delta)


def bns15_subsampling(price: Price, *, n_rows: int, n_kept: int) -> Price:
    r"""Return BNS15's Algorithm 4: :math:`(\log(1 + r(e^{2\varepsilon} - 1)),\ r(1 + e^\varepsilon)\delta)`."""
    real("price.epsilon", price.epsilon, at_most=250)
    rate = kept_share(n_rows, n_kept)
    delta = rate * (1 + exp(price.epsilon)) * price.delta
    return rounded_up_price(log1p(rate * expm1(2 * price.epsilon)), delta)


def bns15_claim_5_7(price: Price, *, epsilon: float, n_kept: int) -> tuple[int, Price]:
    r"""Return how many rows BNS15's Claim 5.7 takes `n_kept` from to bring a price to ε, and that price.

    :math:`t = \frac{n}{\varepsilon}(3 + e^{2\varepsilon^*})` rows give :math:`(\varepsilon, \frac{7 +
    e^{\varepsilon^*}}{3 + e^{2\varepsilon^*}} \varepsilon\delta)`, for ε in (0, 1]: the claim says "every ε", its proof
    uses ε <= 1.
    """
    epsilon = real("epsilon", epsilon, above=0, at_most=1)
    real("price.epsilon", price.epsilon, at_most=250)
    n_kept = count("n_kept", n_kept, at_least=1)
    share = 3 + exp(2 * price.epsilon)
    delta = (7 + exp(price.epsilon)) / share * epsilon * price.delta
    return rounded_up_count(n_kept * share / epsilon), Price(epsilon, rounded_up_price(0.0, delta).delta)


#: What programs decide by: fewer labels are asked for than were requested.
FEWER_LABELS = "fewer-labels-than-requested"

# Stands in the fingerprint for a label that nobody was asked for yet; no column of labels holds it.
_NOT_ASKED = 2


@stored_as("quorate.learners.sub_sampling.SubSamplingPlan")
@dataclass(frozen=True, kw_only=True)
class SubSamplingPlan(Plan):
    """The calibrated parameters of one SubSampling: t rows, n sampled, and how the base learner is run on them."""

    n_rows: int
    n_kept: int
    base_fit: BaseFit = field(repr=False)


@stored_as("quorate.learners.sub_sampling.SubSampling")
@dataclass(kw_only=True, eq=False, repr=False)
class SubSampling(TransformedLearner):
    r"""Ask for few labels of a secret random sample, and run a private learner on it: fewer labels for a small ε.

    The number of labels asked for is the base learner's own, whatever ε is; only the number of rows to sample from
    grows as 1/ε (BNS15, Claim 5.7).

    Other parameters and attributes: :class:`~quorate.learners.PrivateLearner`.

    `base`: a private learner for `concepts`. Its `epsilon` and `delta` are ε* and δ*: what it costs on the sample.
    `n_labels`: m: how many labels to ask for. As many as the base learner's theorem asks for by default, if the sample
    has them.
    `base_rows`: n: how many rows to sample. As many as the target allows by default.
    `labelled`: "random" or "first": whose labels are asked for: those of a random m of the sample, or of its m smallest
    indices, as printed. The latter costs more: exchanging one row may change whose label is asked for.
    `plan_`: the sizes; public. `n_labels_used_`: m. `transcript_covered_`: False: whoever sees for which rows a label
    was asked knows more than the guarantee allows (BNS15, Definition 5.4). The secrecy of the sample is what makes it
    cheap.

    Privacy: with r = n/t, :math:`(\log(1 + r(e^{\varepsilon^*} - 1)),\ r\delta^*)` for ``labelled="random"``; for
    "first" see :mod:`~quorate.learners.sub_sampling`. Asking is not part of what is released, so nobody but
    the owner of the rows may give the labels.

    BNS15 (Beimel, Nissim, Stemmer), Algorithm 4, Claim 5.7, Theorem 5.8.

    Examples
    --------
    >>> from quorate.learners import ExponentialLearner, SubSampling
    >>> from quorate.learners.concepts import Thresholds
    >>> domain = Thresholds(bits=10)
    >>> X = np.random.default_rng(0).integers(0, 1024, (3_000, 1))
    >>> learner = SubSampling(
    ...     concepts=domain, base=ExponentialLearner(concepts=domain, epsilon=1.0), epsilon=0.1, n_labels=150,
    ...     base_rows=150, unsafe_noise_seed=0,
    ... )
    >>> fitted = learner.fit(X, lambda indices: (X[indices, 0] < 500).astype(int))
    >>> fitted.n_labels_used_, fitted.transcript_covered_
    (150, False)
    """

    n_labels: int | None = None
    base_rows: int | None = None
    labelled: Asked = "random"

    transcript_covered: ClassVar[bool] = False

    @own_switches()
    def fit(self, X: Any, y: Any, *, groups: Any | None = None) -> Self:
        """Learn a concept that may be published.

        `X` ``(n_rows, n_features)``: private rows, points of the class's domain. `y` ``(n_rows,)``: the labels, of
        which m are read; or who is asked for them: ``y(indices)``, called once with m indices in increasing order,
        returns their labels, 0 or 1 each. What it will answer is not known before it is asked, so each such fit is a
        fit of its own: it is charged, also in the same ledger, and asks anew. Labels in an array are other data, for
        another ledger. All else is as in :meth:`PrivateLearner.fit`, but that wrong answers of a callable `y` are
        refused after the charge.
        """
        if not callable(y):
            return super().fit(X, y, groups=groups)
        self._asked: Callable[[IntArray], Any] = y
        try:
            # Every row may be asked for; none of these labels is looked at, and `_checked` takes them away.
            label = 0 if self.classes is None else two_classes(self.classes)[0]
            return super().fit(X, np.full(len(self._concept_class.check(X)), label), groups=groups)
        finally:
            del self._asked

    def _checked(self, X: Any, y: Any) -> Sample:
        sample = super()._checked(X, y)
        if not hasattr(self, "_asked"):
            return sample
        return replace(sample, labels=Secret(np.full(sample.n_labelled, _NOT_ASKED, dtype=np.int8)))

    def _occasion(self) -> str:
        # A concept that was learned from one oracle's answers is none that another one's would give.
        return secrets.token_hex(16) if hasattr(self, "_asked") else ""

    def _check_arguments(self) -> None:
        super()._check_arguments()
        one_of("labelled", self.labelled, ("random", "first"))
        if self.n_labels is not None:
            count("n_labels", self.n_labels, at_least=1)
        if self.base_rows is not None:
            count("base_rows", self.base_rows, at_least=self.n_labels or 1)

    def _price(self, base: Price, n_rows: int, n_kept: int, n_labels: int) -> Price:
        # Where all of the sample is labelled, or none, an exchange changes one entry in any case.
        labelled: Asked = "random" if n_labels in (0, n_kept) else self.labelled
        return subsampling(base, n_rows=n_rows, n_kept=n_kept, labelled=labelled)

    def _sizes(self) -> tuple[int, int]:
        """Return n and m as the arguments, or the base learner's theorem, ask for them."""
        if self.base_rows is not None and self.n_labels is not None:
            return self.base_rows, self.n_labels
        needs = self._base_needs(self.base)
        labels = needs.labelled if self.n_labels is None else self.n_labels
        return (labels + needs.unlabelled if self.base_rows is None else self.base_rows), labels

    def _rows_needed(self, epsilon: float, delta: float) -> RowsNeeded:
        kept, labels = self._sizes()
        base, target = self._base_price(self.base), Price(epsilon, delta)
        together = smallest_count(lambda rows: self._price(base, rows, kept, labels).within(target), kept)
        return RowsNeeded(
            labelled=min(labels, kept),
            unlabelled=max(0, together - labels),
            theorem="BNS15 Claim 5.7, at the proven price,",
        )

    def _enough(self, needed: RowsNeeded, n_labelled: int, n_unlabelled: int) -> bool:
        return n_labelled + n_unlabelled >= needed.labelled + needed.unlabelled  # any row may be asked

    def _plan(self, n_labelled: int, n_unlabelled: int, epsilon: float, delta: float) -> SubSamplingPlan:
        if n_unlabelled:
            raise DataRefused("y must have a label for every row that may be asked: SubSampling itself leaves out most")
        base, target = self._base_price(self.base), Price(epsilon, delta)
        wanted = self._sizes()[1] if self.n_labels is None else self.n_labels

        def fits(kept: int) -> bool:
            return self._price(base, n_labelled, kept, min(wanted, kept)).within(target)

        if self.base_rows is None:
            kept = largest_count(fits, n_labelled)
            while kept and not fits(kept):  # "first" costs less where the whole sample is labelled
                kept -= 1
        elif self.base_rows > n_labelled or not fits(self.base_rows):
            needed = smallest_count(
                lambda rows: self._price(base, rows, self.base_rows or 1, wanted).within(target), self.base_rows
            )
            raise InvalidParameter(
                f"base_rows={self.base_rows} must be sampled from at least {needed:,} rows at this target; "
                "give more rows, or leave base_rows out"
            )
        else:
            kept = self.base_rows
        labels = min(wanted, kept)
        if not kept:
            needed = smallest_count(lambda rows: self._price(base, rows, 1, 1).within(target), 1)
            raise InvalidParameter(f"X must have at least {needed:,} rows for a sample of one at this target")
        fit = self._base_fit(self.base, kept, labels)
        return SubSamplingPlan(
            event=self._price(fit.price, n_labelled, kept, labels).event,
            told=f"a concept that {type(self.base).__name__} learned from a secret sample of {kept:,} rows and "
            f"{labels:,} of their labels",
            n_labels=labels,
            cautions=fit.plan.cautions,
            caveats=(
                *fit.plan.caveats,
                "for which rows a label was asked is not covered: it must not be told to anybody",
            ),
            n_rows=n_labelled,
            n_kept=kept,
            base_fit=fit,
        )

    def _cautions(self, plan: Any, n_rows: tuple[int, int], epsilon: float, delta: float) -> tuple[Finding, ...]:
        wanted, words = self._wanted(self.base), None
        if plan.n_labels < wanted:
            words = (
                f"only {plan.n_labels:,} labels are asked for, and {wanted:,} were requested: at base.epsilon="
                f"{self.base.epsilon:g} a sample of {plan.n_kept:,} of these {plan.n_rows:,} rows is all that the "
                f"target allows{self._offer(plan, Price(epsilon, delta))}"
            )
        fewer = caution(FEWER_LABELS, Severity.WARNING, words)
        return (fewer, *super()._cautions(plan, n_rows, epsilon, delta))

    def _wanted(self, base: PrivateLearner) -> int:
        return self._base_needs(base).labelled if self.n_labels is None else self.n_labels

    def _offer(self, plan: SubSamplingPlan, target: Price) -> str:
        """Name the base ε with which most labels are asked for; the largest, where several are as good."""
        if self.base_rows is not None:
            return ""
        best, offered = plan.n_labels, 0.0
        for base_epsilon in np.geomspace(self.base.epsilon, min(target.epsilon, self.base.epsilon), 49)[1:].tolist():
            at = float(f"{base_epsilon:.3g}")
            try:
                base = inner_at(self.base, epsilon=at)
                price, wanted = self._base_price(base), self._wanted(base)
            except QuorateError:
                continue
            kept = largest_count(
                lambda kept, price=price, wanted=wanted: (  # type: ignore[misc]
                    self._price(price, plan.n_rows, kept, min(wanted, kept)).within(target)
                ),
                plan.n_rows,
            )
            if min(wanted, kept) > best:
                best, offered = min(wanted, kept), at
        return f"; base.epsilon={offered:g} asks for most, {best:,}" if offered else ""

    def _learn(self, points: Points, labels: CodedLabels, noise: NoiseSource, plan: Any) -> Concept:
        sample = random_arrangement(len(points), plan.n_kept, noise.at("secret sample", 0))
        m = plan.base_fit.n_labelled
        if self.labelled == "first":
            smallest = np.sort(sample)[:m]
            is_asked = np.isin(sample, smallest)
            sample = np.concatenate([sample[is_asked], sample[~is_asked]])  # either part still in random order
        return self._run_base(self.base, points[sample], self._labels_of(sample[:m], labels), plan.base_fit, noise)

    def _labels_of(self, rows: IntArray, labels: CodedLabels) -> CodedLabels:
        oracle = getattr(self, "_asked", None)
        if oracle is None:
            return labels[rows]
        order = np.argsort(rows)
        answers = coded_labels(oracle(rows[order]), self.classes)
        if len(answers) != len(rows) or (answers == UNLABELLED).any():
            raise DataRefused(
                "y must answer 0 or 1 for each of the rows that it was asked for", charged="it was charged"
            )
        in_order = np.empty(len(rows), dtype=np.int8)
        in_order[order] = answers
        return in_order
