r"""Table 1 of LZCW21: excess error of four PATE algorithms in three settings, up to constants and logarithms.

Every entry is the larger of a term in the private rows n and one in the public points m, for the best number of
teachers and of points that are labelled; beside the best hypothesis, whose error has the factor 13 in one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Final, Literal, TypeAlias

from quorate.arguments import count, one_of, real
from quorate.errors import InvalidParameter

#: Columns of the table: the Gaussian mechanism (PATE18), the sparse vector as analysed by BTT18 and by LZCW21, and
#: active learning.
Algorithm: TypeAlias = Literal["gaussian", "svt-btt18", "svt-lzcw21", "active"]
#: Rows of the table; "agnostic" against the best hypothesis.
Setting: TypeAlias = Literal["realizable", "tnc", "agnostic"]

ALGORITHMS: Final[tuple[Algorithm, ...]] = ("gaussian", "svt-btt18", "svt-lzcw21", "active")
SETTINGS: Final[tuple[Setting, ...]] = ("realizable", "tnc", "agnostic")


@dataclass(frozen=True, kw_only=True, slots=True)
class Table1Rate:
    """One entry of the table.

    Parameters
    ----------
    private : float
        The term that falls with the private rows.
    public : float
        The term that falls with the public points.
    best_error_factor : float
        What the error of the best hypothesis is multiplied by before the excess is counted from it: 13, or 1.

    Examples
    --------
    >>> Table1Rate(private=0.02, public=0.01, best_error_factor=1.0).excess
    0.02
    """

    private: float
    public: float
    best_error_factor: float

    @property
    def excess(self) -> float:
        """The larger of the two terms."""
        return max(self.private, self.public)

    def error(self, best_error: float) -> float:
        """Return the factor times Err(h*), and the excess.

        Examples
        --------
        >>> Table1Rate(private=0.02, public=0.01, best_error_factor=13.0).error(0.01)
        0.15
        """
        return self.best_error_factor * real("best_error", best_error, at_least=0, at_most=1) + self.excess


#: Every private term is a power of :math:`d^{3/2}\theta^{1/2}/(n\varepsilon)`: these are its powers, as functions of τ.
_POWERS: Final[dict[str, Callable[[float], float]]] = {
    "2τ/(4−τ)": lambda tau: 2 * tau / (4 - tau),
    "τ/(2−τ)": lambda tau: tau / (2 - tau),
    "2/5": lambda _: 2 / 5,
    "2/3": lambda _: 2 / 3,
}
# For each entry: the power, whether the public term is the root of d/m, and the factor of the best error.
_ENTRIES: Final[dict[tuple[str, str], tuple[str, bool, float]]] = {
    ("realizable", "gaussian"): ("2/3", False, 1.0),
    ("realizable", "svt-btt18"): ("2/3", True, 1.0),
    ("realizable", "svt-lzcw21"): ("τ/(2−τ)", False, 1.0),
    ("realizable", "active"): ("τ/(2−τ)", False, 1.0),
    ("tnc", "gaussian"): ("2τ/(4−τ)", False, 1.0),
    ("tnc", "svt-btt18"): ("2/5", True, 13.0),  # "same as agnostic"
    ("tnc", "svt-lzcw21"): ("τ/(2−τ)", False, 1.0),
    ("tnc", "active"): ("τ/(2−τ)", False, 1.0),
    ("agnostic", "svt-btt18"): ("2/5", True, 13.0),
}


def lzcw21_table_1_shape(
    algorithm: Algorithm,
    setting: Setting,
    *,
    n_rows: int,
    n_public: int,
    vc_dimension: int,
    epsilon: float,
    tau: float = 1.0,
    theta: float = 1.0,
) -> Table1Rate:
    r"""Return one entry of Table 1.

    ============ ============================================== ===================================================
    setting      algorithm                                      excess error
    ============ ============================================== ===================================================
    realizable   gaussian                                       :math:`d/(n\varepsilon)^{2/3} \vee d/m`
    realizable   svt-btt18                                      :math:`d/(n\varepsilon)^{2/3} \vee \sqrt{d/m}`
    realizable   svt-lzcw21                                     :math:`d^{3/2}/(n\varepsilon) \vee d/m`
    realizable   active                                         :math:`d^{3/2}\theta^{1/2}/(n\varepsilon) \vee d/m`
    tnc          gaussian                                       :math:`(d^{3/2}/(n\varepsilon))^{2\tau/(4-\tau)} \vee d/m`
    tnc          svt-lzcw21                                     :math:`(d^{3/2}/(n\varepsilon))^{\tau/(2-\tau)} \vee d/m`
    tnc          active                                         :math:`(d^{3/2}\theta^{1/2}/(n\varepsilon))^{\tau/(2-\tau)} \vee d/m`
    agnostic     svt-btt18 (and tnc)                            :math:`13Err(h^*) + d^{3/5}/(n\varepsilon)^{2/5} \vee \sqrt{d/m}`
    ============ ============================================== ===================================================

    Parameters
    ----------
    algorithm : {"gaussian", "svt-btt18", "svt-lzcw21", "active"}
        PATE with the Gaussian mechanism; with a sparse vector, as BTT18 and as LZCW21 analyse it; with active queries.
    setting : {"realizable", "tnc", "agnostic"}
        Whether some hypothesis is the truth; the Tsybakov noise condition holds; or neither.
    n_rows, n_public, vc_dimension : int
        n, m and d, each at least 1.
    epsilon : float
        ε > 0, in the table below log(1/δ).
    tau : float, default 1.0
        τ in (0, 1] of the noise condition; the other settings have none.
    theta : float, default 1.0
        θ ≥ 1, the disagreement coefficient.

    Raises
    ------
    InvalidParameter
        If an argument is out of range, or the table has no rate: in the agnostic setting all algorithms but one may
        stay away from the best hypothesis by a multiple of its error (:func:`~quorate.theory.lzcw21_voting.lzcw21_example_1`).

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang), Table 1. Its last row, against the infinite ensemble, says "consistent under
    weaker conditions" and is :func:`~quorate.theory.lzcw21_bounds.lzcw21_theorem_19_shape`.

    Examples
    --------
    >>> lzcw21_table_1_shape("gaussian", "realizable", n_rows=10**6, n_public=10**4, vc_dimension=8, epsilon=1.0).excess
    0.0008...
    >>> lzcw21_table_1_shape("active", "agnostic", n_rows=10**6, n_public=10**4, vc_dimension=8, epsilon=1.0)
    Traceback (most recent call last):
    quorate.errors.InvalidParameter: setting: Table 1 has no rate for "active" in the agnostic setting, where its error may stay a multiple of the best; choose "realizable" or "tnc"
    """  # noqa: E501  formulas and messages are one line
    algorithm, setting = one_of("algorithm", algorithm, ALGORITHMS), one_of("setting", setting, SETTINGS)  # type: ignore[assignment]
    n, m = count("n_rows", n_rows, at_least=1), count("n_public", n_public, at_least=1)
    d, epsilon = count("vc_dimension", vc_dimension, at_least=1), real("epsilon", epsilon, above=0)
    tau, theta = real("tau", tau, above=0, at_most=1), real("theta", theta, at_least=1)
    entry = _ENTRIES.get((setting, algorithm))
    if entry is None:
        raise InvalidParameter(
            f'setting: Table 1 has no rate for "{algorithm}" in the agnostic setting, where its error may stay a '
            'multiple of the best; choose "realizable" or "tnc"'
        )
    power, rooted, factor = entry
    base = d**1.5 * sqrt(theta if algorithm == "active" else 1.0) / (n * epsilon)
    private = base ** _POWERS[power](tau if setting == "tnc" else 1.0)
    return Table1Rate(private=private, public=sqrt(d / m) if rooted else d / m, best_error_factor=factor)
