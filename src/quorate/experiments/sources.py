"""Labelled public data for experiments: some rows play the private ones, others the public pool.

Mushroom and Adult come with the package. The larger sets lie in a folder that the caller names, or that the
environment variable ``QUORATE_DATA`` names; nothing is downloaded.
"""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.data import load_adult, load_mushroom, n_rows, read_data, take
from quorate.ensemble import ClassifierTeacher, count_votes, hash_shards, train_teachers
from quorate.errors import DataRefused, PreconditionFailed
from quorate.types import IntArray, Secret

REAL_SIM_FEATURES = 20_958
PRIVATE_SHARE = 0.8


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledTable:
    """A data set that is public as a whole, with class codes ``(n_rows,)``; `counts_words`: what its columns are."""

    name: str
    X: Any = field(repr=False)
    codes: IntArray = field(repr=False)
    classes: tuple[int, ...] = (0, 1)
    counts_words: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Split:
    """One division of a data set into private, public and test rows; the labels of the public pool are left behind."""

    name: str
    X_private: Any = field(repr=False)
    y_private: IntArray = field(repr=False)
    X_public: Any = field(repr=False)
    X_test: Any = field(repr=False)
    y_test: IntArray = field(repr=False)


def split(data: LabelledTable, seed: int, *, n_public: int | None = None) -> Split:
    """Divide at random: 80 % private, 2 % public or `n_public`, and what is left of 20 % to test (LZCW21 Sect. 6)."""
    n = n_rows(data.X)
    order = np.random.default_rng(seed).permutation(n)
    first = int(PRIVATE_SHARE * n)
    second = first + (int(0.02 * n) if n_public is None else n_public)
    private, public, test = order[:first], order[first:second], order[second:]
    rows = [take(data.X, part) for part in (private, public, test)]
    if data.counts_words:
        rows = weighed_words(*rows)
    return Split(
        name=data.name,
        X_private=rows[0],
        y_private=data.codes[private],
        X_public=rows[1],
        X_test=rows[2],
        y_test=data.codes[test],
    )


def seeded_votes(
    teacher: Any, X: Any, codes: IntArray, points: Any, seed: int, *, n_teachers: int, n_classes: int, n_jobs: int = 1
) -> Secret[IntArray]:
    """Train teachers on public rows that play the private ones, and count their votes ``(n_points, n_classes)``.

    Shards are those of a seed: an experiment that can be made again has no guarantee.
    """
    key = seeded_key(seed)
    shards = hash_shards([row.to_bytes(8, "big") for row in range(len(codes))], n_teachers, key)
    ensemble = train_teachers(
        ClassifierTeacher(teacher), X, codes, shards, n_teachers=n_teachers, n_classes=n_classes, key=key, n_jobs=n_jobs
    )
    return count_votes(ensemble, points, n_jobs=n_jobs)


def seeded_key(seed: int) -> Secret[bytes]:
    """Return the key of shards and strategies that a seed stands for."""
    return Secret(seed.to_bytes(32, "big"))


def mushroom() -> LabelledTable:
    """Mushroom as 112 indicators: poisonous (1) or edible."""
    loaded = load_mushroom()
    return LabelledTable(name="mushroom", X=loaded.one_hot(), codes=(loaded.labels == "poisonous").astype(np.int64))


def a9a() -> LabelledTable:
    """Adult, train and test together, as the 123 indicators of a9a: above 50K (1) or not."""
    adult = load_adult()
    labels = np.concatenate([adult.train_labels, adult.test_labels])
    return LabelledTable(name="a9a", X=adult.a9a(), codes=(labels == ">50K").astype(np.int64))


def imdb(folder: Path) -> LabelledTable:
    """Film reviews as word counts, sparse; a split weighs the words by its public pool (:func:`weighed_words`)."""
    table = read_data(file_of(folder, "imdb/imdb_counts.npz"), label="y")
    return LabelledTable(name="imdb", X=table.X, codes=np.asarray(table.y, dtype=np.int64), counts_words=True)


def real_sim(path: Path) -> LabelledTable:
    """real-sim of the LIBSVM collection, from a file of the user's: svmlight text, labels +1 and -1."""
    table = read_data(path, n_features=REAL_SIM_FEATURES)
    labels = np.asarray(table.y)
    if not set(np.unique(labels).tolist()) <= {-1, 1}:
        raise DataRefused(
            f"{path} must hold labels +1 and -1, as real-sim does; give the file of the LIBSVM collection"
        )
    return LabelledTable(name="real-sim", X=table.X, codes=(labels == 1).astype(np.int64))


def weighed_words(private: Any, public: Any, test: Any) -> list[Any]:
    """Return counts as rows of TF-IDF of length one; how rare a word is, is read off the public rows alone."""
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import TfidfTransformer

    weights = TfidfTransformer(sublinear_tf=True).fit(public)
    return [csr_array(weights.transform(rows)) for rows in (private, public, test)]


def mnist(folder: Path) -> tuple[LabelledTable, LabelledTable]:
    """The digits: 60,000 for training and 10,000 for testing, 784 grey values each, divided by 255."""
    parts = []
    for name in ("train", "t10k"):
        images = idx(file_of(folder, f"mnist/{name}-images-idx3-ubyte.gz"))
        labels = idx(file_of(folder, f"mnist/{name}-labels-idx1-ubyte.gz"))
        parts.append(
            LabelledTable(
                name="mnist",
                X=(images.reshape(len(images), -1) / 255).astype(np.float32),
                codes=labels.astype(np.int64),
                classes=tuple(range(10)),
            )
        )
    return parts[0], parts[1]


def idx(path: Path) -> NDArray[np.uint8]:
    """Read an idx file: two zero bytes, the type (8: unsigned byte), the number of dimensions, sizes, data.

    Raises DataRefused if the file is none, or is cut short.
    """
    content = gzip.decompress(path.read_bytes())
    dimensions = content[3] if content[:3] == b"\x00\x00\x08" and len(content) > 3 else 0
    head = 4 + 4 * dimensions
    sizes = np.frombuffer(content[4 : head - head % 4], dtype=np.uint8).reshape(-1, 4) @ np.array(
        [2**24, 2**16, 2**8, 1]
    )
    values = np.frombuffer(content[head:], dtype=np.uint8)
    if not dimensions or len(sizes) != dimensions or values.size != sizes.prod():
        raise DataRefused(f"{path} is no idx file of unsigned bytes, or is cut short; put the published one there")
    return values.reshape(sizes)


def file_of(folder: Path, name: str) -> Path:
    """Return the path of a larger data set's file, which must be there."""
    path = folder / name
    if not path.is_file():
        raise PreconditionFailed(
            f"{name} is not in {folder}; put the data set there, or name its folder with --files or QUORATE_DATA"
        )
    return path


def folder_of_files(folder: Path | None = None) -> Path:
    """Return the folder of the larger data sets: the given one, or ``QUORATE_DATA``."""
    chosen = folder or os.environ.get("QUORATE_DATA")
    if not chosen:
        raise PreconditionFailed(
            "this needs data sets that do not come with the package; name their folder with --files or QUORATE_DATA "
            "(docs/experiments.md says which files)"
        )
    return Path(chosen)
