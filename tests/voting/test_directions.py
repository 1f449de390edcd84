"""Default teachers see directions of the public pool in place of many columns or pixels; the user's own do not."""

import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from quorate import PrivateClassifier, PrivateLogisticRegression, PublicPool, check
from quorate.data.feature_maps.pool_coordinates import PoolDirections
from quorate.deferred import skops
from quorate.export.onnx_model import onnx_student
from quorate.noise import SeededNoise
from quorate.planning.public_side import Models, public_side
from quorate.types import Secret
from quorate.voting.config import RunConfig
from quorate.voting.inputs import directions_of_images
from quorate.voting.models import default_teacher
from quorate.voting.prepare import prepare

pytestmark = pytest.mark.mostly_heavy

WIDTH = 300
CONFIG = RunConfig(classes=[0, 1], epsilon=1.0, delta=1e-5, n_records=400)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 3)) @ rng.normal(size=(3, WIDTH)) + 0.1 * rng.normal(size=(500, WIDTH))
    return rows[:400], (rows[:400, 0] > 0).astype(int), rows[400:]


def task_of(table, config=CONFIG, width=WIDTH):
    X, y, pool = table
    how = {"groups": None, "key": Secret(bytes(32)), "fingerprint_key": Secret(bytes(32)), "noise": SeededNoise(0)}
    return prepare(config, X[:, :width], y, public=PublicPool(pool[:, :width]), **how)


LINEAR = replace(CONFIG, teacher=LogisticRegression(), built_in=True)


def test_a_linear_teacher_of_ours_sees_directions_of_a_wide_pool_and_the_recipe_says_so(table):
    task = task_of(table, LINEAR)
    assert task.views.teacher(table[0]).shape == (400, 64)
    assert task.cache_inputs["directions"] == 64
    assert "teachers see the 64 leading directions of the public pool in place of 300 columns" in task.recipe.why


@pytest.mark.parametrize(
    ("config", "width"),
    [(LINEAR, 256), (replace(CONFIG, teacher=LogisticRegression()), WIDTH)],
    ids=["narrow", "given"],
)
def test_others_see_columns(table, config, width):
    task = task_of(table, config, width)
    assert task.views.teacher(table[0][:, :width]).shape == (400, width)
    assert "directions" not in task.cache_inputs


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("config", [CONFIG, LINEAR], ids=["default", "linear"])
def test_one_private_row_moves_no_other_row_that_teachers_see(table, config):
    """Not by a bit: else it would reach every shard."""
    task, X = task_of(table, config), table[0].copy()
    before = task.views.teacher(X)
    X[17] = 1e6 * X[17][::-1]
    after = task.views.teacher(X)
    others = np.arange(400) != 17
    assert (before[others] == after[others]).all()
    assert (before[17] != after[17]).any()


@pytest.mark.parametrize("config", [CONFIG, LINEAR], ids=["default", "linear"])
def test_directions_are_read_off_public_rows_alone(table, config):
    X, y, pool = table
    asked = np.ones((1, WIDTH))
    seen = [task_of((private, y, pool), config).views.teacher(asked) for private in (X, X[::-1] ** 3)]
    assert (seen[0] == seen[1]).all()
    fewer = task_of((X, y, pool[:80]), config).views.teacher(asked)
    assert fewer.shape != seen[0].shape or (fewer != seen[0]).any()


ASKED_ONCE = {"columns", "families", "feature_families", "column_names", "schema", "other_columns", "public_units"}


def questions_of_names(columns, container, method):
    """How often a check asks for the names or the types of a whole table: each time goes through all of its columns."""
    rng, names = np.random.default_rng(0), [f"g{at}" for at in range(columns)]
    tables = [pl.DataFrame(rng.normal(size=(n, columns)), schema=names) for n in (80, 60)]
    tables = [each.with_columns(pl.col(names[: columns // 2]).cast(pl.String)) for each in tables]  # of both families
    X, pool = tables if container == "polars" else [each.to_pandas() for each in tables]
    settings = {"classes": [0, 1], "epsilon": 4.0, "delta": 1e-5, "n_records": 80}
    estimator = PrivateLogisticRegression(**settings)
    if method == "votes":
        estimator = PrivateClassifier(**settings, n_teachers=8, queries=30, n_jobs=1, allow_hopeless=True)
    count = 0

    def counted(frame, event, _):
        nonlocal count
        count += event == "call" and frame.f_code.co_name in ASKED_ONCE

    sys.setprofile(counted)
    try:
        check(estimator, X, np.arange(80) % 2, public=PublicPool(pool))
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("method", ["votes", "direct"])
@pytest.mark.parametrize("container", ["polars", "pandas"])
def test_names_and_types_of_a_table_are_asked_for_as_often_whatever_the_number_of_columns(container, method):
    """Asked for in a loop over columns, they made a check of 4,000 columns take 94 s."""
    assert questions_of_names(12, container, method) == questions_of_names(36, container, method)


DIGITS, LABELS = load_digits(return_X_y=True)
KEPT = LABELS < 3
IMAGES = np.kron(DIGITS[KEPT].reshape(-1, 8, 8), np.ones((2, 2)))  # 16 × 16
LABELS = LABELS[KEPT]
N, M = 300, 150
ROWS = IMAGES.reshape(len(IMAGES), -1)


@pytest.fixture(scope="module")
def directions():
    return PoolDirections.of_images(ROWS[N : N + M])


def test_directions_have_mean_zero_and_a_typical_image_length_one(directions):
    seen = directions.transform(ROWS[N : N + M])
    assert seen.shape == (M, 128)
    assert np.abs(seen.mean(axis=0)).max() < 1e-3
    assert np.mean(np.sum(seen**2, axis=1)) == pytest.approx(1.0, abs=0.01)
    variances = seen.var(axis=0)[:20]
    patches = directions.coordinates.feature_map.first.numbers(ROWS[N : N + M])
    units = patches / np.linalg.norm(patches, axis=1, keepdims=True)
    values = np.linalg.svd(units - units.mean(axis=0), compute_uv=False)[:20] ** 2
    assert variances / variances[0] == pytest.approx(np.sqrt(values / values[0]), rel=0.02)  # the root of each


def test_an_image_is_the_same_alone_and_in_any_company(directions):
    hostile = np.vstack([ROWS[:20], ROWS[:3] * 1e200, -ROWS[:3], np.zeros((1, ROWS.shape[1]))])
    with threadpool_limits(1):
        together = directions.transform(hostile)
    with threadpool_limits(2):
        assert (np.vstack([directions.transform(hostile[i : i + 1]) for i in range(len(hostile))]) == together).all()
        assert (directions.transform(hostile[::-1])[::-1] == together).all()


def test_what_is_published_says_the_same_opens_without_trust_and_prints_in_few_lines(directions):
    published = directions.transformer(ROWS[N : N + 2])
    assert np.abs(published.transform(ROWS[:50]) - directions.transform(ROWS[:50])).max() < 0.01
    content = skops.io.dumps(published)
    assert skops.io.get_untrusted_types(data=content) == []
    assert (skops.io.loads(content).transform(ROWS[:5]) == published.transform(ROWS[:5])).all()
    assert len(repr(published)) < 3_000


def test_who_sees_patches():
    pool = PublicPool(IMAGES[N : N + M])
    for student, by_patches in ((None, True), (LogisticRegression(), False)):
        side = public_side(pool, [0, 1, 2], Models(student=student))
        assert side.views.teacher.directions is not None
        assert (side.views.student.directions is not None) is by_patches
        assert side.views.student(side.pool).shape == (M, 128 if by_patches else 256)
        assert (side.views.width, type(side.default_teacher)) == (256, RidgeClassifier)
    own = public_side(pool, [0, 1, 2], Models(teacher=DecisionTreeClassifier()))
    assert own.views.teacher.directions is None
    assert own.views.student.directions is not None


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    "pool",
    [
        ROWS[N : N + M],  # nobody said that these are images
        IMAGES[:128],  # too few to find directions in
        IMAGES[:M, ::2, ::2],  # 8 × 8
        np.stack([IMAGES[:M]] * 3, axis=-1),  # of colours
        np.zeros((M, 16, 16)),  # that show nothing
        IMAGES[:M, :, :12],  # not square
    ],
)
def test_other_pools_are_seen_as_before(pool):
    assert directions_of_images(PublicPool(pool)) is None
    assert isinstance(public_side(PublicPool(pool), [0, 1, 2]).default_teacher, LogisticRegression)


@pytest.mark.quick
def test_the_default_teacher_of_other_rows_is_unchanged():
    assert repr(default_teacher(images=False)) == "LogisticRegression(C=100.0, max_iter=1000)"


@pytest.mark.several_fits
def test_a_student_of_images_predicts_from_pixels_and_leaves_as_onnx():
    given = {"classes": [0, 1, 2], "epsilon": 8.0, "delta": 1e-5, "unsafe_noise_seed": 1, "n_records": N}
    votes = PrivateClassifier(**given, n_teachers=15, n_jobs=1, allow_hopeless=True)
    votes.fit(IMAGES[:N], LABELS[:N], public=PublicPool(IMAGES[N : N + M]))
    assert any("128 leading directions of patches of the public images" in each for each in votes.recipe_.why)
    assert (votes.predict(IMAGES[N:]) == votes.predict(ROWS[N:])).all()
    assert (votes.predict(IMAGES[N:]) == LABELS[N:]).mean() > 0.9
    pytest.importorskip("skl2onnx")
    found = onnx_student(votes.student_, ROWS[N : N + M])
    assert found.largest_difference < 1e-9
