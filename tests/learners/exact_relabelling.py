"""The worst private learner behind a sampling or relabelling step, found by linear programming; nothing is sampled.

A step (sampling rows, relabelling them, ...) turns a data set into a random *input* of a learner, here a multiset of
records. Of all ε-DP learners, the one that makes the whole step least private answers "yes" with some probability f on
each input, where f moves by at most :math:`e^ε` when one record of the input is replaced. So the step's exact price is

    sup { log Σ p(input) f(input) / Σ p'(input) f(input) },

a linear program, for the laws p and p' of the input on two neighbouring data sets. (Scaling f down satisfies what is
asked of "no" too.) With a δ, f is in [0, 1] and the program is over all multisets of the records.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, combinations_with_replacement, permutations
from math import comb, exp, factorial, log
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

Record = tuple[int, int]  # (point, label); label −1 for none
Rows = tuple[Record, ...]  # sorted: a multiset
Inputs = dict[Rows, float]  # multiset -> probability
Dichotomy = tuple[int, ...]  # a concept as its labels on the domain 0, 1, 2, …


def replaced(a: Rows, b: Rows) -> int:
    """How many records of one multiset must be replaced to get the other."""
    rest = list(b)
    for record in a:
        if record in rest:
            rest.remove(record)
    return len(rest)


def worst_epsilon(p: Mapping[Rows, float], q: Mapping[Rows, float], epsilon: float) -> float:
    """The exact ε of a step in front of the worst ε-DP learner, on two data sets, in the direction p over q."""
    inputs = sorted({*p, *q})
    at_most = exp(epsilon)
    rows, columns, values = [], [], []
    n = 0
    for i, a in enumerate(inputs):
        for j, b in enumerate(inputs):
            if i != j:
                rows += [n, n]
                columns += [i, j]
                values += [1.0, -(at_most ** replaced(a, b))]
                n += 1
    solved = linprog(
        [-p.get(each, 0.0) for each in inputs],
        A_ub=coo_array((values, (rows, columns)), shape=(n, len(inputs))) if n else None,
        b_ub=np.zeros(n) if n else None,
        A_eq=[[q.get(each, 0.0) for each in inputs]],
        b_eq=[1.0],
        method="highs",
    )
    assert solved.status == 0, solved.message
    return log(-solved.fun)


def worst_delta(p: Mapping[Rows, float], q: Mapping[Rows, float], epsilon: float, delta: float, at: float) -> float:
    """The exact δ at ε = `at` of a step in front of the worst (ε, δ)-DP learner, in the direction p over q."""
    records = sorted({record for rows in (*p, *q) for record in rows})
    size = len(next(iter(p)))
    inputs = list(combinations_with_replacement(records, size))
    number = {rows: i for i, rows in enumerate(inputs)}
    rows, columns, values, bounds = [], [], [], []
    for a in inputs:
        for b in inputs:
            if replaced(a, b) == 1:
                # f(a) ≤ e^ε f(b) + δ, and 1 − f(a) ≤ e^ε (1 − f(b)) + δ
                for sign, bound in ((1, delta), (-1, exp(epsilon) - 1 + delta)):
                    rows += [len(bounds)] * 2
                    columns += [number[a], number[b]]
                    values += [sign, -sign * exp(epsilon)]
                    bounds.append(bound)
    cost = [-(p.get(each, 0.0) - exp(at) * q.get(each, 0.0)) for each in inputs]
    solved = linprog(
        cost, A_ub=coo_array((values, (rows, columns)), shape=(len(bounds), len(inputs))), b_ub=bounds, bounds=(0, 1),
        method="highs",
    )  # fmt: skip
    assert solved.status == 0, solved.message
    return -solved.fun


def price(step: Callable[[Any], Inputs], pairs: Iterable[tuple[Any, Any]], epsilon: float) -> float:
    """The largest exact ε of a step over pairs of data sets, in both directions."""
    known: dict[Any, Inputs] = {}

    def of(data: Any) -> Inputs:
        if data not in known:
            known[data] = step(data)
            assert abs(sum(known[data].values()) - 1) < 1e-9
        return known[data]

    return max(max(worst_epsilon(of(a), of(b), epsilon), worst_epsilon(of(b), of(a), epsilon)) for a, b in pairs)


def added(parts: Iterable[tuple[float, Rows]]) -> Inputs:
    """Weights of equal multisets together."""
    total: Inputs = {}
    for weight, rows in parts:
        multiset = tuple(sorted(rows))
        total[multiset] = total.get(multiset, 0.0) + weight
    return total


def subsets(rows: Sequence[Record], size: int) -> Iterator[tuple[float, Rows]]:
    """All subsets of so many of the rows, alike."""
    return (
        (1 / comb(len(rows), size), tuple(rows[i] for i in chosen)) for chosen in combinations(range(len(rows)), size)
    )


def draws(rows: Sequence[Record], size: int) -> Iterator[tuple[float, Rows]]:
    """All multisets of so many draws with replacement, by the multinomial weights."""
    counts = Counter(rows)
    for drawn in combinations_with_replacement(sorted(counts), size):
        weight = factorial(size) / len(rows) ** size
        for record, times in Counter(drawn).items():
            weight *= counts[record] ** times / factorial(times)
        yield weight, drawn


def relabelled(
    S: Rows,
    T: Rows,
    concepts: Sequence[Dichotomy],
    epsilon_0: float,
    *,
    sensitivity: float = 1.0,
    score_all: bool = False,
) -> Iterator[tuple[float, Rows]]:
    """LabelBoostProcedure: one candidate for every dichotomy on S∘T, chosen by its mistakes on S, relabels S∘T.

    Two mistakes to make: another `sensitivity`, and to `score_all` rows, those of T as if their label were 0.
    """
    points = sorted({x for x, _ in (*S, *T)})
    candidates = {tuple(concept[x] for x in points): concept for concept in concepts}.values()
    scored = (*S, *((x, 0) for x, _ in T)) if score_all else S
    weights = [exp(-epsilon_0 * sum(concept[x] != y for x, y in scored) / (2 * sensitivity)) for concept in candidates]
    for weight, concept in zip(weights, candidates, strict=True):
        yield weight / sum(weights), tuple((x, concept[x]) for x, _ in (*S, *T))


def boosted(data: tuple[Rows, Rows], schedule: Any, concepts: Sequence[Dichotomy]) -> Inputs:
    """The law of what LabelBoost hands to its base learner, from labelled and unlabelled rows.

    Every random choice of a schedule: rows kept, concepts chosen, rows left, rows drawn. The sizes of `schedule` are
    read off it; nothing else of the package is used.
    """
    S, D = data
    states: dict[tuple[Rows, Rows], float] = {}

    def add(S: Rows, D: Rows, weight: float) -> None:
        key = tuple(sorted(S)), D
        states[key] = states.get(key, 0.0) + weight

    for w, first in subsets(S, schedule.first_labelled):
        # Which unlabelled rows are left, in which order: all arrangements alike.
        some = schedule.first_unlabelled < schedule.unlabelled
        arrangements = list(permutations(D, schedule.first_unlabelled)) if some else [D]
        for rest in arrangements:
            add(first, rest, w / len(arrangements))
    for each in schedule.rounds:
        before, states = states, {}
        for (S, D), weight in before.items():
            T, rest = D[: each.taken], D[each.taken :]
            for w, chosen in subsets(S, each.kept_labelled):
                for v, brought in subsets(T, each.kept_taken):
                    for u, rows in relabelled(chosen, brought, concepts, each.epsilon_0):
                        add(rows, rest, weight * w * v * u)
    return added(
        (weight * w * v, drawn)
        for (S, _), weight in states.items()
        for w, left in subsets(S, schedule.kept)
        for v, drawn in draws(left, schedule.drawn)
    )
