"""A run of rounds that noise hides is called so before it is paid for, by public facts alone."""

import numpy as np
import pandas as pd
import pytest

import quorate
from quorate import PrivateClassifier, PublicPool, Schema
from quorate.data.feature_maps.coordinates import public_features
from quorate.direct.budgets import PlannedBudgets
from quorate.direct.plan import plan_direct

pytestmark = pytest.mark.heavy
CODE = "rounds-tell-nothing"
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 4)), RNG.integers(0, 3, 60)
FRAME = pd.DataFrame(X, columns=list("abcd"))
POOL = RNG.normal(size=(150, 4))
DECLARED = Schema(dict.fromkeys(FRAME.columns, (-6.0, 6.0)))


def codes(n_records, epsilon, n_classes=2, **data):
    clf = PrivateClassifier(classes=list(range(n_classes)), epsilon=epsilon, delta=1e-6, n_records=n_records)
    table = {"X": FRAME, "y": Y % n_classes, **data}
    return [caution.code for caution in quorate.check(clf, **table).cautions]


PATHS = {
    "records": {"public": PublicPool(pd.DataFrame(POOL, columns=FRAME.columns))},
    "persons": {"public": PublicPool(pd.DataFrame(POOL, columns=FRAME.columns)), "groups": np.arange(60) // 3},
    "three classes": {"public": PublicPool(pd.DataFrame(POOL, columns=FRAME.columns)), "n_classes": 3},
    "no public rows": {"schema": DECLARED},
}


@pytest.mark.parametrize(
    "name", ["records", "persons", "three classes", pytest.param("no public rows", marks=pytest.mark.heavy)]
)
def test_a_check_says_so_of_few_units_and_not_of_many(name):
    many = {"groups"} & PATHS[name].keys()  # of persons, fewer than 2,000 would be taught by votes
    assert CODE in codes(2_000 if many else 40, 0.002 if many else 0.1, **PATHS[name])
    assert CODE not in codes(40_000, 1.0, **PATHS[name])


def test_wide_columns_that_say_little_are_heard_of_where_as_many_of_few_are_not():
    wide = RNG.normal(size=(400, 60))
    alike = np.outer(wide[:, 0], np.ones(60)) + 0.3 * wide
    tables = {name: {"X": pool[:60], "public": PublicPool(pool[60:])} for name, pool in (("w", wide), ("a", alike))}
    assert CODE in codes(500, 0.1, **tables["w"])
    assert CODE not in codes(500, 0.1, **tables["a"])


@pytest.mark.parametrize("name", ["kernels", "linear", "both"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_share_is_that_of_second_moments_of_the_pool(name, n_classes):
    """By another road: coordinates of public rows have λ/(λ + κ) as mean squares, in a run and in a plan alike."""
    how = {"n_classes": n_classes, "n_units": 90, "epsilon": 0.7, "delta": 1e-5, "neighbours": "add-or-remove"}
    budgets = PlannedBudgets(POOL, name)
    outline, plan = budgets.outline(**how), plan_direct(budgets.feature_map, POOL, **how)
    z = public_features(budgets.feature_map, POOL) @ plan.coordinates.whitening
    second = sorted((z**2).mean(axis=0))[-2]
    assert plan.largest_share == pytest.approx(second, rel=1e-3)
    assert outline.largest_share == pytest.approx(second, rel=1e-3)


def test_a_plan_says_so_of_its_row_of_rounds():
    how = {"classes": [0, 1], "delta": 1e-6, "epsilon": 0.1, "rehearse": "no"}
    few, many = (quorate.plan(PublicPool(POOL), n_records=n, **how) for n in (40, 40_000))
    assert any(note.startswith("gradient rounds: the noise hides") for note in few.notes)
    assert not any("the noise hides" in note for note in many.notes)
    assert [bool(row.tree()["mind"]) for made in (few, many) for row in made.rows if row.way == "direct"] == [
        True,
        False,
    ]
