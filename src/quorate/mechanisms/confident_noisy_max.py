"""A noisy max after a noisy test: Confident-GNMax and Interactive-GNMax (PATE18 Algorithms 1 and 2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import ceil, sqrt
from typing import Any, ClassVar, Final, Self

import numpy as np

from quorate.accounting import Composed, DiscreteGaussian, calibrate_sigma
from quorate.arguments import count, one_of, real
from quorate.deferred import special
from quorate.errors import InvalidParameter
from quorate.mechanisms.answer_law import AgreementTest, Answerable, AnswerNoise, passes
from quorate.mechanisms.answers import DECLINED, in_blocks, many_queries, one_query
from quorate.mechanisms.fields import FROM_TASK, NOISE, Schedule, example, least
from quorate.mechanisms.gaussian_noise import (
    FORMS,
    Form,
    NoisyMaxTerms,
    gaussian_event,
    gaussian_noise,
    n_classes_of,
    with_noise,
)
from quorate.mechanisms.mechanism import QueryMechanism, Takes, register
from quorate.noise import NoiseSource, discrete_gaussian
from quorate.noise.source import MAX_SCALE, checked_scale
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray

#: Metadata of the threshold of a test before an answer.
_THRESHOLD: Final = example(200.0, "how many teachers must agree, in votes")
_TEST_TO_ANSWER: Final = 150 / 40  # σ₁ to σ₂ in PATE18's experiments


class _TestedNoisyMax(QueryMechanism):
    """A noisy max after a noisy test, priced and calibrated: what both mechanisms here are."""

    __slots__ = ()

    may_decline: ClassVar[bool] = True
    threshold: float
    sigma_threshold: float
    sigma_answer: float
    form: Form

    def _check_noise(self) -> None:
        object.__setattr__(self, "threshold", real("threshold", self.threshold, above=0))
        object.__setattr__(self, "sigma_threshold", checked_scale("sigma_threshold", self.sigma_threshold))
        object.__setattr__(self, "sigma_answer", checked_scale("sigma_answer", self.sigma_answer))
        one_of("form", self.form, FORMS)

    @property
    def event(self) -> Composed:
        """Price of one query that the teachers answer, which covers one that they do not."""
        return Composed((self.declined_event, gaussian_event(self.sigma_answer, self.form)))

    @property
    def declined_event(self) -> DiscreteGaussian:
        """Price of one query that did not pass: the test alone."""
        return DiscreteGaussian(self.sigma_threshold, 1.0)

    @property
    def answer_noise(self) -> AnswerNoise:
        """Gaussian noise in an answer of the teachers, whatever the test before it drew."""
        return gaussian_noise(self.sigma_answer, self.form)

    @property
    def test(self) -> AgreementTest:
        """The largest count, or its largest surplus over a prediction, must reach the threshold."""
        return AgreementTest(statistic="largest count", threshold=self.threshold)

    def answerable(self, n_teachers: int, n_classes: int) -> Answerable:
        """Return what K teachers can get answered, beyond what a student knows: K votes have to pass the test."""
        test, noise = self.test, self.answer_noise
        largest = test.largest(n_teachers)
        passed = float(special.ndtr((largest - self.threshold) / self.sigma_threshold))
        right = noise.right(n_teachers, n_classes)
        return Answerable(probability=passed * right, test=test, largest=largest, noise=noise)

    @classmethod
    def calibrated(cls, values: Mapping[str, Any], schedule: Schedule) -> Self:
        """Return it with the least noise, in PATE18's proportion of test and answer."""
        kind: Callable[..., Self] = cls  # a dataclass with these fields
        # A test and an answer together move like one Gaussian.
        moved = sqrt((1.0 if values["form"] == "binary" else 2.0) + _TEST_TO_ANSWER**-2)
        start = calibrate_sigma(schedule.epsilon, schedule.delta, schedule.answers, moved, noise="continuous")
        return least(
            lambda sigma: kind(**values, sigma_answer=sigma, sigma_threshold=_TEST_TO_ANSWER * sigma), start, schedule
        )

    def _answer_passed(self, answers: IntArray, block: IntArray, statistic: IntArray, noise: NoiseSource) -> None:
        """Put a noisy max among the answers of a block where the statistic ``(n_queries,)`` passes the test."""
        passed = statistic + discrete_gaussian(self.sigma_threshold, statistic.shape, noise) >= self.threshold
        noisy = with_noise(block[passed], self.sigma_answer, self.form, noise)
        answers[passed] = noisy > 0 if self.form == "binary" else noisy.argmax(axis=1)


@stored_as("quorate.mechanisms.confident_noisy_max.ConfidentNoisyMax")
@register
@dataclass(frozen=True, slots=True)
class ConfidentNoisyMax(_TestedNoisyMax):
    r"""Release a Gaussian noisy max where the largest count passes a noisy threshold, else decline.

    Parameters
    ----------
    threshold : float
        In votes; must be > 0. A query passes where :math:`\max_c n_c + Z \ge` the threshold.
    sigma_threshold : float
        σ₁ of the test's noise, in votes; must be > 0. Usually much larger than `sigma_answer`.
    sigma_answer : float
        σ₂ of the answer's noise, in votes; must be > 0.
    form : {"histogram", "binary"}, default "histogram"
        Of the answer, as for :class:`GaussianNoisyMax`.

    Notes
    -----
    Privacy: :math:`\max_c n_c` moves by at most 1 with one teacher, so the test is :math:`1/(2\sigma_1^2)`-zCDP;
    the answer is priced as a noisy max at σ₂. Whether a query was answered is public, and :attr:`event` is the price
    of one that was. A query that was declined cost :attr:`declined_event` alone; since that is known only
    afterwards, it may be charged so by a filter, not under a schedule fixed beforehand.

    References
    ----------
    PATE18 (Papernot et al., arXiv:1802.08908), Algorithm 1; CKS20 (arXiv:2004.00010), Proposition 5.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.noise import SeededNoise
    >>> mechanism = ConfidentNoisyMax(threshold=150, sigma_threshold=20.0, sigma_answer=5.0)
    >>> mechanism.release_many(np.array([[220, 20, 10], [90, 85, 75]]), SeededNoise(0)).tolist()
    [0, -1]
    >>> mechanism.release(np.array([90, 85, 75]), SeededNoise(0)) is None
    True
    """

    threshold: float = field(metadata=_THRESHOLD)
    sigma_threshold: float = field(metadata=NOISE)
    sigma_answer: float = field(metadata=NOISE)
    form: Form = field(default="histogram", metadata=FROM_TASK)

    def __post_init__(self) -> None:
        self._check_noise()

    @property
    def data_dependent(self) -> NoisyMaxTerms | None:
        """What PATE18's analysis needs; it is known of the histogram form."""
        terms = NoisyMaxTerms(self.sigma_answer, self.threshold, self.sigma_threshold)
        return terms if self.form == "histogram" else None

    def passes(self, statistic: int) -> float:
        """Return the probability that a largest count passes the test."""
        return passes("gaussian", self.sigma_threshold, ceil(self.threshold) - statistic)

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each row of ``(n_queries, n_classes)`` vote counts: class indices, or ``DECLINED``."""
        return self._answers(many_queries(counts, n_classes=n_classes_of(self.form)), noise)

    def _answers(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        answers = np.full(counts.shape[0], DECLINED, dtype=np.int64)
        for rows, block in in_blocks(counts):
            self._answer_passed(answers[rows], block, block.max(axis=1), noise)
        return answers


@stored_as("quorate.mechanisms.interactive_noisy_max.InteractiveNoisyMax")
@register
@dataclass(frozen=True, slots=True)
class InteractiveNoisyMax(_TestedNoisyMax):
    r"""Compare the votes with the student's own prediction first; pay for an answer only where they differ.

    A query passes where :math:`\max_c (n_c - \mathrm{round}(K p_c)) + Z \ge` the threshold: then a Gaussian noisy
    max is released. Where it does not pass, the student's label is confirmed if it was sure of it, and the query is
    declined if it was not.

    Parameters
    ----------
    threshold : float
        In votes; must be > 0.
    sigma_threshold : float
        σ₁ of the test's noise, in votes; must be > 0.
    sigma_answer : float
        σ₂ of the answer's noise, in votes; must be > 0.
    n_teachers : int
        K, a public number; at least 1.
    confidence : float
        γ, in (0, 1): the student's label is confirmed where :math:`\max_c p_c > \gamma`.
    form : {"histogram", "binary"}, default "histogram"
        Of the answer, as for :class:`GaussianNoisyMax`.

    Raises
    ------
    InvalidParameter
        If a field is out of range; on release, if the counts are not int64 votes of the right width, or the
        predictions are not numbers from 0 to 1 of the counts' shape.

    Notes
    -----
    Privacy: the prediction is public (a student sees released labels and public points alone), so each
    :math:`n_c - \mathrm{round}(K p_c)` is a count minus a constant: its maximum moves by at most 1 with one teacher.
    The prices are those of :class:`ConfidentNoisyMax`, and a query that did not pass cost :attr:`declined_event`,
    confirmed or not: a confirmation is made of the public prediction.

    Without a prediction (before there is a student) p is 0 and this is :class:`ConfidentNoisyMax`.

    References
    ----------
    PATE18 (Papernot et al., arXiv:1802.08908), Algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.noise import SeededNoise
    >>> mechanism = InteractiveNoisyMax(
    ...     threshold=100, sigma_threshold=10.0, sigma_answer=5.0, n_teachers=250, confidence=0.9
    ... )
    >>> votes = np.array([230, 15, 5])
    >>> mechanism.release(votes, SeededNoise(0), prediction=np.array([0.1, 0.8, 0.1]))  # corrected
    0
    >>> mechanism.release(votes, SeededNoise(0), prediction=np.array([0.95, 0.03, 0.02]))  # confirmed
    0
    >>> mechanism.release(votes, SeededNoise(0), prediction=np.array([0.8, 0.1, 0.1])) is None
    True
    """

    takes: ClassVar[Takes] = "votes and predictions"

    threshold: float = field(metadata=_THRESHOLD)
    sigma_threshold: float = field(metadata=NOISE)
    sigma_answer: float = field(metadata=NOISE)
    n_teachers: int = field(metadata=FROM_TASK)
    confidence: float = field(metadata=example(0.9, "how sure the student must be to be confirmed"))
    form: Form = field(default="histogram", metadata=FROM_TASK)

    def __post_init__(self) -> None:
        self._check_noise()
        object.__setattr__(self, "n_teachers", count("n_teachers", self.n_teachers, at_least=1))
        if self.n_teachers > MAX_SCALE:
            raise InvalidParameter(
                parameter="n_teachers", got=self.n_teachers, expected="at most 2^40", advice="it is a number of votes"
            )
        object.__setattr__(self, "confidence", real("confidence", self.confidence, above=0, below=1))

    def release(self, counts: IntArray, noise: NoiseSource, prediction: FloatArray | None = None) -> int | None:
        """Answer one query from its ``(n_classes,)`` vote counts and the student's ``(n_classes,)`` prediction."""
        row = one_query(counts, n_classes=n_classes_of(self.form))
        predictions = None if prediction is None else np.asarray(prediction)[np.newaxis]
        answer = int(self._answers(row, noise, predictions)[0])
        return None if answer == DECLINED else answer

    def release_many(self, counts: IntArray, noise: NoiseSource, predictions: FloatArray | None = None) -> IntArray:
        """Answer each row of ``(n_queries, n_classes)`` vote counts and predictions: classes, or ``DECLINED``."""
        return self._answers(many_queries(counts, n_classes=n_classes_of(self.form)), noise, predictions)

    def _answers(self, counts: IntArray, noise: NoiseSource, predictions: FloatArray | None) -> IntArray:
        p = np.zeros(counts.shape) if predictions is None else np.asarray(predictions)
        if p.shape != counts.shape or p.dtype.kind != "f" or not ((p >= 0) & (p <= 1)).all():  # NaN is refused too
            raise InvalidParameter(
                "predictions must be numbers from 0 to 1, one per count; pass the student's class probabilities"
            )
        answers = np.where(p.max(axis=1) > self.confidence, p.argmax(axis=1), DECLINED)
        for rows, block in in_blocks(counts):
            surplus = (block - np.rint(self.n_teachers * p[rows]).astype(np.int64)).max(axis=1)
            self._answer_passed(answers[rows], block, surplus, noise)
        return answers
