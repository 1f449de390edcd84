"""The output laws of the realizable-to-agnostic transformation on tiny data, by walking through every random choice.

Nothing here uses the package: a class is a tuple of concepts, a concept the tuple of its labels on the points 0, 1, ….
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from typing import Any

from tests.learners import exact

Concepts = tuple[tuple[int, ...], ...]
Row = tuple[int, int]
Base = Callable[[tuple[Row, ...]], Mapping[Any, Any]]  # relabelled rows, in order -> law of the answer
Scores = Callable[[Concepts, list[Row], list[Row], list[tuple[int, ...]]], list[int]]


def thresholds(size: int) -> Concepts:
    return tuple(tuple(int(x < cut) for x in range(size)) for cut in range(size + 1))


def point_functions(size: int) -> Concepts:
    return tuple(tuple(int(x == p) for x in range(size)) for p in range(size))


def by_the_rest(concepts: Concepts, T: list[Row], W: list[Row], labellings: list[tuple[int, ...]]) -> list[int]:
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
    choose: Callable[..., list[Any]] = exact.permute_and_flip,
    scores: Scores = by_the_rest,
    sensitivity: int | None = None,
    samples: Callable[[int, int], Any] = exact.uniform_orders,
) -> exact.LawOfData:
    """The law of LWY25 Algorithm 2: sample T, choose a labelling of it, relabel, run the base learner."""

    def law(points: Any, labels: Any) -> exact.Law:
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
                parts.append((exact.exact(weight) * chance, base(new)))
        return exact.mixture(parts)

    return law


def told_row_by_row(size: int, epsilon: float, *, in_order: bool = False) -> Base:
    """A base learner that tells its rows, each kept or exchanged by randomized response: ε-DP, and of use to nobody."""
    cells = [(x, label) for x in range(size) for label in (0, 1)]
    kept = exact.exp(Fraction(epsilon)) / (exact.exp(Fraction(epsilon)) + len(cells) - 1)
    other = 1 / (exact.exp(Fraction(epsilon)) + len(cells) - 1)

    @cache
    def law(rows: tuple[Row, ...]) -> Mapping[Any, Any]:
        found: exact.Law = {}
        for told in product(cells, repeat=len(rows)):
            chance = exact.EXACT.fprod(kept if a == b else other for a, b in zip(rows, told, strict=True))
            seen = told if in_order else tuple(sorted(told))
            found[seen] = found.get(seen, 0) + chance
        return found

    return law if in_order else lambda rows: law(tuple(sorted(rows)))


def best_of_class(concepts: Concepts, epsilon: float) -> Base:
    """A base learner that chooses a concept by its mistakes (KLNRS11)."""

    @cache
    def law(rows: tuple[Row, ...]) -> Mapping[Any, Any]:
        mistakes = [sum(f[x] != label for x, label in rows) for f in concepts]
        return dict(zip(concepts, exact.permute_and_flip([-m for m in mistakes], epsilon), strict=True))

    return lambda rows: law(tuple(sorted(rows)))


def table_order(n: int, size: int) -> Any:
    """A cheat: a uniform sample, but handed on in the order of the table."""
    return exact.uniform_subsets(n, size)


def first_rows(n: int, size: int) -> Any:
    """A cheat: no sample at all."""
    return ((Fraction(1, len(list(permutations(range(size))))), order) for order in permutations(range(size)))
