r"""MNIST in the manner of PATE: hundreds of teachers on 60,000 private images, 5,000 public ones, a student at ε ≤ 2.

Two ways to spend the budget. *Noisy counts* of every public image, averaged by a Gaussian process that knows their
noise: no data-dependent price exists for counts, and none is needed. *Labels* of some images by noisy max, where the
data-dependent price (PATE18) can be released beside the guarantee, for a price of its own.

Every image is sheared upright and centred by itself, and told by its first principal components on the public pool:
neither looks at another private image.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from quorate.accounting import Composed, Repeated, calibrate_sigma
from quorate.accounting import epsilon as price
from quorate.accounting.data_dependent import gnmax_rdp
from quorate.arguments import count, one_of
from quorate.data import PublicPool
from quorate.errors import PreconditionFailed
from quorate.estimators import PrivateClassifier
from quorate.experiments import noisy_gradient_descent, torch_models
from quorate.experiments.measurement import Cell, Experiment, Measured, Scored, repeated, scored, summed
from quorate.experiments.sources import LabelledTable, Split, folder_of_files, mnist, seeded_votes
from quorate.labelling import DataDependentRelease, label, release_data_dependent_total
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import GaussianNoisyMax, NoisyCounts
from quorate.noise import SeededNoise
from quorate.run.resources import processes
from quorate.students import StudentData, VoteShareStudent
from quorate.types import FloatArray, Secret, Watch

N_TEACHERS, N_PUBLIC, COMPONENTS = 300, 5_000, 30
TEACHER_C = 5.0
DELTA = 1e-5
EPSILONS = (1.0, 2.0)
LABELS = 400  # answers of the row of labels: fewer, with less noise each, so that agreement is worth something
SIDE = 28

DEFAULT = "votes, by default"
VALUES, LABELLED, VOTE = "noisy counts, Gaussian process, SVC", "labels by noisy max, SVC", "plurality, no noise"
NETWORK = "noisy counts, Gaussian process, network"
KERNEL, PATCHES = "public coordinates, kernel, direct", "public coordinates, patches, direct"
METHODS = (
    DEFAULT, VALUES, LABELLED, NETWORK, VOTE, torch_models.NET, KERNEL, PATCHES, noisy_gradient_descent.PLAIN,
)  # fmt: skip
BY_DEFAULT = tuple(name for name in METHODS if name != torch_models.NET)  # which takes minutes
OF_TORCH = (NETWORK, torch_models.NET)
OF_TEACHERS = (VALUES, LABELLED, NETWORK, VOTE)
MAPS = {KERNEL: "rbf", PATCHES: "patches"}
NO_TORCH = 'torch is not installed: the row of a convolutional student is left out (pip install "quorate[torch]")'


def reproduce_mnist(
    *,
    repeats: int = 1,
    epsilons: Sequence[float] = EPSILONS,
    methods: Sequence[str] | None = None,
    seed: int = 0,
    files: Path | None = None,
    command: str = "quorate reproduce mnist",
    watch: Watch | None = None,
) -> Experiment:
    """Train teachers, release votes, score students; δ is 1e-5, `methods` are among :data:`METHODS`.

    Divisions are of the test images into 5,000 public and 5,000 held out, the first by the published order. By default
    all methods but teachers of torch, and a network where torch is installed; PreconditionFailed where a line needs it.
    """
    repeats, seed, begun = count("repeats", repeats, at_least=1), count("seed", seed), time.monotonic()
    chosen = tuple(one_of("methods", name, METHODS) for name in methods or BY_DEFAULT)
    if not torch_models.torch_is_there():
        if methods and set(OF_TORCH) & set(chosen):
            raise PreconditionFailed(torch_models.NO_TORCH)
        chosen = tuple(name for name in chosen if name not in OF_TORCH)
    train, test = upright_digits(folder_of_files(files))
    cells: list[Cell] = [(method, epsilon) for epsilon in epsilons for method in chosen if method != VOTE]
    cells += [(VOTE, None)] if VOTE in chosen else []

    scores = repeated(
        "mnist", repeats, cells, lambda repeat: Division(train, test, repeat, seed), Division.score, watch=watch
    )
    rows = tuple(
        summed(repeats_of, data="mnist", method=method, epsilon=epsilon, delta=None if epsilon is None else DELTA)
        for (method, epsilon), repeats_of in scores.items()
    )
    return Experiment(
        name="mnist",
        title=f"MNIST: {len(train.codes):,} private images, {N_PUBLIC:,} public ones",
        rows=rows,
        notes=(
            *NOTES,
            *(() if torch_models.torch_is_there() or methods else (NO_TORCH,)),
            *_data_dependent_notes(rows),
        ),
        command=command,
        seed=seed,
        seconds=time.monotonic() - begun,
    )


class Division:
    """One division of the test images into a public pool and images to score on, and the teachers that it shares."""

    def __init__(self, train: LabelledTable, test: LabelledTable, repeat: int, seed: int) -> None:
        self.seed = seed + repeat
        n = len(test.codes)
        order = np.random.default_rng(self.seed).permutation(n) if repeat else np.arange(n)
        pool, held_out = order[:N_PUBLIC], order[N_PUBLIC:]
        self.pool_labels = test.codes[pool]
        self.parts = Split(
            name="mnist",
            X_private=train.X,
            y_private=train.codes,
            X_public=test.X[pool],
            X_test=test.X[held_out],
            y_test=test.codes[held_out],
        )

    @cached_property
    def digits(self) -> Digits:
        """The teachers; trained when a line needs them."""
        return Digits(self.parts.X_private, self.parts.y_private, self.parts.X_public, self.seed)

    def score(self, method: str, epsilon: float | None) -> Scored:
        """Fit one method at one budget."""
        parts = self.parts
        if epsilon is None:
            return scored(self.digits.counts.reveal().argmax(axis=1), self.pool_labels)
        if method == DEFAULT:
            return votes(parts, epsilon, self.seed)
        if method == torch_models.NET:
            return torch_models.votes_of_nets(parts, epsilon, self.seed)
        if method not in OF_TEACHERS:
            return direct_score(method, parts, epsilon, self.seed)
        if method == NETWORK:
            return self.digits.network(epsilon, parts.X_test, parts.y_test)
        fit = self.digits.values if method == VALUES else self.digits.labels
        return fit(epsilon, self.digits.coordinates(parts.X_test), parts.y_test)


def votes(parts: Split, epsilon: float, seed: int, *, groups: Any = None) -> Scored:
    """Let teachers of the images vote, every other choice left to the defaults; with `groups` the unit is a person."""
    n_images = len(parts.X_private)
    model = PrivateClassifier(
        method="votes",
        classes=list(range(10)),
        epsilon=epsilon,
        delta=DELTA,
        n_records=n_images if groups is None else len(np.unique(groups)),
        n_rows=None if groups is None else n_images,
        unsafe_noise_seed=seed,
    ).fit(parts.X_private, parts.y_private, public=PublicPool(as_images(parts.X_public)), groups=groups)
    n_answers, n_teachers = int(model.released_.answered.sum()), float(model.recipe_.n_teachers)
    return scored(model.predict(parts.X_test), parts.y_test, n_queries=n_answers, n_teachers=n_teachers)


def direct_score(method: str, parts: Split, epsilon: float, seed: int, *, groups: Any = None, **more: Any) -> Scored:
    """Fit a direct method to images, and score it; with `groups` the unit is a person."""
    arguments: dict[str, Any] = {"classes": range(10), "delta": DELTA, "groups": groups, **more}
    if method == noisy_gradient_descent.PLAIN:
        return noisy_gradient_descent.plain(parts, epsilon, seed, **arguments)
    return noisy_gradient_descent.public_coordinates(parts, epsilon, seed, feature_map=MAPS[method], **arguments)


NOTES = (
    (
        "accounting is data-independent and exact, for adding, removing or replacing one image; for replacing one by "
        "plain noisy gradient descent, whose clip was fixed beforehand"
    ),
    "the plurality is scored on the public images, and is what the teachers know; the students on images of their own",
    (
        "data_dependent_epsilon in the files: what the labels cost on these votes by the analysis of PATE18, which is "
        "itself a function of the private images; sanitised_epsilon is that figure after it was released, and "
        "with_sanitising what labels and release cost together"
    ),
    "noise is seeded so that the table can be made again: these runs carry no guarantee, and their rows are public",
)


class Digits:
    """One division of upright images ``(n, 784)``: teachers, their votes, and the students of either way."""

    def __init__(self, private: FloatArray, codes: Any, pool: FloatArray, seed: int) -> None:
        from sklearn.decomposition import PCA

        self._images = pool
        self._components = PCA(COMPONENTS, random_state=0).fit(pool)  # public images alone
        self.X_private, self.codes, self.X_public = self.coordinates(private), codes, self.coordinates(pool)
        self.seed = seed
        rows = self.X_private, codes, self.X_public
        self.counts = seeded_votes(
            svc(TEACHER_C), *rows, seed, n_teachers=N_TEACHERS, n_classes=10, n_jobs=processes(None)
        )

    def coordinates(self, images: FloatArray) -> FloatArray:
        """Return ``(n_images, 30)`` public coordinates."""
        return np.asarray(self._components.transform(images))

    def values(self, epsilon: float, X_test: FloatArray, truth: Any) -> Scored:
        """Release noisy counts of every public image through the shipped classifier, and score its student."""
        model = PrivateClassifier(
            svc(TEACHER_C),
            VoteShareStudent(svc(), shares="gaussian-process", weights=False),
            classes=list(range(10)),
            epsilon=epsilon,
            delta=DELTA,
            n_teachers=N_TEACHERS,
            n_records=len(self.codes),
            unsafe_noise_seed=self.seed,
        ).fit(self.X_private, self.codes, public=PublicPool(self.X_public))
        return scored(model.predict(X_test), truth, n_queries=int(model.released_.answered.sum()))

    def network(self, epsilon: float, images: FloatArray, truth: Any) -> Scored:
        """Teach a small convolutional network the classes that the noisy counts suggest; it sees public images."""
        mechanism = NoisyCounts(calibrate_sigma(epsilon, DELTA, len(self._images), np.sqrt(2)), "histogram")
        schedule = Repeated(mechanism.event, len(self._images))
        ledger = Ledger(budget=Budget(epsilon, DELTA))
        paid = ledger.reserve(schedule, delta=DELTA, purposes={"label": len(self._images)}, key="counts")
        data = StudentData(
            pool=self._images.astype(np.float32),
            points=self.X_public,
            queries=np.arange(len(self._images)),
            released=label(self.counts, mechanism, paid, SeededNoise(self.seed)),
            classes=list(range(10)),
            n_teachers=N_TEACHERS,
            seed=self.seed,
        )
        way = VoteShareStudent(torch_models.convolutional(self.seed), shares="gaussian-process", weights=False)
        student = way.fit(data)
        return scored(student.predict(images.astype(np.float32)), truth, n_queries=len(self._images))

    def labels(self, epsilon: float, X_test: FloatArray, truth: Any) -> Scored:
        """Release labels by noisy max, and what they cost on these votes; score a student of the labels."""
        answers, noise = LABELS, SeededNoise(self.seed)
        mechanism = GaussianNoisyMax(calibrate_sigma(epsilon, DELTA, answers, np.sqrt(2)), "histogram")
        schedule = Repeated(mechanism.event, answers)
        sanitiser = DataDependentRelease(
            order=_order(epsilon), beta=0.5 / _order(epsilon) ** 2, multiplier=40.0, delta=DELTA / 10
        )
        both = Composed((schedule, sanitiser.event))
        ledger = Ledger(budget=Budget(price(both, 2 * DELTA) + 1e-6, 2 * DELTA))
        paid = ledger.reserve(
            both, delta=2 * DELTA, purposes={"label": answers, "evaluation": 1},
            charged_to={"label": 0, "evaluation": 1}, key="labels",
        )  # fmt: skip
        queries = np.random.default_rng(self.seed).permutation(len(self.X_public))[:answers]
        votes = Secret(self.counts.reveal()[queries])
        released = label(votes, mechanism, paid, noise)
        total = release_data_dependent_total(votes, mechanism, sanitiser, reservation=paid, noise=noise)
        student = svc().fit(self.X_public[queries], released.codes)
        orders = np.arange(2, 200)
        curve = gnmax_rdp(votes, mechanism.sigma, orders, noise="discrete").reveal().sum(axis=0)
        unreleased = float(np.min(curve + np.log1p(-1 / orders) - np.log(DELTA * orders) / (orders - 1)))
        return scored(
            student.predict(X_test),
            truth,
            n_queries=answers,
            data_dependent_epsilon=unreleased,
            sanitised_epsilon=total.epsilon(DELTA),
            with_sanitising=price(both, 2 * DELTA),
        )


def _order(epsilon: float) -> float:
    """The Rényi order at which a Gaussian of this price is read, to within a few."""
    return float(round(1 + 2 * np.log(1 / DELTA) / epsilon))


def svc(C: float = 1.0) -> Any:
    """Return a radial support-vector machine: teacher and student of digits."""
    from sklearn.svm import SVC

    return SVC(C=C)


def as_images(rows: FloatArray) -> FloatArray:
    """Return rows ``(n_images, 784)`` as images ``(n_images, 28, 28)``, as whoever has images would give them."""
    return rows.reshape(-1, SIDE, SIDE)


def upright_digits(folder: Path) -> tuple[LabelledTable, LabelledTable]:
    """Read the images for training and for testing, each of them upright."""
    train, test = mnist(folder)
    return replace(train, X=upright(train.X)), replace(test, X=upright(test.X))


def upright(images: FloatArray) -> FloatArray:
    """Shear each of ``(n_images, 784)`` by itself so that its main axis stands upright, and centre it sideways."""
    out = np.empty((len(images), SIDE * SIDE))
    for first in range(0, len(images), 5_000):
        block = images[first : first + 5_000].reshape(-1, SIDE, SIDE).astype(np.float64)
        out[first : first + 5_000] = _sheared(block).reshape(len(block), -1)
    return out


def _sheared(images: FloatArray) -> FloatArray:
    line = np.arange(float(SIDE))
    ink = images.sum(axis=(1, 2)) + 1e-9
    middle_row, middle_column = images.sum(axis=2) @ line / ink, images.sum(axis=1) @ line / ink
    height = line[None, :] - middle_row[:, None]
    spread = np.sum(images.sum(axis=2) * height**2, axis=1) / ink + 1e-9
    lean = np.einsum("nij,ni,j->n", images, height, line) / ink / spread
    # The column that each pixel of the upright image is read from.
    shift = lean[:, None] * height + (middle_column - (SIDE - 1) / 2)[:, None]
    source = line[None, None, :] + shift[:, :, None]
    left = np.floor(source).astype(np.int64)
    share = source - left
    inside = [(column >= 0) & (column < SIDE) for column in (left, left + 1)]
    values = [np.take_along_axis(images, np.clip(column, 0, SIDE - 1), axis=2) for column in (left, left + 1)]
    return np.asarray(values[0] * (1 - share) * inside[0] + values[1] * share * inside[1])


def _data_dependent_notes(rows: Sequence[Measured]) -> tuple[str, ...]:
    notes = []
    for row in rows:
        if row.method == LABELLED and row.epsilon is not None:
            more = row.more
            notes.append(
                f"ε = {row.epsilon:g}: {LABELS:,} labels cost {more['data_dependent_epsilon']:.2f} on these votes; "
                f"released as {more['sanitised_epsilon']:.2f}, at {more['with_sanitising']:.2f} in all"
            )
    return tuple(notes)
