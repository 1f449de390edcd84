"""Rows on their way to the teachers: the same ones in any groups, and enough for a model to make something of."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from quorate import PublicPool
from quorate.data.canonical import row_digests
from quorate.data.digests import AT_ONCE, PackedDigests, pack
from quorate.ensemble import ConstantVoter
from quorate.errors import InvalidParameter
from quorate.findings import Outcome
from quorate.noise import SeededNoise
from quorate.run.cautions import TEACHERS_ARE_CONSTANTS
from quorate.types import Secret
from quorate.voting import shard_rows
from quorate.voting.config import RunConfig
from quorate.voting.method import VOTES
from quorate.voting.prepare import prepare
from quorate.voting.shard_rows import shards_of


def visits(n, seed):
    """Columns of every kind that pandas holds, with gaps; few words are in all parts of the table."""
    chance = np.random.default_rng(seed)
    whole = chance.integers(18, 95, n)
    return pd.DataFrame({
        "age": pd.array(whole, dtype="Int64"),
        "bmi": [None if row % 7 == 3 else float(value) for row, value in enumerate(chance.normal(26, 4, n))],
        "ward": pd.Categorical(chance.choice(["north", "south", "west"], n, p=[0.7, 0.28, 0.02])),
        "day": pd.to_datetime("2024-01-01") + pd.to_timedelta(whole, unit="D"),
        "note": [None if row % 5 else f"seen after {value} days of cough" for row, value in enumerate(whole % 9)],
    })  # fmt: skip


class OfAnotherLibrary(DecisionTreeClassifier):
    """A teacher that may touch anything, so that each has a process of its own."""


def task_on(table, pool, *, polars, teacher=None):
    key = Secret(bytes(range(32)))
    tables = [pl.from_pandas(rows) if polars else rows for rows in (table, pool)]
    labels = np.where(table["age"].to_numpy(dtype=float) > 50, "yes", "no")
    asked = {"epsilon": 2.0, "delta": 1e-5, "n_teachers": 12, "classes": ("no", "yes"), "allow_hopeless": True}
    config = RunConfig(**asked, teacher=teacher)
    how = {"public": PublicPool(tables[1]), "groups": None, "key": key, "fingerprint_key": key}
    return VOTES.prepare(config, tables[0], labels, **how, noise=SeededNoise(1))


def given(task):
    """Return in how many parts the rows come, and what each teacher is trained on, as bytes."""
    rows = {}
    parts = set()
    for part in shard_rows.rows_by_teacher(task, shards_of(task), [range(12)]):
        parts.add(part.numbers)
        for number in part.numbers:
            mine = part.shards.reveal() == number
            rows[number] = np.asarray(part.X)[mine].tobytes() + part.codes[mine].tobytes()
    return len(parts), rows


@pytest.mark.heavy
@pytest.mark.parametrize("polars", [False, True], ids=["pandas", "polars"])
@pytest.mark.parametrize(("size", "teacher"), [("_AT_ONCE", None), ("_AT_ONCE_APART", OfAnotherLibrary())])
def test_in_small_groups_each_teacher_gets_the_same_rows(size, teacher, polars, monkeypatch):
    """And a group that is seen without what the whole table says of its types would be noticed."""
    task = task_on(visits(240, 1), visits(80, 2), polars=polars, teacher=teacher)
    one, whole = given(task)
    monkeypatch.setattr(shard_rows, size, 6_000)
    several, cut = given(task)
    assert (one, cut) == (1, whole)
    assert several > 3
    monkeypatch.setattr(
        shard_rows, "take", lambda X, rows: X[:1][[0] * len(rows)] if polars else X.iloc[[0] * len(rows)]
    )
    assert given(task)[1] != whole


@pytest.mark.heavy
def test_digests_of_many_rows_are_packed_and_the_same():
    table = np.arange(2.0 * (AT_ONCE + 3)).reshape(-1, 2)
    packed, listed = row_digests(table), row_digests(table[:9])
    assert isinstance(packed, PackedDigests)
    assert not isinstance(listed, PackedDigests)
    assert list(packed[:9]) == listed
    assert packed[-1] == row_digests(table[-1:])[0]
    assert (pack(row_digests(pl.DataFrame(table))).array == packed.array).all()


N = 900
RNG = np.random.default_rng(0)
X, POOL = RNG.normal(size=(N, 4)), RNG.normal(size=(120, 4))
Y = (X[:, 0] > 0).astype(np.int64)


def looked(teacher, labels=Y, **changes):
    key, noise = Secret(bytes(32)), SeededNoise(1)
    asked = {"classes": [0, 1], "epsilon": 1.0, "delta": 1e-5, "n_teachers": 50, "n_records": N, "n_jobs": 1}
    asked |= {"allow_hopeless": True, **changes}
    how = {"public": PublicPool(POOL), "groups": None, "key": key, "fingerprint_key": key, "noise": noise}
    task = prepare(RunConfig(teacher=teacher, **asked), X, labels, **how)
    return next((each for each in task.recipe.considered if each.code == TEACHERS_ARE_CONSTANTS), None)


LEAVES_OF_20 = HistGradientBoostingClassifier(max_iter=5)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("teacher", "n_teachers", "applies"),
    [
        (LEAVES_OF_20, 50, True),  # 18 rows each
        (LEAVES_OF_20, 10, False),
        (HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5), 50, False),
        (KNeighborsClassifier(19), 50, True),  # asks for more neighbours than there are rows, and fails
        (KNeighborsClassifier(3), 50, False),
        (LogisticRegression(), 225, False),  # four rows each
        (DecisionTreeClassifier(), 225, False),
    ],
    ids=str,
)
def test_a_model_that_says_one_class_on_so_few_rows_is_said_to(teacher, n_teachers, applies):
    found = looked(teacher, n_teachers=n_teachers)
    assert found.applies is applies
    assert found.words.startswith(f"on {N // n_teachers} rows") is applies


@pytest.mark.heavy
def test_private_labels_say_nothing_of_it():
    same = [looked(LEAVES_OF_20, labels) for labels in (Y, 1 - Y, np.zeros_like(Y))]
    assert same[0] == same[1] == same[2]


@pytest.mark.parametrize("changes", [{"n_records": None}, {"n_teachers": 5}], ids=str)
def test_where_the_size_is_not_public_or_the_pool_too_small_nothing_is_looked_at(changes):
    assert looked(LEAVES_OF_20, **changes).outcome is Outcome.NOT_RUN


def test_the_default_model_needs_no_trial():
    assert looked(None) is None


class Votes:
    def __init__(self, code):
        self.code = code

    def train(self, X, y, seed):
        return ConstantVoter(self.code)


@pytest.mark.parametrize(
    ("code", "changes", "said"),
    [(7, {}, "Votes fails on the public rows"), (1, {"prior_matching": True}, "without fit")],
)
def test_one_that_votes_for_no_class_or_has_no_scores_to_match_priors_with_is_refused(code, changes, said):
    with pytest.raises(InvalidParameter, match=said):
        looked(Votes(code), **changes)
