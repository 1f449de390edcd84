"""The binning step: a level is a function of its value and of public cuts; what was learned is said in their words.

The rule that chooses columns without a label: what it says of rows whose law is known.
"""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from quorate.errors import DataRefused, InvalidParameter
from quorate.learners import Binning, ExponentialLearner, telling_columns
from quorate.learners.concepts import Interval, PointFunction, Rectangle, Rectangles, Stump, Threshold

CUTS = {"age": (30, 40, 50), "job": ("nurse", "cook")}
ROWS = {"age": [29.9, 30.0, None, 55.0, float("nan")], "job": ["cook", "clerk", None, "nurse", "Cook"]}


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_levels(frame):
    assert Binning(CUTS).transform(frame(ROWS)).tolist() == [[0, 2], [1, 0], [0, 0], [3, 1], [0, 0]]


@given(ages=st.lists(st.one_of(st.none(), st.floats(), st.integers()), min_size=1, max_size=8), place=st.integers(0, 7))
def test_a_level_hangs_on_its_own_row_alone(ages, place):
    binning, frame = Binning({"age": (0, 10)}), pd.DataFrame({"age": pd.Series(ages, dtype=object)})
    together = binning.transform(frame)
    alone = binning.transform(frame.iloc[[place % len(ages)]])
    assert together[place % len(ages)].tolist() == alone[0].tolist()


def test_fitting_looks_at_nothing_and_a_copy_is_the_same():
    binning = Binning(CUTS)
    assert binning.fit(object(), object()).cuts is CUTS
    assert clone(binning).transform(pd.DataFrame(ROWS)).tolist() == binning.transform(pd.DataFrame(ROWS)).tolist()


def test_a_pool_tells_cuts_that_part_it_evenly():
    random = np.random.default_rng(0)
    pool = pd.DataFrame(
        {"x": random.normal(size=1_000), "job": random.choice(["a", "b", "c"], 1_000, p=[0.5, 0.3, 0.2])}
    )
    found = Binning.from_pool(pool, ["x", "job"], levels=4)
    assert np.bincount(found.transform(pool)[:, 0]).tolist() == [250, 250, 250, 250]
    assert found.cuts["job"] == ("a", "b", "c")
    assert Binning.from_pool(pool, ["job"], levels=3).cuts["job"] == ("a", "b")
    assert Binning.from_pool(pd.DataFrame({"gain": [0] * 99 + [7]}), ["gain"], levels=4).cuts == {"gain": (7.0,)}
    with pytest.raises(DataRefused, match="cannot be cut"):
        Binning.from_pool(pd.DataFrame({"x": [1, 1]}), ["x"])
    with pytest.raises(DataRefused, match="no column 'y'"):
        Binning.from_pool(pool, ["y"])


@pytest.mark.parametrize(
    "cuts", [{}, None, {"age": ()}, {"age": (2, 1)}, {"age": (1, 1)}, {"job": ("a", "a")}, {"a": "ab"}]
)
def test_what_is_no_cut_is_refused(cuts):
    with pytest.raises(InvalidParameter, match="cuts"):
        Binning(cuts).fit()


@pytest.mark.parametrize(
    ("concept", "said"),
    [
        (Rectangle((0, 0), (3, 3)), "always"),
        (Rectangle((1, 1), (0, 0)), "never"),
        (Rectangle((1, 0), (2, 9)), "age is at least 30 and below 50"),
        (Rectangle((0, 1), (0, 2)), "age is below 30 and job is nurse or cook"),
        (Rectangle((3, 0), (3, 1)), "age is at least 50 and job is not cook"),
        (Stump(0, 1.0, ">"), "age is at least 40"),
        (Stump(1, 0.0, "<="), "job is not nurse or cook"),
        (Stump(0, 3.0, ">"), "never"),
    ],
)
def test_a_rule_in_words(concept, said):
    binning = Binning(CUTS)
    assert binning.told(concept) == said
    levels = np.array(binning.domain)
    labels = concept.labels(levels.astype(np.int64))
    if said in {"always", "never"}:
        assert set(labels.tolist()) == {int(said == "always")}


def test_rules_on_one_column_in_words():
    binning = Binning({"age": (30, 40)})
    assert binning.told(Threshold(2)) == "age is below 40"
    assert binning.told(Threshold(0)) == "never"
    assert binning.told(Interval(1, 3)) == "age is at least 30"
    assert binning.told(PointFunction(1)) == "PointFunction(value=1)"


def test_a_table_is_learned_from_through_a_pipeline():
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {"age": random.integers(18, 80, 2_000), "job": random.choice(["nurse", "cook", "clerk"], 2_000)}
    )
    y = np.where((table["age"] >= 40) & (table["job"] == "cook"), "yes", "no")
    binning = Binning(CUTS)
    learner = ExponentialLearner(
        concepts=Rectangles(binning.bits, 2), epsilon=1.0, classes=["no", "yes"], unsafe_noise_seed=0
    )
    steps = make_pipeline(binning, learner).fit(table, y)
    assert steps.score(table, y) == 1.0
    assert binning.told(learner.concept_) == "age is at least 40 and job is cook"


def pool(n=600, seed=0):
    random = np.random.default_rng(seed)
    size, place = random.integers(0, 4, n), random.integers(0, 3, n)
    return {
        "noise": random.random(n),
        "constant": np.ones(n),
        "weight": size * 10 + random.integers(0, 9, n),
        "size": size,
        "price": size // 2,
        "town": np.array(["a", "b", "c"])[place],
        "postcode": place * 100,
    }


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_that_say_most_about_the_others_come_first_and_the_second_says_something_new(frame):
    for seed in range(5):
        first, second = telling_columns(frame(pool(seed=seed)), 2)
        assert {first, second} & {"weight", "size"}
        assert {first, second} & {"town", "postcode"}


def test_the_order_of_the_rows_and_of_equal_columns_is_all_that_a_frame_adds():
    found = telling_columns(pd.DataFrame(pool()), 3)
    assert telling_columns(pd.DataFrame(pool()).iloc[::-1], 3) == found
    assert len(set(found)) == 3
    assert telling_columns(pd.DataFrame(pool()), 1, columns=["noise", "price"]) == ("noise",)


def test_noise_does_not_look_telling_because_rows_are_few():
    """Without the correction a column of many levels would seem to say most in so few rows."""
    random = np.random.default_rng(0)
    rows = {f"noise {place}": random.random(160) for place in range(6)}
    size = random.integers(0, 2, 160)
    assert telling_columns(pd.DataFrame({**rows, "size": size, "sign": size * 2 - 1}), 1, levels=8) in {
        ("size",),
        ("sign",),
    }


def test_what_cannot_be_chosen_is_refused():
    with pytest.raises(InvalidParameter, match="at most 6"):
        telling_columns(pd.DataFrame(pool()), 7)
    with pytest.raises(InvalidParameter, match="n_columns"):
        telling_columns(pd.DataFrame(pool()), 0)


def test_dates_and_mixed_cells_are_left_out_or_refused_by_name() -> None:
    random = np.random.default_rng(0)
    size = random.integers(0, 4, 200)
    pool = pd.DataFrame(
        {
            "size": size,
            "weight": size * 10,
            "day": [date(2020, 1, 1 + each % 28) for each in range(200)],
            "mixed": [each if each % 2 else "word" for each in range(200)],
        }
    )
    assert set(telling_columns(pool, 2)) == {"size", "weight"}
    for name in ("day", "mixed"):
        with pytest.raises(DataRefused, match=f"column '{name}' holds other things than numbers"):
            telling_columns(pool, 1, columns=["size", name])
    with pytest.raises(InvalidParameter, match="pool must be a pandas or polars frame"):
        telling_columns(np.zeros((3, 2)), 1)
