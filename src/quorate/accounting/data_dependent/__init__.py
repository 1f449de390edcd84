r"""Data-dependent accounting: what the votes as they fell cost, which is itself a secret.

Where teachers agree, a noisy vote reveals less than its worst case. The functions here bound the Rényi divergence of
the release on *this* data set from the release on any neighbour (PATE18), query by query. Their values depend on the
votes and come as :class:`~quorate.types.Secret` arrays ``(n_queries, n_orders)``: they may be summed and compared on
the private side, and only :func:`release_total` lets a figure out, with noise scaled to its smooth sensitivity.

That figure describes; it is not an (ε, δ) guarantee of the labels, and stands beside the guarantee, never instead of
it. A value that is the expectation over random answers is never a guarantee either.

References
----------
PATE18: Papernot, Song, Mironov, Raghunathan, Talwar, Erlingsson (2018), arXiv:1802.08908. PATE17: Papernot, Abadi,
Erlingsson, Goodfellow, Talwar (2017), arXiv:1610.05755.
"""

from quorate.accounting.data_dependent.noisy_max import gnmax_rdp, laplace_rdp
from quorate.accounting.data_dependent.sanitised import SanitisedTotal, release_rdp, release_total
from quorate.accounting.data_dependent.smooth import smooth_sensitivity
from quorate.accounting.data_dependent.threshold import threshold_rdp

__all__ = [
    "gnmax_rdp",
    "threshold_rdp",
    "laplace_rdp",
    "smooth_sensitivity",
    "release_total",
    "release_rdp",
    "SanitisedTotal",
]
