"""The default map of tables: linear features, and what two kernels add to them, each image by its row alone."""

from __future__ import annotations

from math import exp
from typing import Any

import numpy as np
import polars as pl
import pytest
from threadpoolctl import threadpool_limits

from quorate.data.feature_maps import LinearMap, ProductKernelMap, ResidualMap, composed
from quorate.data.feature_maps.composed import MOST_FREEDOM, regression_on
from quorate.data.feature_maps.coordinates import public_features
from quorate.data.feature_maps.named import feature_map_for
from quorate.data.feature_maps.nystroem import ALL_INTERVALS, FEWEST, INTERVALS, columns_of
from quorate.deferred import skops
from quorate.direct.plan import DirectPlan, plan_direct
from quorate.errors import InvalidParameter
from quorate.run.schema import Schema

RNG = np.random.default_rng(0)
N = 120
FRAME = pl.DataFrame(
    {
        "age": RNG.integers(18, 90, N).astype(float),
        "bmi": [None if at % 11 == 0 else value for at, value in enumerate(RNG.normal(25, 4, N).tolist())],
        "smokes": RNG.integers(0, 2, N),
        "ward": RNG.choice(["a", "b", "c", "d"], N),
        "sex": RNG.choice(["F", "M"], N),
    }
)
SCHEMA = Schema.of(FRAME)
POOL = SCHEMA.numbers(FRAME)
UNSEEN = pl.DataFrame(
    {"age": [200.0, -5.0], "bmi": [None, 1e9], "smokes": [1, 0], "ward": ["z", None], "sex": ["F", ""]}
)


@pytest.fixture(scope="module")
def fitted() -> ResidualMap:
    return ResidualMap.fit(POOL, categories=SCHEMA.indicator_blocks)


@pytest.fixture(scope="module")
def plan(fitted: ResidualMap) -> DirectPlan:
    return plan_direct(fitted, POOL, n_classes=2, n_units=3_000, epsilon=1.0, delta=1e-5)


def hostile() -> Any:
    rows = np.vstack([POOL[:30], SCHEMA.numbers(SCHEMA.parsed(UNSEEN)[0]), POOL[:5] * 1e200, -POOL[:5], POOL[:5] / 3])
    rows[-1, 0] = np.nan
    return rows


@pytest.mark.filterwarnings("ignore")
def test_a_row_has_the_same_integers_alone_and_among_others(plan: DirectPlan) -> None:
    rows = hostile()
    for see in (plan.coordinates.feature_map.images, plan.coordinates):
        with threadpool_limits(1):
            together = see(rows)
        with threadpool_limits(2):
            alone = np.vstack([see(rows[at : at + 1]) for at in range(len(rows))])
            assert np.array_equal(alone, together, equal_nan=True)
            assert np.array_equal(see(rows[::-1])[::-1], together, equal_nan=True)
    finite = np.isfinite(rows).all(axis=1)
    lengths = np.linalg.norm(plan.coordinates.feature_map.images(rows[finite]), axis=1)
    assert (lengths <= plan.coordinates.feature_map.bound * 2.0**plan.coordinates.feature_map.bits).all()


def slow_product(row: Any, other: Any, ranks: Any) -> float:
    """The product kernel of two rows, column by column, as the formula says it."""
    kernels = [exp(-abs(ranks[name](row[name]) - ranks[name](other[name])) / 0.5) for name in ("age", "bmi")]
    kernels += [float(row[name] == other[name]) for name in ("gap", "smokes", "ward", "sex")]
    a = 2 / len(kernels)
    return float(np.prod([(1 + a * kernel) / (1 + a) for kernel in kernels]))


def test_the_product_kernel_is_the_formula() -> None:
    product = ProductKernelMap.fit(POOL, np.arange(N), categories=SCHEMA.indicator_blocks)
    images = product.images(POOL) * 2.0**-product.bits
    filled = POOL[:, 1].tolist()  # a missing one is the mean, beside its indicator
    table = [dict(row, bmi=bmi, gap=row["bmi"] is None) for row, bmi in zip(FRAME.to_dicts(), filled, strict=True)]

    def rank_of(name: str) -> Any:
        values = np.array([row[name] for row in table])
        return lambda value: ((values < value).sum() + (values <= value).sum()) / (2 * N)

    ranks = {"age": rank_of("age"), "bmi": rank_of("bmi")}
    for at, row in enumerate(table[:20]):
        for place, other in enumerate(table[:40]):  # many values are told by intervals, each of 1/64 of the rows
            assert images[at, place] == pytest.approx(slow_product(row, other, ranks), rel=0.02)
    assert np.allclose(np.diag(images), 1.0, atol=1e-6)


def test_a_value_that_the_pool_does_not_list_equals_no_row_of_it() -> None:
    product = ProductKernelMap.fit(POOL, np.arange(N), categories=SCHEMA.indicator_blocks)
    known, unknown = POOL[:1].copy(), POOL[:1].copy()
    first, end = SCHEMA.indicator_blocks[0]
    unknown[0, first:end] = 0.0
    a, same = 2 / 6, POOL[:, first:end] @ known[0, first:end] == 1
    ratio = product.images(unknown)[0] / product.images(known)[0]
    assert np.allclose(ratio[same], 1 / (1 + a), atol=1e-5)
    assert np.allclose(ratio[~same], 1.0, atol=1e-5)


def test_what_the_kernels_add_is_nothing_linear(fitted: ResidualMap) -> None:
    features = public_features(fitted, POOL)
    linear, residual = features[:, : fitted.n_linear], features[:, fitted.n_linear :]
    kernels = residual + linear @ fitted.regression
    explained = np.linalg.norm(linear.T @ residual) / np.linalg.norm(linear.T @ kernels)
    assert explained < 0.05
    assert np.linalg.norm(features, axis=1).max() <= fitted.longest


@pytest.mark.parametrize("m", [2, 5, 30])
def test_with_few_public_rows_the_regression_does_not_fit_them(m: int) -> None:
    """It would leave nothing of these rows, and everything of others."""
    rng = np.random.default_rng(m)
    linear = rng.normal(size=(m, 40))
    kernels = rng.normal(size=(m, 3))
    hat = linear @ regression_on(linear, np.eye(m))
    assert np.trace(hat) <= MOST_FREEDOM * m * (1 + 1e-6)
    left = kernels - linear @ regression_on(linear, kernels)
    assert np.linalg.norm(left) > 0.5 * np.linalg.norm(kernels)


def test_a_wide_pool_is_regressed_by_its_rows_as_by_its_columns() -> None:
    linear, kernels = RNG.normal(size=(30, 90)), RNG.normal(size=(30, 7))
    basis, triangle = np.linalg.qr(linear.T)  # the same rows in as many columns
    np.testing.assert_allclose(regression_on(linear, kernels), basis @ regression_on(triangle.T, kernels), atol=1e-9)


def test_a_matrix_without_its_zeros_makes_the_same_features(
    fitted: ResidualMap, monkeypatch: pytest.MonkeyPatch
) -> None:
    features, matrix = public_features(fitted, POOL), np.asarray(fitted.mixing)
    monkeypatch.setattr(composed, "WRITTEN_OUT", 0)
    assert np.array_equal(fitted.mixing.toarray(), matrix)
    np.testing.assert_allclose(public_features(fitted, POOL), features, atol=1e-12)


def test_the_published_transformer_is_the_map_and_opens_without_trust(plan: DirectPlan) -> None:
    feature_map = plan.coordinates.feature_map
    outputs = plan.coordinates.whitening @ np.random.default_rng(2).normal(size=(plan.coordinates.n_coordinates, 3))
    weights, intercepts = feature_map.weights(outputs)
    written = skops.io.dumps(feature_map.transformer(POOL))
    assert skops.io.get_untrusted_types(data=written) == []
    published = skops.io.loads(written)
    for rows in (POOL, SCHEMA.numbers(SCHEMA.parsed(UNSEEN)[0])):
        expected = public_features(feature_map, rows) @ outputs
        scores = published.transform(rows) @ weights + intercepts
        assert np.allclose(scores, expected, atol=0.005 * np.abs(expected).max())


def test_many_numbers_have_fewer_intervals_each() -> None:
    pool = np.random.default_rng(1).normal(size=(200, 100))
    many = ProductKernelMap.fit(pool, np.arange(50))
    few = ProductKernelMap.fit(pool[:, :3], np.arange(50))
    assert {len(own) + 1 for own in few.cuts} == {INTERVALS}
    assert {len(own) + 1 for own in many.cuts} == {max(ALL_INTERVALS // 100, FEWEST)}


def test_columns_without_spread_and_long_lists_are_left_out() -> None:
    pool = np.hstack([np.ones((40, 1)), np.eye(40)])
    assert columns_of(pool, [(1, 41)]) == (pytest.approx([]), ())
    with pytest.raises(InvalidParameter, match=r'^feature_map="kernels" takes columns of numbers, or of categories of'):
        feature_map_for("kernels", pool, categories=[(1, 41)])
    assert isinstance(feature_map_for("linear", pool), LinearMap)
