"""Where randomness comes from: exact integer samplers fed by the operating system's entropy.

=============================== ==============================================================
:func:`discrete_gaussian`       integers with ``P(x) ∝ exp(-x²/(2σ²))``
:func:`discrete_laplace`        integers with ``P(x) ∝ exp(-|x|/b)``
:func:`geometric`               ``0, 1, 2, …`` with ``P(k) ∝ exp(-k/λ)``
:class:`OSNoise`                the only source behind a guarantee: no state, safe under fork
:class:`SeededNoise`            its reproducible twin for tests and demos: **voids any guarantee**
=============================== ==============================================================

Here belongs how one random integer is drawn, and from which bits. How much noise is needed belongs in
:mod:`quorate.accounting`, and what it is added to in :mod:`quorate.mechanisms`. Begin with
:mod:`~quorate.noise.source`, then :mod:`~quorate.noise.discrete_gaussian`.

Formal guarantees
-----------------
- Every draw is within total variation :data:`TOTAL_VARIATION` of the stated distribution, and draws are
  independent, when the source's words are uniform and independent (proofs: :mod:`quorate.noise.table`,
  :mod:`quorate.noise.discrete_gaussian`, :mod:`quorate.noise.discrete_laplace`).
- Nothing is computed in floating point that decides a draw: a float is consulted only where its error
  bound shows that it cannot matter.
- How many words a draw takes depends on the noise alone. A draw is never rejected and made anew, but for discrete
  Gaussian noise of σ above 1,820, of which fewer than 1 % are.

What :data:`TOTAL_VARIATION` means for δ, and which prices include it, is said at
:func:`quorate.accounting.sampler_delta`.
"""

from quorate.noise.discrete_gaussian import discrete_gaussian
from quorate.noise.discrete_laplace import discrete_laplace, geometric
from quorate.noise.source import NoiseSource, OSNoise, SeededNoise
from quorate.noise.table import TOTAL_VARIATION

__all__ = [
    "NoiseSource",
    "OSNoise",
    "SeededNoise",
    "discrete_gaussian",
    "discrete_laplace",
    "geometric",
    "TOTAL_VARIATION",
]
