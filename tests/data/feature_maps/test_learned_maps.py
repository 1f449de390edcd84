"""Maps that learn more from the pool (leaves, patches, a kernel of counts): each row by itself, and stored openly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import additive_chi2_kernel
from threadpoolctl import threadpool_limits

from quorate.data.feature_maps import PatchFeatures, PoolScale, TreeLeaves
from quorate.data.feature_maps import patches as patches_room
from quorate.data.feature_maps.coordinates import public_features
from quorate.data.feature_maps.named import feature_map_for
from quorate.data.feature_maps.nystroem import BITS, SHARE_BITS, kernel, shares
from quorate.deferred import skops
from quorate.direct.contribution_check import check_contributions, faults_of, made_up
from quorate.direct.plan import DirectPlan, plan_direct
from quorate.direct.stored import dump_plan, load_plan
from quorate.errors import InvalidParameter

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(120, 6))
COUNTS = RNG.poisson(2.0, (90, 12)).astype(float)
IMAGES = (np.kron(RNG.random((260, 5, 5)), np.ones((2, 2))) + 0.2 * RNG.random((260, 10, 10))).reshape(260, -1)
POOLS = {"trees": TABLE, "kernels": TABLE, "chi2": COUNTS, "patches": IMAGES}
HOW: Any = {"n_classes": 3, "n_units": 2_000, "epsilon": 1.0, "delta": 1e-5}


@pytest.fixture(scope="module", params=sorted(POOLS))
def planned(request: pytest.FixtureRequest) -> tuple[DirectPlan, Any]:
    pool = POOLS[request.param]
    return plan_direct(feature_map_for(request.param, pool), pool, **HOW), pool


def dense(made: Any) -> Any:
    return made.toarray() if sparse.issparse(made) else made


@pytest.mark.heavy
def test_an_image_is_the_same_alone_in_any_subset_order_and_number_of_threads(planned: Any) -> None:
    plan, pool = planned
    hostile = np.vstack([pool[:40], pool[:9] * 1e200, -pool[:9], pool[:5] * 1e-200, np.zeros((2, pool.shape[1]))])
    for see in (plan.coordinates.feature_map.images, plan.coordinates):
        with threadpool_limits(1):
            together = dense(see(hostile))
        assert (together == np.rint(together)).all()
        with threadpool_limits(2):
            assert (np.vstack([dense(see(hostile[i : i + 1])) for i in range(len(hostile))]) == together).all()
            assert (dense(see(hostile[::-1]))[::-1] == together).all()
            assert (dense(see(hostile[::3])) == together[::3]).all()
    images = dense(plan.coordinates.feature_map.images(hostile)) * 2.0**-plan.coordinates.feature_map.bits
    assert (np.linalg.norm(images, axis=1) <= plan.coordinates.feature_map.bound).all()
    assert (np.linalg.norm(plan.coordinates(hostile), axis=1) <= 2.0**26).all()


@pytest.mark.default_cases(1)
def test_blocks_change_nothing(planned: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from quorate.data.feature_maps import coordinates

    plan, pool = planned
    whole = plan.coordinates(pool)
    monkeypatch.setattr(coordinates, "BLOCK", 7)
    monkeypatch.setattr(patches_room, "_BLOCK", 3)
    assert (plan.coordinates(pool) == whole).all()


@pytest.mark.heavy
def test_the_published_transformer_is_the_map_and_opens_without_trust(planned: Any) -> None:
    plan, pool = planned
    feature_map = plan.coordinates.feature_map
    features = dense(public_features(feature_map, pool))
    outputs = plan.coordinates.whitening @ np.random.default_rng(2).normal(size=(plan.coordinates.n_coordinates, 3))
    weights, intercepts = feature_map.weights(outputs)
    written = skops.io.dumps(feature_map.transformer(pool))
    assert skops.io.get_untrusted_types(data=written) == []
    published = skops.io.loads(written).transform(pool) @ weights + intercepts
    assert np.allclose(published, features @ outputs, atol=0.02 * np.abs(features @ outputs).max())


@pytest.mark.heavy
def test_a_plan_is_read_back_bit_for_bit_and_adds_the_same(planned: Any) -> None:
    plan, pool = planned
    check_contributions(plan, pool)
    again, _ = load_plan(dump_plan(plan, None))
    assert again.digest == plan.digest
    assert (again.coordinates(pool) == plan.coordinates(pool)).all()
    assert again.coordinates.feature_map.words == plan.coordinates.feature_map.words
    assert faults_of(again, *made_up(again, pool)) == []


@pytest.mark.heavy
def test_a_batched_twin_of_patches_is_caught(planned: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin takes the mean of the batch off its images, as a careless contrast step does."""
    plan, pool = planned
    images = type(plan.coordinates.feature_map).images
    monkeypatch.setattr(
        type(plan.coordinates.feature_map), "images", lambda self, rows: images(self, rows - rows.mean(axis=0))
    )
    assert "the coordinates of a row depend on the rows beside it" in faults_of(plan, *made_up(plan, pool))


@pytest.mark.heavy
def test_leaves_are_those_of_the_forest_they_were_read_off() -> None:
    from sklearn.ensemble import RandomTreesEmbedding

    forest = RandomTreesEmbedding(100, max_depth=5, random_state=0).fit(TABLE)
    rows = TABLE.astype(np.float32).astype(float)  # as scikit-learn's trees compare them
    assert (TreeLeaves.fit(TABLE).numbers(rows).toarray() == forest.transform(rows).toarray()).all()


@pytest.mark.heavy
def test_a_tree_of_one_leaf_has_one_column() -> None:
    pool = np.repeat([[0.0], [1.0]], 5, axis=0)
    leaves = TreeLeaves.fit(pool)
    assert leaves.transformer().transform(pool).shape[1] == len(leaves.leaves)


def test_the_kernel_of_counts_is_the_formula() -> None:
    x, y = shares(COUNTS[:20]) * 2.0**-SHARE_BITS, shares(COUNTS[20:50]) * 2.0**-SHARE_BITS
    slow = np.array([[sum(2 * p * q / (p + q) for p, q in zip(a, b, strict=True) if p + q) for b in y] for a in x])
    ours = kernel(shares(COUNTS[:20]), shares(COUNTS[20:50])) * 2.0**-BITS
    assert np.allclose(ours, slow, atol=1e-6)
    assert np.allclose(ours, 1 + additive_chi2_kernel(x, y) / 2, atol=1e-5)


def test_patches_share_what_the_formula_says() -> None:
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
        ("chi2", TABLE, "below 0"),
        ("chi2", sparse.csr_matrix(COUNTS), "dense"),
        ("patches", TABLE, "square grey images"),
        ("patches", IMAGES[:, :81], "square grey images"),
        ("trees", sparse.csr_matrix(COUNTS), "dense"),
        ("forest", TABLE, "feature_map"),
    ],
)
def test_a_pool_that_a_map_does_not_take_is_refused_in_one_line(name: Any, pool: Any, told: str) -> None:
    with pytest.raises(InvalidParameter, match=told) as refusal:
        feature_map_for(name, pool)
    assert "\n" not in str(refusal.value)


def test_pixels_have_one_unit_and_columns_of_a_table_their_own() -> None:
    pixels = np.random.default_rng(1).integers(0, 17, (80, 64)).astype(float)
    pixels[:, 0] = 3.0
    assert PoolScale.fit(pixels).scale.tolist() == [16.0] * 64
    assert len(set(PoolScale.fit(pixels * np.linspace(1, 9, 64)).scale)) > 32
