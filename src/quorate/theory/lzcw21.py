"""PATE with the Gaussian mechanism and active student queries: Theorem 22 of LZCW21, and the K that it shares with 28.

ℓ answers are paid for, n private rows, m public points, d the VC dimension, θ the disagreement coefficient. A name that
ends in ``_shape`` has constant 1 where the paper leaves one open.

**Table 1 of LZCW21: excess error of four PATE algorithms in three settings, up to constants and logarithms.** Every
entry is the larger of a term in the private rows n and one in the public points m, for the best number of teachers and
of points that are labelled; beside the best hypothesis, whose error has the factor 13 in one of them.

**Where a vote is worse than the voters, and where it is better: Examples 1 and 2 of LZCW21.**
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import comb, exp, log, sqrt
from typing import Final, Literal, TypeAlias

from quorate.arguments import count, one_of, real
from quorate.errors import InvalidParameter


def lzcw21_gaussian_teachers(n_rows: int, n_answers: int, epsilon: float, delta: float) -> float:
    r"""Return the teachers of Theorems 22 and 28.

    .. math:: K = \frac{6\sqrt{\log(2n)}\left(\sqrt{\ell\log(1/\delta)} + \sqrt{\ell\log(1/\delta) + \varepsilon\ell}\right)}
              {\varepsilon}

    Parameters
    ----------
    n_rows, n_answers : int
        n ≥ 1 and ℓ ≥ 1 (m in Theorem 28, where all points are labelled).
    epsilon : float
        ε > 0.
    delta : float
        δ in (0, 1).

    Returns
    -------
    float
        K, not rounded.

    Notes
    -----
    It is :math:`6\sigma\sqrt{2\log(2n)}` for the σ of Algorithm 1, so that the noise passes K/6 with probability 1/n at
    most, and a query on which more than two thirds of the teachers agree is answered by them.

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang), Theorem 22 (34) and Theorem 28.

    Examples
    --------
    >>> round(lzcw21_gaussian_teachers(39_073, 293, 1.0, 1 / 39_073))
    2294
    """  # noqa: E501  a formula is one line
    n_rows, n_answers = count("n_rows", n_rows, at_least=1), count("n_answers", n_answers, at_least=1)
    epsilon, delta = real("epsilon", epsilon, above=0), real("delta", delta, above=0, below=1)
    room = n_answers * log(1 / delta)
    return 6 * sqrt(log(2 * n_rows)) * (sqrt(room) + sqrt(room + epsilon * n_answers)) / epsilon


def lzcw21_answers_shape(theta: float, alpha: float, vc_dimension: int, gamma: float) -> float:
    r"""Return how many labels the active student asks for, up to a constant.

    .. math:: \ell = \theta(\alpha)\left(1 + \log\frac1\alpha\right)
              \left(d\log\theta(\alpha) + \log\frac{\log(1/\alpha)}{\gamma/2}\right)

    Parameters
    ----------
    theta : float
        θ(α) ≥ 1, the disagreement coefficient at α.
    alpha : float
        α in (0, 1/2], where no logarithm in it is negative.
    vc_dimension : int
        d ≥ 1.
    gamma : float
        γ in (0, 1).

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang), Theorem 22, after Hanneke (2014), Theorem 5.4.

    Examples
    --------
    >>> round(lzcw21_answers_shape(2.0, 0.01, 1, 0.05), 1)
    66.2
    """
    theta, alpha = real("theta", theta, at_least=1), real("alpha", alpha, above=0, at_most=0.5)
    vc, gamma = count("vc_dimension", vc_dimension, at_least=1), real("gamma", gamma, above=0, below=1)
    doubt = log(1 / alpha)
    return theta * (1 + doubt) * (vc * log(theta) + log(doubt / (gamma / 2)))


def lzcw21_theorem_22_alpha_shape(
    n_rows: int, n_public: int, n_teachers: int, vc_dimension: int, tau: float, gamma: float, eta: float = 1.0
) -> float:
    r"""Return the least α of Theorem 22, up to a constant.

    .. math:: \max\left\{\eta^{\frac2{2-\tau}}\left(\frac{dK\log(n/d)+\log(2K/\gamma)}n\right)^{\frac\tau{2-\tau}},\
              \frac{d\log((m+n)/d)+\log(2/\gamma)}m\right\}

    Parameters
    ----------
    n_rows, n_public, n_teachers, vc_dimension : int
        n, m, K and d, each at least 1, and n ≥ d.
    tau : float
        τ in (0, 1].
    gamma : float
        γ in (0, 1).
    eta : float, default 1.0
        η ≥ 1 of the noise condition.

    Notes
    -----
    K depends on ℓ, and ℓ on α: the three are solved for together. :func:`lzcw21_theorem_22_shape` has the solution.

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang), Theorem 22.

    Examples
    --------
    >>> round(lzcw21_theorem_22_alpha_shape(100_000, 10_000, 100, 4, 1.0, 0.05), 4)
    0.0406
    """
    n, m = count("n_rows", n_rows, at_least=1), count("n_public", n_public, at_least=1)
    k, d = count("n_teachers", n_teachers, at_least=1), count("vc_dimension", vc_dimension, at_least=1)
    n = count("n_rows", n, at_least=d)
    tau, gamma = real("tau", tau, above=0, at_most=1), real("gamma", gamma, above=0, below=1)
    teachers = ((d * k * log(n / d) + log(2 * k / gamma)) / n) ** (tau / (2 - tau))
    teachers *= real("eta", eta, at_least=1) ** (2 / (2 - tau))
    return float(max(teachers, (d * log((m + n) / d) + log(2 / gamma)) / m))


def lzcw21_theorem_22_shape(
    n_rows: int, n_public: int, vc_dimension: int, epsilon: float, delta: float, tau: float, theta: float
) -> float:
    r"""Return the excess error of PATE-ASQ: :math:`\max\left\{\left(\frac{d^{1.5}\sqrt{\theta\log(1/\delta)}}{n\varepsilon}\right)^{\frac\tau{2-\tau}}, \frac dm\right\}`.

    Parameters
    ----------
    n_rows, n_public, vc_dimension : int
        n, m and d, each at least 1.
    epsilon : float
        ε > 0, and at most log(1/δ).
    delta : float
        δ in (0, 1).
    tau : float
        τ in (0, 1].
    theta : float
        θ(α) ≥ 1.

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang), Theorem 22.

    Examples
    --------
    >>> round(lzcw21_theorem_22_shape(100_000, 10_000, 4, 1.0, 1e-5, 1.0, 2.0), 6)
    0.0004
    """  # noqa: E501  a formula is one line
    n, m = count("n_rows", n_rows, at_least=1), count("n_public", n_public, at_least=1)
    d, delta = count("vc_dimension", vc_dimension, at_least=1), real("delta", delta, above=0, below=1)
    epsilon = real("epsilon", epsilon, above=0, at_most=log(1 / delta))
    tau, theta = real("tau", tau, above=0, at_most=1), real("theta", theta, at_least=1)
    private = (d**1.5 * sqrt(theta * log(1 / delta)) / (n * epsilon)) ** (tau / (2 - tau))
    return float(max(private, d / m))


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
        stay away from the best hypothesis by a multiple of its error (:func:`~quorate.theory.lzcw21.lzcw21_example_1`).

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


def lzcw21_example_1(n_teachers: int) -> float:
    r"""Return the expected error of a vote in "voting fails".

    Four equally likely points, all labelled 1; three hypotheses say 1 on the first and on one other point each, so each
    errs on half; a teacher is any of the three, with equal probability. The majority is right on the first point, and
    goes wrong on the three others.

    Parameters
    ----------
    n_teachers : int
        K ≥ 1. A tie is answered by 1, as in Algorithm 1.

    Returns
    -------
    float
        Exact: 1/2 for one teacher, and at least :math:`\frac34(1 - e^{-K/18})`, towards 3/4.

    Notes
    -----
    On each of the three points a teacher says 1 with probability 1/3, so that
    :math:`\frac34\,P(\mathrm{Bin}(K, \tfrac13) < \tfrac K2)` is the error; the bound is Hoeffding's, with
    :math:`\tfrac12 - \tfrac13 = \tfrac16`.

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang), Example 1 and Figure 1.

    Examples
    --------
    >>> lzcw21_example_1(1), round(lzcw21_example_1(101), 5)
    (0.5, 0.7498)
    """
    k = count("n_teachers", n_teachers, at_least=1)
    wrong = sum(comb(k, ones) * 2 ** (k - ones) for ones in range((k + 1) // 2))
    return float(Fraction(3 * wrong, 4 * 3**k))


def lzcw21_example_2(n_teachers: int, xi: float) -> float:
    r"""Return the bound of "voting wins" on the error of a vote at a point: :math:`e^{-2K\xi^2}`.

    Where each of K independent teachers errs with probability at most 1/2 − ξ.

    Parameters
    ----------
    n_teachers : int
        K ≥ 1.
    xi : float
        ξ in (0, 1/2].

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang), Example 2.

    Examples
    --------
    >>> round(lzcw21_example_2(250, 0.1), 5)
    0.00674
    """
    return exp(-2 * count("n_teachers", n_teachers, at_least=1) * real("xi", xi, above=0, at_most=0.5) ** 2)
