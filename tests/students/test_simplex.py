"""Projection onto the vote shares."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import brentq

from quorate.students.shares import onto_simplex

ROWS = arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(2, 6)), elements=st.floats(-50, 50))


@given(rows=ROWS)
def test_the_projection_is_that_of_a_slow_search_for_the_shift(rows):
    for row, projected in zip(rows, onto_simplex(rows), strict=True):
        shift = brentq(lambda t, row=row: np.maximum(row - t, 0).sum() - 1, row.min() - 2, row.max(), xtol=1e-13)
        np.testing.assert_allclose(projected, np.maximum(row - shift, 0), atol=1e-9)


@given(rows=ROWS, lack=st.floats(-5, 5))
def test_shares_are_shares_and_what_is_lacking_is_shared_equally(rows, lack):
    projected = onto_simplex(rows)
    assert (projected >= 0).all()
    np.testing.assert_allclose(projected.sum(axis=1), 1)
    np.testing.assert_allclose(onto_simplex(projected), projected, atol=1e-12)
    np.testing.assert_allclose(onto_simplex(rows + lack), projected, atol=1e-9)


@pytest.mark.heavy
@given(rows=ROWS, other=ROWS)
def test_no_other_shares_are_nearer(rows, other):
    projected = onto_simplex(rows)
    shares = onto_simplex(np.resize(other, rows.shape))
    assert (np.sum((rows - projected) ** 2, axis=1) <= np.sum((rows - shares) ** 2, axis=1) + 1e-9).all()


@given(rows=ROWS)
def test_the_largest_stays_the_largest(rows):
    projected = onto_simplex(rows)
    each = np.arange(len(rows))
    np.testing.assert_allclose(projected[each, rows.argmax(axis=1)], projected.max(axis=1), atol=1e-12)
