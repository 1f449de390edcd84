r"""Exact privacy of learners on tiny data: every data set, every neighbour, every random choice, none of it sampled.

A learner is given as its output law, ``law(points, labels) -> {outcome: probability}``: `points` is
``(n, n_features)``, `labels` is ``(n,)`` int8 with −1 for a row without a label, an outcome is anything hashable (a
frozen concept, a tuple of labels). Laws are written by walking through all random choices, from the parts below:

- :func:`exponential`, :func:`permute_and_flip`: the laws of the two mechanisms over a list of integer scores;
- :func:`uniform_subsets`, :func:`uniform_orders`, :func:`uniform_draws`: the three ways to sample rows, with weights;
- :func:`mixture`: the law of "draw this, then do that".

:func:`true_epsilon` and :func:`true_delta` then go through all neighbouring data sets made of the given records, and
return the largest privacy loss with the pair that has it. :func:`p_value` holds a sampler against its law.

Numbers are of 50 digits (:data:`EXACT`): a loss of 0 comes out as less than 1e-40, never as a float's rounding.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement, permutations, product
from math import comb, factorial
from typing import Any

import numpy as np
from mpmath.ctx_mp import MPContext
from scipy.stats import chisquare

EXACT = MPContext()
EXACT.dps = 50
TINY = EXACT.mpf(10) ** -40

Outcome = Hashable
Law = dict[Outcome, Any]  # outcome -> mpf, or Fraction where no exponential enters
Record = tuple[tuple[int, ...] | int, int]  # (point, label); label −1 for none
LawOfData = Callable[[Any, Any], Mapping[Outcome, Any]]


def exact(value: Any) -> Any:
    """Take an int, a Fraction or a float (as the dyadic number that it is) to 50 digits."""
    if isinstance(value, Fraction):
        return EXACT.mpf(value.numerator) / value.denominator
    return EXACT.mpf(value)


@cache
def exp(exponent: Fraction) -> Any:
    """e to a rational, to 50 digits."""
    return EXACT.exp(exact(exponent))


def exponential(scores: Sequence[int], epsilon: float, sensitivity: float = 1) -> list[Any]:
    """The exponential mechanism's probabilities: proportional to exp(ε score / 2Δ)."""
    rate = Fraction(epsilon) / (2 * Fraction(sensitivity))
    best = max(scores)
    weights = [exp(rate * (int(score) - int(best))) for score in scores]
    total = EXACT.fsum(weights)
    return [weight / total for weight in weights]


def permute_and_flip(scores: Sequence[int], epsilon: float, sensitivity: float = 1) -> list[Any]:
    r"""Permute-and-flip's probabilities: :math:`p_i \int_0^1 \prod_{j \ne i} (1 - t p_j) dt`, term by term.

    In a random order, candidate i is visited at a uniform time t and chosen if its coin :math:`p_i` says so and none
    of the candidates before it had a coin that did.
    """
    rate = Fraction(epsilon) / (2 * Fraction(sensitivity))
    best = max(scores)
    coins = [exp(rate * (int(score) - int(best))) for score in scores]

    @cache
    def chance(kind: Any) -> Any:
        polynomial = [EXACT.mpf(1)]
        rivals = list(coins)
        rivals.remove(kind)
        for coin in rivals:
            shifted = [EXACT.mpf(0), *(-coin * c for c in polynomial)]
            polynomial = [a + b for a, b in zip([*polynomial, EXACT.mpf(0)], shifted, strict=True)]
        return kind * EXACT.fsum(c / (power + 1) for power, c in enumerate(polynomial))

    return [chance(coin) for coin in coins]


def uniform_subsets(n: int, size: int) -> Iterator[tuple[Fraction, tuple[int, ...]]]:
    """All subsets of `size` of n indices, increasing, each with its weight."""
    weight = Fraction(1, comb(n, size))
    return ((weight, chosen) for chosen in combinations(range(n), size))


def uniform_orders(n: int, size: int | None = None) -> Iterator[tuple[Fraction, tuple[int, ...]]]:
    """All arrangements of `size` of n indices without replacement; all of them by default."""
    size = n if size is None else size
    weight = Fraction(factorial(n - size), factorial(n))
    return ((weight, chosen) for chosen in permutations(range(n), size))


def uniform_draws(n: int, size: int) -> Iterator[tuple[Fraction, tuple[int, ...]]]:
    """All sequences of `size` of n indices, drawn with replacement."""
    weight = Fraction(1, n**size)
    return ((weight, chosen) for chosen in product(range(n), repeat=size))


def mixture(parts: Iterable[tuple[Any, Mapping[Outcome, Any]]]) -> Law:
    """The law of a draw whose law depends on an earlier draw: Σ weight × law."""
    total: Law = {}
    for weight, law in parts:
        scale = exact(weight)
        for outcome, probability in law.items():
            total[outcome] = total.get(outcome, 0) + scale * exact(probability)
    return total


def law_of(outcomes: Sequence[Outcome], probabilities: Sequence[Any]) -> Law:
    """The law of an outcome chosen by index; equal outcomes add up."""
    return mixture((probability, {outcome: 1}) for outcome, probability in zip(outcomes, probabilities, strict=True))


@dataclass(frozen=True)
class Part:
    """Rows that may be exchanged for any of these records, and for no others: the labelled ones, for instance."""

    records: tuple[Record, ...]
    n: int


def labelled(points: Iterable[Any], n: int, labels: Sequence[int] = (0, 1)) -> Part:
    """`n` rows, each with any of the points and any of the labels."""
    return Part(tuple((point, label) for point in points for label in labels), n)


def unlabelled(points: Iterable[Any], n: int) -> Part:
    """`n` rows without labels."""
    return labelled(points, n, (-1,))


Rows = tuple[Record, ...]


def neighbouring(*parts: Part, ordered: bool = False) -> Iterator[tuple[Rows, Rows]]:
    """Every pair of data sets that differ in one row.

    Parameters
    ----------
    *parts : Part
        The rows come part by part. A row changes within its part.
    ordered : bool, default False
        Whether the learner looks at the order of rows within a part. If not, one order of each data set is enough.
    """
    for place, part in enumerate(parts):
        if not part.n:
            continue
        others = [_data_sets(each, ordered=ordered) for i, each in enumerate(parts) if i != place]
        for rest in product(*others):
            for common in _data_sets(Part(part.records, part.n - 1), ordered=ordered):
                for a, b in combinations(part.records, 2):
                    for at in range(part.n if ordered else 1):
                        pair = []
                        for record in (a, b):
                            rows = list(rest)
                            rows.insert(place, (*common[:at], record, *common[at:]))
                            pair.append(tuple(row for each in rows for row in each))
                        yield pair[0], pair[1]


def _data_sets(part: Part, *, ordered: bool) -> Iterable[Rows]:
    return product(part.records, repeat=part.n) if ordered else combinations_with_replacement(part.records, part.n)


def arrays(rows: Rows) -> tuple[Any, Any]:
    """Points ``(n, n_features)`` int64 and labels ``(n,)`` int8 of a data set."""
    points = np.array([point if isinstance(point, tuple) else (point,) for point, _ in rows], dtype=np.int64)
    return points, np.array([label for _, label in rows], dtype=np.int8)


@dataclass(frozen=True)
class Worst:
    """The largest loss found, and where."""

    value: float
    pair: tuple[Rows, Rows]
    n_pairs: int


def true_epsilon(law: LawOfData, *parts: Part, ordered: bool = False) -> Worst:
    """The least ε for which the learner is ε-DP on these data sets; infinite where an outcome can be ruled out."""
    return _worst(law, parts, ordered, loss)


def true_delta(law: LawOfData, epsilon: float, *parts: Part, ordered: bool = False) -> Worst:
    """The least δ for which the learner is (ε, δ)-DP on these data sets."""
    factor = exp(Fraction(epsilon))
    return _worst(law, parts, ordered, lambda p, q: max(hockey_stick(p, q, factor), hockey_stick(q, p, factor)))


def loss(p: Mapping[Outcome, Any], q: Mapping[Outcome, Any]) -> Any:
    """The largest |log(p/q)| of an outcome."""
    if p.keys() != q.keys():
        return EXACT.inf
    largest = max((max(p[o] / q[o], q[o] / p[o]) for o in p), default=EXACT.mpf(1))
    return EXACT.log(largest)


def hockey_stick(p: Mapping[Outcome, Any], q: Mapping[Outcome, Any], factor: Any) -> Any:
    """Σ [p − factor·q]₊ over the outcomes."""
    return EXACT.fsum(max(p[o] - factor * q.get(o, 0), EXACT.mpf(0)) for o in p)


def _worst(law: LawOfData, parts: Sequence[Part], ordered: bool, measure: Callable[[Any, Any], Any]) -> Worst:
    @cache
    def of(rows: Rows) -> dict[Outcome, Any]:
        found = {outcome: exact(p) for outcome, p in law(*arrays(rows)).items()}
        total = EXACT.fsum(found.values())
        if not abs(total - 1) < TINY:
            raise AssertionError(f"probabilities add up to {total}")
        return {outcome: p for outcome, p in found.items() if p > 0}

    worst: Any = EXACT.mpf(-1)
    pair: tuple[Rows, Rows] | None = None
    n_pairs = 0
    for first, second in neighbouring(*parts, ordered=ordered):
        n_pairs += 1
        found = measure(of(first), of(second))
        if found > worst:
            worst, pair = found, (first, second)
    if pair is None:
        raise AssertionError("no neighbouring data sets; give a part with a row and two records")
    return Worst(float(worst), pair, n_pairs)


def p_value(law: Mapping[Outcome, Any], drawn: Iterable[Outcome]) -> float:
    """Pearson's test of drawn outcomes against a law; rare outcomes are taken together. 0 if one is impossible."""
    found = Counter(drawn)
    if any(outcome not in law for outcome in found):
        return 0.0
    n = sum(found.values())
    common = [o for o in law if float(law[o]) * n >= 5]
    observed = [found[o] for o in common]
    expected = [float(law[o]) * n for o in common]
    rare = n - sum(expected)
    if rare >= 5:
        observed.append(n - sum(observed))
        expected.append(rare)
    elif common:  # too few to be a cell of their own
        observed[0] += n - sum(observed)
        expected[0] += rare
    if len(observed) < 2:
        return 1.0
    return float(chisquare(observed, np.array(expected) * (sum(observed) / sum(expected))).pvalue)


Concepts = tuple[tuple[int, ...], ...]  # of LWY25: each is the tuple of its labels on the points 0, 1, …
LabelledRow = tuple[int, int]
Base = Callable[[tuple[LabelledRow, ...]], Mapping[Any, Any]]  # relabelled rows, in order -> law of the answer
Scores = Callable[[Concepts, list[LabelledRow], list[LabelledRow], list[tuple[int, ...]]], list[int]]


def thresholds(size: int) -> Concepts:
    return tuple(tuple(int(x < cut) for x in range(size)) for cut in range(size + 1))


def point_functions(size: int) -> Concepts:
    return tuple(tuple(int(x == p) for x in range(size)) for p in range(size))


def by_the_rest(
    concepts: Concepts, T: list[LabelledRow], W: list[LabelledRow], labellings: list[tuple[int, ...]]
) -> list[int]:
    """|T||W| min_f {dis_T(h, f) + err_W(f)}, by trying every f."""
    return [
        min(
            len(W) * sum(f[x] != label for (x, _), label in zip(T, h, strict=True))
            + len(T) * sum(f[x] != y for x, y in W)
            for f in concepts
        )
        for h in labellings
    ]


def relabelled_then(
    base: Base,
    concepts: Concepts,
    *,
    n_sampled: int,
    choice_epsilon: float,
    choose: Callable[..., list[Any]] = permute_and_flip,
    scores: Scores = by_the_rest,
    sensitivity: int | None = None,
    samples: Callable[[int, int], Any] = uniform_orders,
) -> LawOfData:
    """The law of LWY25 Algorithm 2: sample T, choose a labelling of it, relabel, run the base learner."""

    def law(points: Any, labels: Any) -> Law:
        rows = list(zip(points[:, 0].tolist(), labels.tolist(), strict=True))
        parts = []
        for weight, sampled in samples(len(rows), n_sampled):
            T = [rows[i] for i in sampled]
            W = [rows[i] for i in range(len(rows)) if i not in sampled]
            labellings = sorted({tuple(f[x] for x, _ in T) for f in concepts})
            found = [-score for score in scores(concepts, T, W, labellings)]
            chances = choose(found, choice_epsilon, sensitivity or n_sampled) if len(labellings) > 1 else [1]
            for h, chance in zip(labellings, chances, strict=True):
                new = tuple((x, label) for (x, _), label in zip(T, h, strict=True))
                parts.append((exact(weight) * chance, base(new)))
        return mixture(parts)

    return law


def told_row_by_row(size: int, epsilon: float, *, in_order: bool = False) -> Base:
    """A base learner that tells its rows, each kept or exchanged by randomized response: ε-DP, and of use to nobody."""
    cells = [(x, label) for x in range(size) for label in (0, 1)]
    kept = exp(Fraction(epsilon)) / (exp(Fraction(epsilon)) + len(cells) - 1)
    other = 1 / (exp(Fraction(epsilon)) + len(cells) - 1)

    @cache
    def law(rows: tuple[LabelledRow, ...]) -> Mapping[Any, Any]:
        found: Law = {}
        for told in product(cells, repeat=len(rows)):
            chance = EXACT.fprod(kept if a == b else other for a, b in zip(rows, told, strict=True))
            seen = told if in_order else tuple(sorted(told))
            found[seen] = found.get(seen, 0) + chance
        return found

    return law if in_order else lambda rows: law(tuple(sorted(rows)))


def best_of_class(concepts: Concepts, epsilon: float, choose: Callable[..., list[Any]] = permute_and_flip) -> Base:
    """A base learner that chooses a concept by its mistakes (KLNRS11)."""

    @cache
    def law(rows: tuple[LabelledRow, ...]) -> Mapping[Any, Any]:
        mistakes = [sum(f[x] != label for x, label in rows) for f in concepts]
        return dict(zip(concepts, choose([-m for m in mistakes], epsilon), strict=True))

    return lambda rows: law(tuple(sorted(rows)))


def on_all_rows(base: Base) -> LawOfData:
    """The law of a learner that hands all its rows to this one."""
    return lambda points, labels: base(tuple(zip(points[:, 0].tolist(), labels.tolist(), strict=True)))


def first_rows(n: int, size: int) -> Any:
    """A cheat: no sample at all."""
    return uniform_orders(size)


def votes_of_parts(concepts: Concepts, n_hypotheses: int, epsilon: float, queries: Sequence[int]) -> Base:
    """A base: on each part the first consistent concept; for each query a private vote. The law of all answers."""

    def base(rows: tuple[LabelledRow, ...]) -> Mapping[Any, Any]:
        parts = [[rows[i] for i in part] for part in np.array_split(np.arange(len(rows)), n_hypotheses)]
        learned = [next(f for f in concepts if all(f[x] == label for x, label in part)) for part in parts]
        chances = []
        for x in queries:
            ones = sum(f[x] for f in learned)
            chances.append(permute_and_flip([n_hypotheses - ones, ones], epsilon))
        return {
            told: EXACT.fprod(chance[label] for chance, label in zip(chances, told, strict=True))
            for told in product((0, 1), repeat=len(queries))
        }

    return base
