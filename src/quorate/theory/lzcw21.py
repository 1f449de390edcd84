r"""How far from the best classifier the student of Liu, Zhu, Chaudhuri and Wang ends: the theorems of LZCW21.

Theorems 5, 10, 19, 20, 22 and 28, Remark 12, Table 1, and Examples 1 and 2, where a vote is worse and where it is
better than the voters. n private rows, m public points, d the VC dimension, ℓ answers that are paid for, θ the
disagreement coefficient, τ the exponent of the Tsybakov noise condition. A name that ends in ``_shape`` returns an
expression that the paper gives up to constants and logarithms, with constant 1 and none of them, unless it prints one.
Nothing is rounded. Where a printed statement is false, a function beside it holds, with its proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import comb, e, exp, log, sqrt
from typing import Final, Literal, TypeAlias

from quorate.arguments import count, one_of, real
from quorate.errors import InvalidParameter
from quorate.theory.symbols import REAL_CUTOFF, number, statement, unchecked


@statement("LZCW21, Theorems 5 and 10", cutoff=number("T ≥ 1, the cut-off", at_least=1))
def lzcw21_teachers_shape(cutoff: float, n_queries: int, epsilon: float, delta: float, beta: float) -> float:
    r"""Return the K of Theorems 5 and 10: :math:`\log(mT/\min(\delta, \beta))\sqrt{T\log(1/\delta)}/\varepsilon`.

    :func:`~quorate.theory.lzcw21_cutoff.lzcw21_lemma_3` has the constants.
    """
    return log(n_queries * cutoff / min(delta, beta)) * sqrt(cutoff * log(1 / delta)) / epsilon


@statement("LZCW21, Theorem 5")
def lzcw21_theorem_5_realizable_shape(
    n_rows: int, n_queries: int, vc_dimension: int, epsilon: float, delta: float
) -> float:
    r"""Return the error in the realizable case: :math:`\frac{d^2m\log(1/\delta)}{n^2\varepsilon^2} + \sqrt{d/m}`."""
    n, m, d = n_rows, n_queries, vc_dimension
    return d**2 * m * log(1 / delta) / (n * epsilon) ** 2 + sqrt(d / m)


@statement("LZCW21, Theorem 5")
def lzcw21_theorem_5_agnostic_shape(
    n_rows: int, n_queries: int, vc_dimension: int, epsilon: float, best_error: float
) -> float:
    r"""Return the error in the agnostic case: :math:`13Err(h^*) + \frac{m^{1/3}d^{2/3}}{n^{2/3}\varepsilon^{2/3}} + \sqrt{d/m}`.

    The factor 13 is as printed.
    """  # noqa: E501  a formula is one line
    n, m, d = n_rows, n_queries, vc_dimension
    return 13 * best_error + float(m ** (1 / 3) * (d / (n * epsilon)) ** (2 / 3)) + sqrt(d / m)


@statement("LZCW21, Theorem 10")
def lzcw21_theorem_10_cutoff_shape(n_rows: int, n_queries: int, vc_dimension: int, epsilon: float, tau: float) -> float:
    r"""Return the cut-off of Theorem 10: :math:`T = \left(\frac{m^{2-\tau}d^\tau}{n^\tau\varepsilon^\tau}\right)^{2/(4-3\tau)}`."""  # noqa: E501
    n, m, d = n_rows, n_queries, vc_dimension
    return float((m ** (2 - tau) * (d / (n * epsilon)) ** tau) ** (2 / (4 - 3 * tau)))


@statement("LZCW21, Theorem 10")
def lzcw21_theorem_10_shape(n_rows: int, n_queries: int, vc_dimension: int, epsilon: float, tau: float) -> float:
    r"""Return the excess error of PATE-PSQ under τ-TNC: :math:`\frac dm + \left(\frac{md^2}{n^2\varepsilon^2}\right)^{\tau/(4-3\tau)}`.

    Of :math:`Err(\hat h^S) - Err(h^*)`. The second term is T/m for the T of :func:`lzcw21_theorem_10_cutoff_shape`.
    """  # noqa: E501  a formula is one line
    n, m, d = n_rows, n_queries, vc_dimension
    return d / m + float((m * (d / (n * epsilon)) ** 2) ** (tau / (4 - 3 * tau)))


@statement("LZCW21, Remark 12")
def lzcw21_remark_12_queries(n_rows: int, vc_dimension: int, epsilon: float, tau: float) -> float:
    r"""Return how many public points to label: :math:`m^* = (d^{4-5\tau}n^{2\tau}\varepsilon^{2\tau})^{1/(4-2\tau)}`.

    Here the two terms of Theorem 10 are equal. The remark says that it minimises their sum; for τ < 1 that is
    :func:`lzcw21_remark_12_minimiser`, which is larger, and makes the sum smaller by a factor of at most 2.
    """
    n, d = n_rows, vc_dimension
    return float((d ** (4 - 5 * tau) * (n * epsilon) ** (2 * tau)) ** (1 / (4 - 2 * tau)))


@statement("LZCW21, Remark 12, carried out")
def lzcw21_remark_12_minimiser(n_rows: int, vc_dimension: int, epsilon: float, tau: float) -> float:
    r"""Return the m at which the bound of Theorem 10 is least: :math:`m^*\,p^{-1/(1+p)}`, :math:`p = \tau/(4-3\tau)`.

    Proof. The bound is :math:`d/m + cm^p`, least at :math:`m^{1+p} = d/(pc)`, and :math:`(m^*)^{1+p} = d/c`.
    """
    balanced = lzcw21_remark_12_queries(n_rows, vc_dimension, epsilon, tau)
    p = tau / (4 - 3 * tau)
    return float(balanced * p ** (-1 / (1 + p)))


@statement(
    "LZCW21, Theorem 19 (Theorem 31)",
    best_disagreement=number("the least Dis(h, h^agg) of H, in [0, 1]", at_least=0, at_most=1),
    cutoff=REAL_CUTOFF,
)
def lzcw21_theorem_19_shape(best_disagreement: float, cutoff: float, n_queries: int, vc_dimension: int) -> float:
    r"""Return the error above the infinite ensemble's: :math:`\min_h Dis(h, h^{agg}_\infty) + 2T/m + \sqrt{d/m}`.

    With probability at least 1 − 2γ; the first two terms are as printed. As printed it asks for the K of Proposition
    18, and for ε ≤ log(2/δ); with the K of
    :func:`~quorate.theory.lzcw21_cutoff.lzcw21_proposition_18_teachers_by_distance` it holds. Its second line has ν in
    place of T/m: a :math:`\sqrt{\nu/m}`, which is hidden with the rest.
    """
    return best_disagreement + 2 * cutoff / n_queries + sqrt(vc_dimension / n_queries)


@statement("LZCW21, Theorem 20 (Theorem 32)", cutoff=REAL_CUTOFF)
def lzcw21_theorem_20(cutoff: float, n_queries: int, n_teachers: int, vc_dimension: int, gamma: float) -> float:
    r"""Return the error of a student that votes above the infinite ensemble's: :math:`\frac{4T}m + \frac{5(Kd + \log(4/\gamma))}m`, as printed.

    With probability 1 − 2γ, for the T of Proposition 18.

    It rests on two things that are false, and :func:`lzcw21_theorem_20_by_growth` on neither. *VC(Vote_K(H)) ≤ Kd:* the
    sets ∅, {1}, …, {5}, {12}, {23}, {34}, {45}, {51}, {123} have VC dimension 2, and the votes of two of them, ties to
    1, are all subsets of five points. *Lemma 36* has d where the logarithm of the growth function belongs: of 14,800
    equally likely points some 131 are not among n = 70,000 draws, and nearly always 100 or more; so a set of 100
    points, of probability 0.0067, is not hit, and the lemma says that for the class of these sets (d = 100) it is
    at most 0.0060, but for γ = 0.05. (Also :math:`h^{agg}_\infty` need not be a vote of K hypotheses, as the proof takes
    it to be.)
    """  # noqa: E501  a formula is one line
    return 4 * cutoff / n_queries + 5 * (n_teachers * vc_dimension + log(4 / gamma)) / n_queries


@statement("LZCW21, Theorem 20, with the growth function in place of Kd", cutoff=REAL_CUTOFF)
def lzcw21_theorem_20_by_growth(
    cutoff: float, n_queries: int, n_teachers: int, vc_dimension: int, gamma: float
) -> float:
    r"""Return a bound that holds for such a student: :math:`\frac{4T}m + \frac{5(Kd\log(2em/d) + \log(4/\gamma))}m`.

    With probability 1 − 2γ, for 2m ≥ d and a T such that Algorithm 2 answers all but at most T of the m points, and so
    that its answers are :math:`h^{agg}_\infty` on all but those, but for a probability γ.

    Proof. Write D for Dis, D̂ for its average on the m points, S for the growth function of :math:`Vote_K(H)`; on 2m
    points K votes make at most :math:`\Pi_H(2m)^K \le (2em/d)^{Kd}` dichotomies. By Vapnik's relative deviations
    (Boucheron, Bousquet, Lugosi 2005, Corollary 5.2), with :math:`A = (\log S(2m) + \log(4/\gamma))/m`, every h of the
    class has :math:`D(h, h_\infty) \le \hat D + 2\sqrt{\hat DA} + 4A \le 2\hat D + 5A`, but for γ. The student
    minimises :math:`\hat D(\cdot, y)`, y the released labels, and the teachers' own vote is in the class and differs
    from y on at most the T points that were not answered; so
    :math:`\hat D(h^S, h_\infty) \le \hat D(h^S, y) + \hat D(y, h_\infty) \le 2T/m`.
    """
    m, d = n_queries, vc_dimension
    return 4 * cutoff / m + 5 * (n_teachers * d * log(max(2 * e * m / d, e)) + log(4 / gamma)) / m


@statement("LZCW21, Theorem 28")
def lzcw21_theorem_28_shape(n_rows: int, n_queries: int, vc_dimension: int, epsilon: float, tau: float) -> float:
    r"""Return the excess error of PATE by the Gaussian mechanism: :math:`\frac dm + \left(\frac{d\sqrt m}{n\varepsilon}\right)^{\tau/(2-\tau)}`.

    For the K of :func:`lzcw21_gaussian_teachers` with ℓ = m. At τ = 1 it asks for
    :math:`n = d^{3/2}/(\varepsilon\alpha^{3/2})` private rows; the second of the paper's contributions says
    :math:`d^{3/2}/(\varepsilon\alpha)`, which neither this nor Table 1 gives.
    """  # noqa: E501  a formula is one line
    n, m, d = n_rows, n_queries, vc_dimension
    return d / m + float((d * sqrt(m) / (n * epsilon)) ** (tau / (2 - tau)))


@statement("LZCW21, Theorem 22 (34) and Theorem 28")
def lzcw21_gaussian_teachers(n_rows: int, n_answers: int, epsilon: float, delta: float) -> float:
    r"""Return the teachers of Theorems 22 and 28; ℓ is m in Theorem 28, where all points are labelled.

    .. math:: K = \frac{6\sqrt{\log(2n)}\left(\sqrt{\ell\log(1/\delta)} + \sqrt{\ell\log(1/\delta) + \varepsilon\ell}\right)}
              {\varepsilon}

    It is :math:`6\sigma\sqrt{2\log(2n)}` for the σ of Algorithm 1, so that the noise passes K/6 with probability 1/n at
    most, and a query on which more than two thirds of the teachers agree is answered by them.
    """  # noqa: E501  a formula is one line
    room = n_answers * log(1 / delta)
    return 6 * sqrt(log(2 * n_rows)) * (sqrt(room) + sqrt(room + epsilon * n_answers)) / epsilon


@statement(
    "LZCW21, Theorem 22, after Hanneke (2014), Theorem 5.4",
    alpha=number("α in (0, 1/2], where no logarithm in it is negative", above=0, at_most=0.5),
)
def lzcw21_answers_shape(theta: float, alpha: float, vc_dimension: int, gamma: float) -> float:
    r"""Return how many labels the active student asks for, up to a constant.

    .. math:: \ell = \theta(\alpha)\left(1 + \log\frac1\alpha\right)
              \left(d\log\theta(\alpha) + \log\frac{\log(1/\alpha)}{\gamma/2}\right)
    """
    doubt = log(1 / alpha)
    return theta * (1 + doubt) * (vc_dimension * log(theta) + log(doubt / (gamma / 2)))


@statement("LZCW21, Theorem 22")
def lzcw21_theorem_22_alpha_shape(
    n_rows: int, n_public: int, n_teachers: int, vc_dimension: int, tau: float, gamma: float, eta: float = 1.0
) -> float:
    r"""Return the least α of Theorem 22, up to a constant; n ≥ d.

    .. math:: \max\left\{\eta^{\frac2{2-\tau}}\left(\frac{dK\log(n/d)+\log(2K/\gamma)}n\right)^{\frac\tau{2-\tau}},\
              \frac{d\log((m+n)/d)+\log(2/\gamma)}m\right\}

    K depends on ℓ, and ℓ on α: the three are solved for together. :func:`lzcw21_theorem_22_shape` has the solution.
    """
    m, k, d = n_public, n_teachers, vc_dimension
    n = count("n_rows", n_rows, at_least=d)
    teachers = ((d * k * log(n / d) + log(2 * k / gamma)) / n) ** (tau / (2 - tau))
    teachers *= eta ** (2 / (2 - tau))
    return float(max(teachers, (d * log((m + n) / d) + log(2 / gamma)) / m))


@statement("LZCW21, Theorem 22", epsilon=unchecked("ε > 0 of the guarantee, and at most log(1/δ)"))
def lzcw21_theorem_22_shape(
    n_rows: int, n_public: int, vc_dimension: int, epsilon: float, delta: float, tau: float, theta: float
) -> float:
    r"""Return the excess error of PATE-ASQ: :math:`\max\left\{\left(\frac{d^{1.5}\sqrt{\theta\log(1/\delta)}}{n\varepsilon}\right)^{\frac\tau{2-\tau}}, \frac dm\right\}`."""  # noqa: E501
    n, m, d = n_rows, n_public, vc_dimension
    epsilon = real("epsilon", epsilon, above=0, at_most=log(1 / delta))
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

    `private`: the term that falls with the private rows. `public`: the term that falls with the public points.
    `best_error_factor`: what the error of the best hypothesis is multiplied by before the excess is counted from it:
    13, or 1.
    """

    private: float
    public: float
    best_error_factor: float

    @property
    def excess(self) -> float:
        """The larger of the two terms."""
        return max(self.private, self.public)

    def error(self, best_error: float) -> float:
        """Return the factor times Err(h*), which is in [0, 1], and the excess."""
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


@statement(
    "LZCW21, Table 1",
    algorithm=unchecked(
        'PATE with the Gaussian mechanism ("gaussian"), with a sparse vector as BTT18 or as LZCW21 analyses it '
        '("svt-btt18", "svt-lzcw21"), or with active queries ("active")'
    ),
    setting=unchecked(
        'whether some hypothesis is the truth ("realizable"), the Tsybakov noise condition holds ("tnc"), or neither '
        '("agnostic")'
    ),
)
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
    r"""Return one entry of Table 1: the larger of a term in the private rows and one in the public points.

    It is for the best number of teachers and of points that are labelled, and ε below log(1/δ). Where the table has no
    rate, :class:`~quorate.errors.InvalidParameter` is raised: in the agnostic setting all algorithms but one may stay
    away from the best hypothesis by a multiple of its error (:func:`lzcw21_example_1`). Its last row, against the
    infinite ensemble, says "consistent under weaker conditions" and is :func:`lzcw21_theorem_19_shape`.

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
    """  # noqa: E501  formulas are one line
    algorithm, setting = one_of("algorithm", algorithm, ALGORITHMS), one_of("setting", setting, SETTINGS)  # type: ignore[assignment]
    n, m, d = n_rows, n_public, vc_dimension
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


@statement("LZCW21, Example 1 and Figure 1")
def lzcw21_example_1(n_teachers: int) -> float:
    r"""Return the expected error of a vote in "voting fails"; a tie is answered by 1, as in Algorithm 1.

    Four equally likely points, all labelled 1; three hypotheses say 1 on the first and on one other point each, so each
    errs on half; a teacher is any of the three, with equal probability. The majority is right on the first point, and
    goes wrong on the three others. Exact: 1/2 for one teacher, at least :math:`\frac34(1 - e^{-K/18})`, towards 3/4.

    On each of the three points a teacher says 1 with probability 1/3, so that
    :math:`\frac34\,P(\mathrm{Bin}(K, \tfrac13) < \tfrac K2)` is the error; the bound is Hoeffding's, with
    :math:`\tfrac12 - \tfrac13 = \tfrac16`.
    """
    k = n_teachers
    wrong = sum(comb(k, ones) * 2 ** (k - ones) for ones in range((k + 1) // 2))
    return float(Fraction(3 * wrong, 4 * 3**k))


@statement("LZCW21, Example 2")
def lzcw21_example_2(n_teachers: int, xi: float) -> float:
    r"""Return the bound of "voting wins" on the error of a vote at a point: :math:`e^{-2K\xi^2}`.

    Where each of K independent teachers errs with probability at most 1/2 − ξ.
    """
    return exp(-2 * n_teachers * xi**2)
