"""Confident-GNMax: answer only where a noisy test says that enough teachers agree (PATE18 Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quorate.accounting import Composed, DiscreteGaussian
from quorate.arguments import one_of, real
from quorate.mechanisms.gaussian_noise import FORMS, Form, gaussian_event, n_classes_of, with_noise
from quorate.mechanisms.protocol import DECLINED
from quorate.mechanisms.votes import in_blocks, many_queries, one_query
from quorate.noise import NoiseSource, discrete_gaussian
from quorate.noise.arguments import checked_scale
from quorate.types import IntArray


@dataclass(frozen=True, slots=True)
class ConfidentNoisyMax:
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

    threshold: float
    sigma_threshold: float
    sigma_answer: float
    form: Form = "histogram"

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

    def release(self, counts: IntArray, noise: NoiseSource) -> int | None:
        """Answer one query from its ``(n_classes,)`` vote counts: a class index, or None."""
        answer = int(self._answers(one_query(counts, n_classes=n_classes_of(self.form)), noise)[0])
        return None if answer == DECLINED else answer

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
