"""What the parts of the few-labels experiment share: one draw of a learner, and the fewest rows for an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quorate.experiments.measurement import Measured, standard_error
from quorate.learners import ExponentialLearner, GenericLearner, PrivateLearner, RowsNeeded
from quorate.learners.base.exponential import choose
from quorate.learners.concepts import Concept
from quorate.learners.concepts.protocol import Points
from quorate.learners.fit_charge import PURPOSE
from quorate.learners.private_learner import CodedLabels
from quorate.noise import NoiseSource, SeededNoise
from quorate.types import FloatArray

#: From labelled rows and a number to the concept that is chosen by them; each number has noise of its own.
Chooser: TypeAlias = Callable[[Points, CodedLabels, int], Concept]


@dataclass(frozen=True, kw_only=True, slots=True)
class LearningTask:
    """Labels of which some are wrong, and the error beyond the best concept's that is to be reached all the same.

    `most_rows`: where the search gives up. `repeats_of`: one repeat is made of so many that were asked for. `hardest`:
    whether only those learners are tried that come near.
    """

    label_noise: float
    excess: float
    epsilons: tuple[float, ...]
    most_rows: int = 3_000_000
    repeats_of: int = 1
    hardest: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """How much of the experiment is run: all of it by default, less in a test.

    `labels`, `unlabelled`: numbers of rows that are tried, increasing. `at_labels`: at which the error is quoted.
    `samples`: labelled ones for each unlabelled. `sanitized_rows`: on small grids, where no number is proven enough.
    """

    bits: tuple[int, ...] = (8, 16, 24, 32)
    labels: tuple[int, ...] = (10, 13, 16, 20, 25, 32, 40, 50, 64, 80, 100, 128, 160, 200, 256, 320, 400, 500, 600)
    at_labels: int = 600
    samples: int = 4
    unlabelled: tuple[int, ...] = (100, 200, 500, 1_000, 2_000, 5_000, 10_000)
    sanitized_rows: int = 20_000
    tasks: tuple[LearningTask, ...] = (
        LearningTask(label_noise=0.49, excess=0.002, epsilons=(1.0, 0.5, 0.2, 0.1)),
        LearningTask(
            label_noise=0.4975, excess=0.0005, epsilons=(1.0, 0.1), most_rows=12_000_000, repeats_of=2, hardest=True
        ),
    )

    rectangle_labels: tuple[int, ...] = (100, 300, 1_000, 2_000)
    rectangle_draws: int = 30
    direct_draws: int = 30

    def __post_init__(self) -> None:
        assert self.at_labels in self.labels  # noqa: S101  a size is written by hand
        assert all(a < b for a, b in pairwise(self.labels))  # noqa: S101


@dataclass(frozen=True, eq=False)
class Population:
    """Finitely many points, how likely each is, and what the best concept labels it: errors on it are exact."""

    points: Points
    truth: NDArray[np.uint8]
    shares: FloatArray

    def sample(self, n_rows: int, rng: np.random.Generator) -> tuple[Points, CodedLabels]:
        """Draw independent rows, with the best concept's labels."""
        chosen = rng.choice(len(self.points), size=n_rows, p=self.shares)
        return self.points[chosen], self.truth[chosen].astype(np.int8)

    def error(self, concept: Concept) -> float:
        """Return how often a concept labels a fresh point otherwise than the best one; exact."""
        return float(self.shares @ (concept.labels(self.points) != self.truth))


_ASKED: dict[str, RowsNeeded] = {}


def rows_asked(learner: Any) -> RowsNeeded:
    """Return ``learner.rows_needed()``, searched for once for all learners with the same arguments."""
    key = f"{type(learner).__qualname__} {sorted(learner.get_params().items(), key=lambda item: item[0])!r}"
    if key not in _ASKED:
        _ASKED[key] = learner.rows_needed()
    return _ASKED[key]


def noise_of(seed: int) -> NoiseSource:
    """Return the noise that ``fit`` draws from with ``unsafe_noise_seed=seed`` and a fresh ledger."""
    return SeededNoise(seed).at(PURPOSE, 0)


def drawn(learner: PrivateLearner, points: Points, labels: CodedLabels, seed: int) -> Concept:
    """Return the concept that ``fit`` releases on public rows, without its ledger, checks and fingerprint."""
    n_labelled = int((labels >= 0).sum())
    plan = learner._plan(n_labelled, len(labels) - n_labelled, *learner._target())
    return learner._learn(points, labels, noise_of(seed), plan)


def chooser(learner: GenericLearner, unlabelled: Points, n_labelled: int, seed: int) -> Chooser:
    """Sanitize the unlabelled rows once; return what chooses by labelled rows, again and again, as ``fit`` would."""
    plan = learner._plan(n_labelled, len(unlabelled), *learner._target())
    noise = noise_of(seed)
    synthetic = learner.sanitizer.sanitize(unlabelled, learner.concepts, plan.epsilon, noise.at("sanitizer", 0))
    hypotheses = learner.concepts.dichotomies(plan.net.of(synthetic, noise.at("net", 0)), limit=learner.limit)
    return lambda points, labels, number: choose(hypotheses, points, labels, plan, noise.at("choice", number))


def learning_curves(
    learner: PrivateLearner,
    populations: Sequence[Population],
    size: Size,
    n_unlabelled: int,
    rng: np.random.Generator,
    seed: int,
) -> FloatArray:
    """Return errors on labelled samples of growing size, one for each population: ``(n_populations, n_sizes)``.

    The populations differ in their labels alone, so that a GenericLearner sanitizes unlabelled rows once for all.
    """  # fmt: skip
    if isinstance(learner, GenericLearner):
        pick = chooser(learner, populations[0].sample(n_unlabelled, rng)[0], max(size.labels), seed)
    else:
        pick = _drawer(learner, seed)
    curves = []
    for number, population in enumerate(populations):
        points, labels = population.sample(max(size.labels), rng)
        curves.append([population.error(pick(points[:m], labels[:m], number)) for m in size.labels])
    return np.array(curves)


def _drawer(learner: PrivateLearner, seed: int) -> Chooser:
    """Return what runs the learner on labelled rows alone; a whole class is listed once."""
    if isinstance(learner, ExponentialLearner):
        plan = learner._plan(1, 0, *learner._target())
        everything = learner.whole_class()
        noise = noise_of(seed)
        return lambda points, labels, number: choose(everything, points, labels, plan, noise.at("choice", number))
    return lambda points, labels, number: drawn(learner, points, labels, seed + 1_000_003 * number)


def labels_needed(tried: Sequence[int], errors: FloatArray, target: float) -> int | None:
    """Return the least number of `tried` from which on the mean error stays at most `target`; None if it never does."""
    enough = errors.reshape(-1, len(tried)).mean(axis=0) <= target
    last = np.flatnonzero(~enough)
    first = int(last[-1]) + 1 if len(last) else 0
    return tried[first] if first < len(tried) else None


def fewest_rows(error: Callable[[int], float], target: float, *, start: int, limit: int) -> int | None:
    """Return the first of `start`, 1.26 times as many, … rows at which the error is at most `target`, and the next."""
    before = None
    steps = 0
    while (n_rows := round(start * 2 ** (steps / 3))) <= limit:
        enough = error(n_rows) <= target
        if enough and before is not None:
            return before
        before = n_rows if enough else None
        steps += 1
    return None


def measured(
    data: str,
    method: str,
    errors: FloatArray | None = None,
    *,
    best: float = 0.0,
    epsilon: float = 1.0,
    n_queries: float | None = None,
    repeats: int = 0,
    **more: Any,
) -> Measured:
    """Return a line at δ = 0; `errors` of its repeats ``(n_repeats, …)``, beyond those of the `best` concept."""
    return Measured(
        data=data,
        method=method,
        epsilon=epsilon,
        delta=0.0,
        n_queries=n_queries,
        repeats=len(errors) if errors is not None else repeats,
        accuracy_mean=1 - best - float(errors.mean()) if errors is not None else None,
        accuracy_se=standard_error(errors.reshape(len(errors), -1).mean(axis=1)) if errors is not None else None,
        more=more,
    )
