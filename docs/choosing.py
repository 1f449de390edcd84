"""Measure the tables of the pages on choosing: ``python docs/choosing.py`` writes them into the pages.

Mushroom (UCI, shipped with the package) plays the private data: 6,000 rows are private, 1,000 are the public pool, and
the student is scored on the 1,124 others. Each figure is the mean of eight fits; ± is the standard deviation of one.
The noise is seeded by the set-up, so that a set-up has one figure in all tables, and set-ups do not share their luck.
It takes a few minutes; ``python docs/choosing.py teachers`` measures one table.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from quorate import PrivateClassifier, PrivateLogisticRegression, PublicPool
from quorate.accounting import worlds_told_apart
from quorate.data import load_mushroom
from quorate.run.facts import attack_curve
from quorate.run.public_facts import PublicFacts
from quorate.voting.recipe import recipe

DOCS = Path(__file__).parent
PAGES = (
    "how-to/which-method.md", "how-to/how-many-teachers.md", "how-to/choose-epsilon.md",
    "how-to/when-not-to-use-this.md",
)  # fmt: skip
MARK = re.compile(r"(<!-- measured: ([\w-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)

CLASSES, DELTA, REPEATS = ["edible", "poisonous"], 1e-5, 8
METHODS = ("votes", "direct")
EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
TEACHERS = (5, 20, 60, 180, 600, 2_000)
RECORDS = (100, 300, 1_000, 3_000, 6_000)
COLUMNS = 117  # of Mushroom, once its words are numbers


def rows() -> tuple[Any, Any, Any, Any, Any]:
    """Private rows and labels, the pool, rows to score on and their labels."""
    mushroom = load_mushroom()
    order = np.random.default_rng(0).permutation(mushroom.X.height)
    X, y = mushroom.X[order], np.asarray(mushroom.labels)[order]
    return X[:6_000], y[:6_000], PublicPool(X[6_000:7_000]), X[7_000:], y[7_000:]


@cache
def accuracies(
    method: str, epsilon: float = 1.0, *, n: int = 6_000, repeats: int = REPEATS, seeded: bool = True, **how: Any
) -> tuple[float, ...]:
    """Accuracy of each fit to the first `n` private rows, of one of :data:`METHODS` by its defaults."""
    X, y, pool, shown, truth = rows()
    told = repr((method, epsilon, n, sorted(how.items())))
    seeds = [crc32(f"{told} {repeat}".encode()) if seeded else None for repeat in range(repeats)]
    promised = {"classes": CLASSES, "epsilon": epsilon, "delta": DELTA, "n_records": n, **how}
    if method == "votes":
        promised |= {"method": "votes", "n_jobs": 1, "allow_hopeless": True}
    else:
        promised |= {"neighbours": "replace"}  # which the price of votes covers too
    kind = PrivateClassifier if method == "votes" else PrivateLogisticRegression
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # many fits of public data, seeded, some of them hopeless on purpose
        fits = (kind(**promised, unsafe_noise_seed=seed).fit(X[:n], y[:n], public=pool) for seed in seeds)
        return tuple(float((each.predict(shown) == truth).mean()) for each in fits)


def mean(found: tuple[float, ...]) -> str:
    """Return the mean of some fits, and the standard deviation of one, as the tables have them."""
    return f"{100 * np.mean(found):.1f} ± {100 * np.std(found, ddof=1):.1f} %"


def percent(share: float) -> str:
    """Return a share as the tables have it."""
    return f"{100 * share:.1f} %"


def methods() -> Iterator[str]:
    """Two methods at the same ε."""
    yield "| ε | votes | direct method | always the commonest class |"
    yield "| --- | --- | --- | --- |"
    truth = rows()[4]
    commonest = max(float((truth == each).mean()) for each in CLASSES)
    for epsilon in (0.25, 0.5, 1.0, 2.0):
        pair = (mean(accuracies(method, epsilon)) for method in METHODS)
        yield f"| {epsilon:g} | {' | '.join(pair)} | {percent(commonest)} |"


def mechanisms() -> Iterator[str]:
    """What is released, at the same ε and number of teachers."""
    yield "| mechanism | queries | accuracy |"
    yield "| --- | --- | --- |"
    for name, queries in (("NoisyCounts", 1_000), ("GaussianNoisyMax", 1_000), ("PermuteAndFlip", 100)):
        found = accuracies("votes", 0.5, mechanism=name, queries=queries, n_teachers=180)
        yield f"| `{name}` | {queries:,} | {mean(found)} |"


def teachers() -> Iterator[str]:
    """Numbers of teachers at ε = 1."""
    yield "| teachers | rows of each | noise in the share of votes that one answer shows | accuracy |"
    yield "| --- | --- | --- | --- |"
    for n in TEACHERS:
        sigma = recipe(facts(1.0), n_teachers=n).mechanism.sigma  # type: ignore[attr-defined]
        yield f"| {n:,} | {6_000 / n:,.0f} | {sigma / n:.2f} | {mean(accuracies('votes', n_teachers=n))} |"


def facts(epsilon: float) -> PublicFacts:
    """The public facts of the task."""
    return PublicFacts(n_records=6_000, n_public=1_000, n_classes=2, width=COLUMNS, epsilon=epsilon, delta=DELTA)


def promised(epsilon: float) -> str:
    """What an ε promises: in worlds of 1,000, by (ε, δ) alone and by the exact price, and then of 100 records."""
    curve = attack_curve(recipe(facts(epsilon)).event, epsilon, DELTA)
    return f"{worlds_told_apart(epsilon, DELTA)} | {curve.told_apart} | {100 * curve.recognised(0.05):.1f}"


def epsilons() -> Iterator[str]:
    """What an ε promises, and what it buys."""
    yield (
        "| ε | right in 1,000 guesses | by the exact price | recognised of 100 | accuracy by votes | "
        "by the direct method |"
    )
    yield "| --- | --- | --- | --- | --- | --- |"
    for epsilon in EPSILONS:
        pair = (mean(accuracies(method, epsilon)) for method in METHODS)
        yield f"| {epsilon:g} | {promised(epsilon)} | {' | '.join(pair)} |"


def records() -> Iterator[str]:
    """Numbers of private records at ε = 1."""
    yield "| records | votes | non-private: the same student on the same records |"
    yield "| --- | --- | --- |"
    for n in RECORDS:
        yield f"| {n:,} | {mean(accuracies('votes', n=n))} | {percent(plain(n))} |"


def plain(n: int) -> float:
    """Accuracy of a logistic regression on `n` records, without any privacy."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    from quorate.data import public_encoder

    X, y, pool, shown, truth = rows()
    encoder = public_encoder(pool.rows())
    model = make_pipeline(LogisticRegression(max_iter=1_000)).fit(encoder.transform(X[:n]), y[:n])
    return float((model.predict(encoder.transform(shown)) == truth).mean())


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "methods": methods, "mechanisms": mechanisms, "teachers": teachers, "epsilons": epsilons, "records": records
}  # fmt: skip


def main(wanted: list[str]) -> None:
    """Measure the tables that are named, or all, and write them into their pages."""
    for page in (DOCS / name for name in PAGES):
        text = page.read_text(encoding="utf-8")
        for head, name, _, end in MARK.findall(text):
            if not wanted or name in wanted:
                table = "\n".join(TABLES[name]())
                print(table)
                text = re.sub(
                    re.escape(head) + ".*?" + re.escape(end), lambda _, t=table, h=head, e=end: f"{h}{t}\n{e}", text,
                    flags=re.DOTALL,
                )  # fmt: skip
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
