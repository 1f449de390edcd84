r"""Data-dependent accounting: what the votes as they fell cost, which is itself a secret.

Where teachers agree, a noisy vote reveals less than its worst case. The functions here bound the Rényi divergence of
the release on *this* data set from the release on any neighbour (PATE18), query by query. Their values depend on the
votes and come as :class:`~quorate.types.Secret` arrays ``(n_queries, n_orders)``: they may be summed and compared on
the private side, and only :func:`release_total` lets a figure out, with noise scaled to its smooth sensitivity.

**Which definition holds.** A mechanism M has data-dependent RDP :math:`\varepsilon(a)` at the data set D where
:math:`D_a(M(D) \| M(D')) \le \varepsilon(a)` for every neighbour D' of D (PATE18, Thm 6; PATE17 likewise, in moments).
The release on *this* data set stands first: what is bounded is the loss :math:`\log P(o)/P'(o)` of outcomes o as they
come out on it. Converted at δ it says :math:`P(S) \le e^\varepsilon P'(S) + \delta` for every event S. The other
direction, :math:`P'(S) \le e^\varepsilon P(S) + \delta`, is another statement, and no total makes it: :func:`gnmax_rdp`
and :func:`laplace_rdp` do not bound it (it can be several times larger where the vote is nearly unanimous). The bit of
the threshold test alone is bounded in both.

That figure describes; it is not an (ε, δ) guarantee of the labels, and stands beside the guarantee, never instead of
it. A value that is the expectation over random answers is never a guarantee either.

References
----------
PATE18: Papernot, Song, Mironov, Raghunathan, Talwar, Erlingsson (2018), arXiv:1802.08908. PATE17: Papernot, Abadi,
Erlingsson, Goodfellow, Talwar (2017), arXiv:1610.05755.
"""

from quorate.accounting.data_dependent.noisy_max import gnmax_rdp, laplace_rdp, threshold_rdp
from quorate.accounting.data_dependent.smooth import SanitisedTotal, release_rdp, release_total, smooth_sensitivity

__all__ = [
    "gnmax_rdp",
    "threshold_rdp",
    "laplace_rdp",
    "smooth_sensitivity",
    "release_total",
    "release_rdp",
    "SanitisedTotal",
]
