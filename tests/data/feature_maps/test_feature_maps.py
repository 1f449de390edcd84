"""Feature maps: functions of public data, each image a function of its row, bit for bit, and stored openly."""

from dataclasses import dataclass
from math import exp as slow_exp

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from sklearn.ensemble import RandomTreesEmbedding
from sklearn.metrics.pairwise import additive_chi2_kernel
from tests.data.feature_maps.test_fitted_transformer import alone_differs

from quorate.data.feature_maps import (
    LinearMap,
    PatchFeatures,
    PoolScale,
    ProductKernelMap,
    TreeLeaves,
    composed,
    coordinates,
)
from quorate.data.feature_maps import first_maps as patches_room
from quorate.data.feature_maps.composed import MOST_FREEDOM, feature_map_for, regression_on
from quorate.data.feature_maps.coordinates import LENGTH_BITS, PublicCoordinates, Spectrum, public_features
from quorate.data.feature_maps.exact import bits_for, exp, unit_rows
from quorate.data.feature_maps.nystroem import (
    ALL_INTERVALS,
    BITS,
    FEWEST,
    INTERVALS,
    SHARE_BITS,
    columns_of,
    kernel,
    shares,
)
from quorate.deferred import skops
from quorate.direct.contribution_check import check_contributions, faults_of, made_up
from quorate.direct.contributions import lengths_of
from quorate.direct.plan import plan_direct
from quorate.direct.stored import dump_plan, load_plan
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
UNSEEN = SCHEMA.numbers(
    SCHEMA.parsed(
        pl.DataFrame(
            {"age": [200.0, -5.0], "bmi": [None, 1e9], "smokes": [1, 0], "ward": ["z", None], "sex": ["F", ""]}
        )
    )[0]
)
TABLE = RNG.normal(size=(150, 30)) * np.geomspace(1, 100, 30)
TABLE[:, :5] = TABLE[:, :5] > 0
SMALL = RNG.normal(size=(120, 6))
COUNTS = RNG.poisson(2.0, (90, 12)).astype(float)
IMAGES = (np.kron(RNG.random((260, 5, 5)), np.ones((2, 2))) + 0.2 * RNG.random((260, 10, 10))).reshape(260, -1)
POOLS = {
    "linear": TABLE, "rbf": TABLE, "both": TABLE, "kernels": POOL, "trees": SMALL, "chi2": COUNTS, "patches": IMAGES,
}  # fmt: skip


def mapped(name):
    return feature_map_for(name, POOLS[name], categories=SCHEMA.indicator_blocks if name == "kernels" else ())


@pytest.fixture(scope="module")
def fitted():
    return mapped("kernels")


@pytest.fixture(scope="module", params=POOLS)
def planned(request):
    how = {"n_classes": 3, "n_units": 2_000, "epsilon": 1.0, "delta": 1e-5}
    return plan_direct(mapped(request.param), POOLS[request.param], **how), POOLS[request.param]


def dense(made):
    return made.toarray() if sparse.issparse(made) else made


@pytest.mark.default_cases(3)
@pytest.mark.filterwarnings("ignore")
def test_a_row_has_the_same_integers_alone_in_any_subset_order_and_number_of_threads(planned):
    plan, pool = planned
    feature_map, hostile = plan.coordinates.feature_map, [pool[:40], pool[:9] * 1e200, -pool[:9], pool[:5] * 1e-200]
    hostile += [np.zeros((2, pool.shape[1])), np.full((2, pool.shape[1]), 1e308), pool[:5] / 3]
    hostile = np.vstack([*hostile, UNSEEN] if pool is POOL else hostile)
    if pool is POOL:  # of a table: a number that is missing
        hostile[-3, 0] = np.nan
    finite = np.isfinite(hostile).all(axis=1)
    for see in (feature_map.images, plan.coordinates):
        together = dense(see(hostile))
        assert (together == np.rint(together))[finite].all()
        assert not alone_differs(see, hostile)
    images = dense(feature_map.images(hostile[finite])) * 2.0**-feature_map.bits
    assert (np.linalg.norm(images, axis=1) <= feature_map.bound).all()
    spectrum = Spectrum.of(dense(public_features(feature_map, pool)))
    finest = PublicCoordinates.of(feature_map, spectrum.whitening(spectrum.least_ridge))
    for see in (plan.coordinates, finest):
        assert (np.linalg.norm(see(hostile[finite]), axis=1) <= 2.0**26).all()


@pytest.mark.default_cases(3)
def test_the_published_transformer_is_the_map_and_opens_without_trust(planned):
    plan, pool = planned
    feature_map = plan.coordinates.feature_map
    outputs = plan.coordinates.whitening @ np.random.default_rng(2).normal(size=(plan.coordinates.n_coordinates, 3))
    weights, intercepts = feature_map.weights(outputs)
    written = skops.io.dumps(feature_map.transformer(pool))
    assert skops.io.get_untrusted_types(data=written) == []
    published = skops.io.loads(written)
    for rows in (pool, UNSEEN) if pool is POOL else (pool,):
        expected = dense(public_features(feature_map, rows)) @ outputs
        scores = published.transform(rows) @ weights + intercepts
        assert np.allclose(scores, expected, atol=(0.005 if pool is POOL else 0.02) * np.abs(expected).max())


@pytest.mark.default_cases(1)
def test_blocks_change_nothing(planned, monkeypatch):
    plan, pool = planned
    whole = plan.coordinates(pool)
    monkeypatch.setattr(coordinates, "BLOCK", 7)
    monkeypatch.setattr(patches_room, "_BLOCK", 3)
    assert (plan.coordinates(pool) == whole).all()


@pytest.mark.default_cases(2)
def test_a_plan_is_read_back_bit_for_bit_and_adds_the_same(planned):
    plan, pool = planned
    check_contributions(plan, pool)
    again, encoder = load_plan(dump_plan(plan, None))
    assert (encoder, again.digest, again.event) == (None, plan.digest, plan.event)
    assert (again.coordinates(pool) == plan.coordinates(pool)).all()
    assert again.coordinates.feature_map.words == plan.coordinates.feature_map.words
    assert faults_of(again, *made_up(again, pool)) == []


@pytest.mark.heavy
def test_a_batched_twin_is_caught(planned, monkeypatch):
    """The twin takes the mean of the batch off its images, as a careless contrast step does."""
    plan, pool = planned
    images = type(plan.coordinates.feature_map).images
    monkeypatch.setattr(
        type(plan.coordinates.feature_map), "images", lambda self, rows: images(self, rows - rows.mean(axis=0))
    )
    assert "the coordinates of a row depend on the rows beside it" in faults_of(plan, *made_up(plan, pool))


def test_an_encoder_is_read_back_with_its_plan():
    plan = plan_direct(mapped("linear"), TABLE, n_classes=3, n_units=2_000, epsilon=1.0, delta=1e-5)
    _, encoder = load_plan(dump_plan(plan, SCHEMA.encoder))
    assert (encoder.transform(FRAME) == SCHEMA.encoder.transform(FRAME)).all()


def test_sparse_rows_have_the_coordinates_of_their_dense_twin():
    rows = sparse.random(60, 400, density=0.05, format="csr", random_state=0)
    fitted = LinearMap.fit(rows)
    images = fitted.images(rows)
    assert sparse.issparse(images)
    alone = sparse.vstack([fitted.images(rows[i]) for i in range(60)])
    assert (images != alone).nnz == 0
    assert (images.toarray()[:, :-1] == unit_rows(rows.toarray(), fitted.bits)).all()


def test_coordinates_are_whitened_features():
    feature_map = mapped("linear")
    features = np.asarray(public_features(feature_map, TABLE))
    spectrum = Spectrum.of(features)
    ridge = spectrum.ridge_for(10.0)
    whitened = PublicCoordinates.of(feature_map, spectrum.whitening(ridge))
    z = whitened(TABLE) * 2.0**-whitened.bits
    assert np.allclose(z, features @ spectrum.whitening(ridge), atol=2.0**-whitened.bits)
    assert np.mean((z**2).sum(axis=1)) == pytest.approx(10.0, rel=1e-3)


def test_the_dual_form_finds_the_same_spectrum():
    wide = np.random.default_rng(0).normal(size=(20, 50))
    dual, primal = Spectrum.of(wide), np.linalg.eigvalsh(wide.T @ wide / 20)[::-1][:20]
    assert np.allclose(dual.values, primal)
    assert np.allclose(dual.vectors.T @ dual.vectors, np.eye(20), atol=1e-9)


@pytest.mark.heavy
@pytest.mark.heavy_cases(1)
@pytest.mark.parametrize("n_columns", [3, 8])
def test_they_are_near_those_of_floats_where_many_directions_count(n_columns):
    pool, rows = np.split(np.random.default_rng(0).normal(size=(700, n_columns)), [500])
    feature_map = feature_map_for("auto", pool)
    coordinates = plan_direct(feature_map, pool, n_classes=2, n_units=50_000, epsilon=1.0, delta=1e-6).coordinates
    z = coordinates(rows) * 2.0**-coordinates.bits
    floats = feature_map.images(rows) * 2.0**-feature_map.bits @ feature_map.mixing @ coordinates.whitening
    assert np.linalg.norm(z - floats) < 0.05 * np.linalg.norm(floats)
    assert lengths_of(coordinates(rows)).max() <= 2.0 ** (LENGTH_BITS - 1)
    assert lengths_of(coordinates(rows)).min() > 0


@dataclass
class Passed:
    """Rows as their own images, of any length up to a bound."""

    bits: int = 10
    n_images: int = 3
    bound: float = 1e5
    mixing: None = None

    def images(self, rows):
        return np.rint(rows * 2.0**self.bits)


def test_a_row_that_is_too_long_is_zero_alone_and_beside_others():
    coordinates = PublicCoordinates.of(Passed(), np.eye(3))
    rows = np.array([[1.0, -2.0, 0.5], [9e3, 0.0, 1.0], [8e3, 0.0, 1.0], [5e4, 5e4, 5e4]])
    made = coordinates(rows)
    assert (made[[1, 3]] == 0).all()
    assert (made[[0, 2]] == rows[[0, 2]] * 2.0**coordinates.bits).all()
    assert (np.vstack([coordinates(rows[[i]]) for i in range(4)]) == made).all()
    assert lengths_of(made).max() <= 2.0 ** (LENGTH_BITS - 1)


@pytest.mark.heavy
def test_leaves_are_those_of_the_forest_they_were_read_off():
    forest = RandomTreesEmbedding(100, max_depth=5, random_state=0).fit(SMALL)
    rows = SMALL.astype(np.float32).astype(float)  # as scikit-learn's trees compare them
    assert (TreeLeaves.fit(SMALL).numbers(rows).toarray() == forest.transform(rows).toarray()).all()


@pytest.mark.heavy
def test_a_tree_of_one_leaf_has_one_column():
    pool = np.repeat([[0.0], [1.0]], 5, axis=0)
    leaves = TreeLeaves.fit(pool)
    assert leaves.transformer().transform(pool).shape[1] == len(leaves.leaves)


def test_the_kernel_of_counts_is_the_formula():
    x, y = shares(COUNTS[:20]) * 2.0**-SHARE_BITS, shares(COUNTS[20:50]) * 2.0**-SHARE_BITS
    slow = np.array([[sum(2 * p * q / (p + q) for p, q in zip(a, b, strict=True) if p + q) for b in y] for a in x])
    ours = kernel(shares(COUNTS[:20]), shares(COUNTS[20:50])) * 2.0**-BITS
    assert np.allclose(ours, slow, atol=1e-6)
    assert np.allclose(ours, 1 + additive_chi2_kernel(x, y) / 2, atol=1e-5)


def test_patches_share_what_the_formula_says():
    first = PatchFeatures.fit(IMAGES, n_centroids=5)
    image = (IMAGES[0].reshape(10, 10) - first.low) / (first.high - first.low)
    centroids = first.centroids * 2.0**-patches_room.CENTROID_BITS
    found = np.zeros((3, 3, 5))
    for i in range(3):  # three positions along a side of ten pixels: each is a region of its own
        for j in range(3):
            patch = image[2 * i : 2 * i + 6, 2 * j : 2 * j + 6].ravel()
            found[i, j] = np.sqrt(np.maximum(centroids @ patch - patches_room.THRESHOLD, 0))
    assert np.allclose(first.numbers(IMAGES[:1])[0], found.reshape(-1), atol=0.01)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("name", "pool", "told"),
    [
        ("chi2", SMALL, "below 0"),
        ("chi2", sparse.csr_matrix(COUNTS), "dense"),
        ("patches", SMALL, "square grey images"),
        ("patches", IMAGES[:, :81], "square grey images"),
        ("trees", sparse.csr_matrix(COUNTS), "dense"),
        ("forest", SMALL, "feature_map"),
    ],
)
def test_a_pool_that_a_map_does_not_take_is_refused_in_one_line(name, pool, told):
    with pytest.raises(InvalidParameter, match=told) as refusal:
        feature_map_for(name, pool)
    assert "\n" not in str(refusal.value)


def test_pixels_have_one_unit_and_columns_of_a_table_their_own():
    pixels = np.random.default_rng(1).integers(0, 17, (80, 64)).astype(float)
    pixels[:, 0] = 3.0
    assert PoolScale.fit(pixels).scale.tolist() == [16.0] * 64
    assert len(set(PoolScale.fit(pixels * np.linspace(1, 9, 64)).scale)) > 32


def slow_product(row, other, ranks):
    """The product kernel of two rows, column by column, as the formula says it."""
    kernels = [slow_exp(-abs(ranks[name](row[name]) - ranks[name](other[name])) / 0.5) for name in ("age", "bmi")]
    kernels += [float(row[name] == other[name]) for name in ("gap", "smokes", "ward", "sex")]
    a = 2 / len(kernels)
    return float(np.prod([(1 + a * kernel) / (1 + a) for kernel in kernels]))


def test_the_product_kernel_is_the_formula():
    product = ProductKernelMap.fit(POOL, np.arange(N), categories=SCHEMA.indicator_blocks)
    images = product.images(POOL) * 2.0**-product.bits
    filled = POOL[:, 1].tolist()  # a missing one is the mean, beside its indicator
    table = [dict(row, bmi=bmi, gap=row["bmi"] is None) for row, bmi in zip(FRAME.to_dicts(), filled, strict=True)]

    def rank_of(name):
        values = np.array([row[name] for row in table])
        return lambda value: ((values < value).sum() + (values <= value).sum()) / (2 * N)

    ranks = {"age": rank_of("age"), "bmi": rank_of("bmi")}
    for at, row in enumerate(table[:20]):
        for place, other in enumerate(table[:40]):  # many values are told by intervals, each of 1/64 of the rows
            assert images[at, place] == pytest.approx(slow_product(row, other, ranks), rel=0.02)
    assert np.allclose(np.diag(images), 1.0, atol=1e-6)


def test_a_value_that_the_pool_does_not_list_equals_no_row_of_it():
    product = ProductKernelMap.fit(POOL, np.arange(N), categories=SCHEMA.indicator_blocks)
    known, unknown = POOL[:1].copy(), POOL[:1].copy()
    first, end = SCHEMA.indicator_blocks[0]
    unknown[0, first:end] = 0.0
    a, same = 2 / 6, POOL[:, first:end] @ known[0, first:end] == 1
    ratio = product.images(unknown)[0] / product.images(known)[0]
    assert np.allclose(ratio[same], 1 / (1 + a), atol=1e-5)
    assert np.allclose(ratio[~same], 1.0, atol=1e-5)


def test_what_the_kernels_add_is_nothing_linear(fitted):
    features = public_features(fitted, POOL)
    linear, residual = features[:, : fitted.n_linear], features[:, fitted.n_linear :]
    kernels = residual + linear @ fitted.regression
    explained = np.linalg.norm(linear.T @ residual) / np.linalg.norm(linear.T @ kernels)
    assert explained < 0.05
    assert np.linalg.norm(features, axis=1).max() <= fitted.longest


@pytest.mark.parametrize("m", [2, 5, 30])
def test_with_few_public_rows_the_regression_does_not_fit_them(m):
    """It would leave nothing of these rows, and everything of others."""
    rng = np.random.default_rng(m)
    linear = rng.normal(size=(m, 40))
    kernels = rng.normal(size=(m, 3))
    hat = linear @ regression_on(linear, np.eye(m))
    assert np.trace(hat) <= MOST_FREEDOM * m * (1 + 1e-6)
    left = kernels - linear @ regression_on(linear, kernels)
    assert np.linalg.norm(left) > 0.5 * np.linalg.norm(kernels)


def test_a_wide_pool_is_regressed_by_its_rows_as_by_its_columns():
    linear, kernels = RNG.normal(size=(30, 90)), RNG.normal(size=(30, 7))
    basis, triangle = np.linalg.qr(linear.T)  # the same rows in as many columns
    np.testing.assert_allclose(regression_on(linear, kernels), basis @ regression_on(triangle.T, kernels), atol=1e-9)


def test_a_matrix_without_its_zeros_makes_the_same_features(fitted, monkeypatch):
    features, matrix = public_features(fitted, POOL), np.asarray(fitted.mixing)
    monkeypatch.setattr(composed, "WRITTEN_OUT", 0)
    assert np.array_equal(fitted.mixing.toarray(), matrix)
    np.testing.assert_allclose(public_features(fitted, POOL), features, atol=1e-12)


def test_many_numbers_have_fewer_intervals_each():
    pool = np.random.default_rng(1).normal(size=(200, 100))
    many = ProductKernelMap.fit(pool, np.arange(50))
    few = ProductKernelMap.fit(pool[:, :3], np.arange(50))
    assert {len(own) + 1 for own in few.cuts} == {INTERVALS}
    assert {len(own) + 1 for own in many.cuts} == {max(ALL_INTERVALS // 100, FEWEST)}


def test_columns_without_spread_and_long_lists_are_left_out():
    pool = np.hstack([np.ones((40, 1)), np.eye(40)])
    assert columns_of(pool, [(1, 41)]) == (pytest.approx([]), ())
    with pytest.raises(InvalidParameter, match=r'^feature_map="kernels" takes columns of numbers, or of categories of'):
        feature_map_for("kernels", pool, categories=[(1, 41)])
    assert isinstance(feature_map_for("linear", pool), LinearMap)


class TestExactArithmetic:
    def test_exp_is_exp(self):
        x = np.concatenate([np.linspace(-45, 45, 20_001), [0.0, -0.0, 1e-300, np.inf, -np.inf]])
        assert np.allclose(exp(x), np.exp(np.clip(x, -40, 40)), rtol=2.0**-49, atol=0)
        assert 1 + np.exp(-40.0) == 1  # so that probabilities do not tell -40 from less

    def test_exp_is_the_same_alone_and_among_others(self):
        x = np.random.default_rng(0).normal(size=1_001) * 50
        together = exp(x)
        assert all(exp(x[i : i + 1])[0] == together[i] for i in range(len(x)))
        assert (exp(x[::3]) == together[::3]).all()

    def test_bits_leave_room(self):
        for bound in (1e-9, 0.3, 1.0, 7.0, 1e12):
            assert bound * 2.0 ** bits_for(bound) <= 2.0**52 < 2 * bound * 2.0 ** bits_for(bound)

    def test_a_batched_norm_is_caught(self):
        """Floats divided by a norm that NumPy sums in an order of its own: not what unit_rows does."""
        rows = np.random.default_rng(0).normal(size=(64, 37))
        exact = unit_rows(rows, 20)
        assert all((unit_rows(rows[i : i + 1], 20)[0] == exact[i]).all() for i in range(64))
        column_major = np.asfortranarray(rows)
        twin = np.sqrt((column_major**2).sum(axis=1))
        assert any(twin[i] != np.sqrt((rows[i] ** 2).sum()) for i in range(64))
