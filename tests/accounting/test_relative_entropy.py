"""The relative entropy of two coins is what summing over their sides gives."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import rel_entr

from quorate.accounting.relative_entropy import relative_entropy

SHARE = st.floats(0, 1, allow_subnormal=False)


@given(SHARE, SHARE)
def test_it_is_the_sum_over_both_sides(b: float, e: float) -> None:
    sides = rel_entr(np.array([b, 1 - b]), np.array([e, 1 - e])).sum()
    assert relative_entropy(b, e) == sides or math.isclose(relative_entropy(b, e), sides, rel_tol=1e-9, abs_tol=1e-12)
