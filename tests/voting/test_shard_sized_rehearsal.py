"""Models that make nothing of a shard are found out on public rows of that size, before anything is charged."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from quorate import PublicPool
from quorate.findings import Outcome
from quorate.release.charge import noise_and_key
from quorate.run.cautions import TEACHERS_ARE_CONSTANTS
from quorate.types import Secret
from quorate.voting.config import RunConfig
from quorate.voting.prepare import prepare

N = 900
RNG = np.random.default_rng(0)
X, POOL = RNG.normal(size=(N, 4)), RNG.normal(size=(120, 4))
Y = (X[:, 0] > 0).astype(np.int64)


def looked(teacher, labels=Y, **changes):
    noise, key = noise_and_key(1)
    asked = {"classes": [0, 1], "epsilon": 1.0, "delta": 1e-5, "n_teachers": 50, "n_records": N, "n_jobs": 1}
    asked |= {"allow_hopeless": True, **changes}
    task = prepare(
        RunConfig(teacher=teacher, **asked), X, labels, public=PublicPool(POOL), groups=None, key=key,
        fingerprint_key=Secret(bytes(32)), noise=noise,
    )  # fmt: skip
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
