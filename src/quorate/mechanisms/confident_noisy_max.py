"""Confident-GNMax: answer only where a noisy test says that enough teachers agree (PATE18 Algorithm 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any, ClassVar, Self

import numpy as np

from quorate.accounting import Composed, DiscreteGaussian
from quorate.arguments import one_of, real
from quorate.mechanisms.answer_law import passes
from quorate.mechanisms.answerable import AgreementTest, Answerable, AnswerNoise
from quorate.mechanisms.answers import DECLINED
from quorate.mechanisms.calibrated import Schedule, least
from quorate.mechanisms.fields import FROM_TASK, NOISE
from quorate.mechanisms.gaussian_noise import (
    FORMS,
    TEST_TO_ANSWER,
    THRESHOLD,
    Form,
    after_a_test,
    gaussian_event,
    gaussian_noise,
    n_classes_of,
    tested_sigma,
    with_noise,
)
from quorate.mechanisms.mechanism import QueryMechanism
from quorate.mechanisms.noisy_max_terms import NoisyMaxTerms
from quorate.mechanisms.registry import register
from quorate.mechanisms.votes import in_blocks, many_queries
from quorate.noise import NoiseSource, discrete_gaussian
from quorate.noise.source import checked_scale
from quorate.stored_names import stored_as
from quorate.types import IntArray


@stored_as("quorate.mechanisms.confident_noisy_max.ConfidentNoisyMax")
@register
@dataclass(frozen=True, slots=True)
class ConfidentNoisyMax(QueryMechanism):
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

    Raises
    ------
    InvalidParameter
        If a field is out of range; on release, if the counts are not int64 votes of the right width.

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

    may_decline: ClassVar[bool] = True

    threshold: float = field(metadata=THRESHOLD)
    sigma_threshold: float = field(metadata=NOISE)
    sigma_answer: float = field(metadata=NOISE)
    form: Form = field(default="histogram", metadata=FROM_TASK)

    def __post_init__(self) -> None:
        object.__setattr__(self, "threshold", real("threshold", self.threshold, above=0))
        object.__setattr__(self, "sigma_threshold", checked_scale("sigma_threshold", self.sigma_threshold))
        object.__setattr__(self, "sigma_answer", checked_scale("sigma_answer", self.sigma_answer))
        one_of("form", self.form, FORMS)

    @property
    def event(self) -> Composed:
        """Price of one query that is answered, which covers one that is declined."""
        return Composed((self.declined_event, gaussian_event(self.sigma_answer, self.form)))

    @property
    def declined_event(self) -> DiscreteGaussian:
        """Price of one query that is declined: the test alone."""
        return DiscreteGaussian(self.sigma_threshold, 1.0)

    @property
    def answer_noise(self) -> AnswerNoise:
        """Gaussian noise; an answer has noise of its own, whatever the test before it drew."""
        return gaussian_noise(self.sigma_answer, self.form)

    @property
    def test(self) -> AgreementTest:
        """The largest count must reach the threshold."""
        return AgreementTest(statistic="largest count", threshold=self.threshold)

    @property
    def data_dependent(self) -> NoisyMaxTerms | None:
        """What PATE18's analysis needs; it is known of the histogram form."""
        terms = NoisyMaxTerms(self.sigma_answer, self.threshold, self.sigma_threshold)
        return terms if self.form == "histogram" else None

    def answerable(self, n_teachers: int, n_classes: int) -> Answerable:
        """Return what K teachers can get answered: K votes have to pass the test."""
        return after_a_test(self.test, self.sigma_threshold, self.answer_noise, n_teachers, n_classes)

    def passes(self, statistic: int) -> float:
        """Return the probability that a largest count passes the test."""
        return passes("gaussian", self.sigma_threshold, ceil(self.threshold) - statistic)

    @classmethod
    def calibrated(cls, values: Mapping[str, Any], schedule: Schedule) -> Self:
        """Return it with the least noise, in PATE18's proportion of test and answer."""
        return least(
            lambda sigma: cls(**values, sigma_answer=sigma, sigma_threshold=TEST_TO_ANSWER * sigma),
            tested_sigma(values["form"], schedule),
            schedule,
        )

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each row of ``(n_queries, n_classes)`` vote counts: class indices, or ``DECLINED``."""
        return self._answers(many_queries(counts, n_classes=n_classes_of(self.form)), noise)

    def _answers(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        answers = np.full(counts.shape[0], DECLINED, dtype=np.int64)
        for rows, block in in_blocks(counts):
            largest = block.max(axis=1)
            passed = largest + discrete_gaussian(self.sigma_threshold, largest.shape, noise) >= self.threshold
            noisy = with_noise(block[passed], self.sigma_answer, self.form, noise)
            answers[rows][passed] = noisy > 0 if self.form == "binary" else noisy.argmax(axis=1)
        return answers
