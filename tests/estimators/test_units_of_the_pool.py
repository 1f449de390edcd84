"""The built-in models see arrays of numbers in units of the public pool: a table means the same in any container."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from quorate import PrivateClassifier, PublicPool
from quorate.students import as_student
from quorate.voting import inputs

N, N_PUBLIC = 600, 200
RNG = np.random.default_rng(3)
PLAIN = RNG.normal(size=(N + N_PUBLIC, 3))
LABELS = (PLAIN[:, 0] + PLAIN[:, 1] > 0).astype(np.int64)
UNITS, MIDDLES = np.array([1e-3, 1e4, 1.0]), np.array([0.5, 2e6, 0.0])  # a share, an income, a score
ROWS = PLAIN * UNITS + MIDDLES


def fitted(X: Any, **changes: Any) -> PrivateClassifier:
    settings = {"classes": [0, 1], "epsilon": 8.0, "delta": 1e-5, "n_teachers": 20, "unsafe_noise_seed": 1, "n_jobs": 1}
    made = PrivateClassifier(method="votes", **{**settings, **changes})
    return made.fit(X[:N], LABELS[:N], public=PublicPool(X[N:]))


def right(made: PrivateClassifier, X: Any) -> float:
    return float(np.mean(made.predict(X[:N]) == LABELS[:N]))


@pytest.mark.heavy
@pytest.mark.several_fits
def test_the_default_learns_whatever_units_columns_have() -> None:
    made = fitted(ROWS)
    assert right(made, ROWS) > 0.9
    assert made.student_.named_steps["encoder"].transform(ROWS[N:]).std() == pytest.approx(1, rel=0.05)


@pytest.mark.several_fits
def test_that_test_sees_numbers_that_are_not_scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "_units_of", lambda pool: None)
    assert right(fitted(ROWS), ROWS) < 0.9


@pytest.mark.heavy
def test_a_model_of_ones_own_and_columns_of_one_scale_are_left_alone() -> None:
    assert "encoder" not in fitted(PLAIN).student_.get_params()
    own = LogisticRegression(max_iter=100)
    looked = inputs.look(
        inputs.check_inputs(ROWS[:N], LABELS[:N], public=PublicPool(ROWS[N:]), classes=[0, 1], groups=None),
        teacher=own, student=as_student(own), built_in=False,
    )  # fmt: skip
    assert (looked.teacher.encoder, looked.student.encoder) == (None, None)


def test_how_a_private_row_is_scaled_follows_from_that_row_and_the_pool_alone() -> None:
    def seen(private: Any) -> Any:
        made = inputs.check_inputs(
            private, LABELS[: len(private)], public=PublicPool(ROWS[N:]), classes=[0, 1], groups=None
        )
        return inputs.look(
            made, teacher=LogisticRegression(), student=as_student(LogisticRegression()), built_in=True
        ).teacher(private)

    extreme = np.vstack([ROWS[:5], [[1e9, -1e12, 1e300]]])
    np.testing.assert_array_equal(seen(ROWS[:5]), seen(extreme)[:5])
    assert np.abs(seen(extreme)).max() <= 4
