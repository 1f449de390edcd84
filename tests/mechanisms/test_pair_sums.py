"""Noisy sums over pairs of columns: how far a unit moves them, rows that are shortened, the price."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.gaussian import gaussian_epsilon

from quorate.accounting import Composed, DiscreteGaussian, GridGaussian, epsilon, zcdp
from quorate.errors import InvalidParameter
from quorate.mechanisms.pair_sums import NoisyPairSums, bounded, moved_by, pair_sums
from quorate.noise import SeededNoise

B = 2**13
MOVED = {"add-or-remove": B**2 / math.sqrt(2), "replace": float(B**2)}  # as the proof has it


def products(row: list[int]) -> list[int]:
    """What a row adds to the sums, in whole numbers of any size."""
    return [row[i] * row[j] for i in range(len(row)) for j in range(i + 1, len(row))]


def moved_squared(row: list[int], other: list[int] | None = None) -> int:
    """The squared distance of what two rows add, exactly; of one alone where it is added."""
    theirs = [0] * len(products(row)) if other is None else products(other)
    return sum((one - two) ** 2 for one, two in zip(products(row), theirs, strict=True))


def longest_rows(n_columns: int, seed: int) -> list[list[int]]:
    """Random rows of whole numbers that are as long as a row may be, or just shorter, of several shapes."""
    rng = np.random.default_rng(seed)
    shapes = [rng.normal(size=n_columns), np.ones(n_columns), rng.choice([-1.0, 1.0], n_columns)]
    shapes += [np.eye(n_columns)[0], rng.exponential(size=n_columns) ** 4, np.where(np.arange(n_columns) < 2, 1, 1e-3)]
    return [np.trunc(shape * (B / np.linalg.norm(shape))).astype(int).tolist() for shape in shapes]


@pytest.mark.parametrize("n_columns", [2, 3, 17, 64])
def test_no_unit_moves_the_sums_by_more_than_is_paid_for(n_columns):
    rows = [row for seed in range(4) for row in longest_rows(n_columns, seed)]
    assert all(sum(entry**2 for entry in row) <= B**2 for row in rows)
    bounds = {relation: Fraction(moved_by(relation)) ** 2 for relation in MOVED}  # type: ignore[arg-type]
    assert all(moved_squared(row) <= bounds["add-or-remove"] for row in rows)
    assert all(moved_squared(row, other) <= bounds["replace"] for row in rows for other in rows)
    opposite = [[-entry if place % 2 else entry for place, entry in enumerate(row)] for row in rows]
    assert all(moved_squared(*pair) <= bounds["replace"] for pair in zip(rows, opposite, strict=True))


def test_some_units_move_the_sums_as_far():
    """A row that is spread over 256 columns; and one in place of another, at a right angle to it."""
    spread, turned = [B // 16] * 256, [B // 16] * 128 + [-B // 16] * 128
    assert math.sqrt(moved_squared(spread)) > 0.99 * moved_by("add-or-remove")
    assert moved_squared(spread, turned) == B**4
    assert moved_by("replace") == pytest.approx(B**2, rel=1e-15)
    # Twice what adding moves would be too much, and adding's bound too little where a row is replaced.
    assert moved_squared(spread, turned) > 1.9 * moved_by("add-or-remove") ** 2


def test_bounds_are_rounded_up():
    assert Fraction(moved_by("add-or-remove")) ** 2 >= Fraction(B**4, 2)
    assert Fraction(moved_by("replace")) >= B**2
    assert all(moved_by(relation) == pytest.approx(far, rel=1e-15) for relation, far in MOVED.items())  # type: ignore[arg-type]


def rows_of(n_columns: int, seed: int) -> np.ndarray:
    """Whole numbers of every size that a row can hold: none, one, few, all as large as can be."""
    rng = np.random.default_rng(seed)
    wide = np.rint(rng.normal(size=(60, n_columns)) * 2.0 ** rng.integers(0, 15, (60, 1)))
    sparse = np.where(rng.random((60, n_columns)) < 1.5 / n_columns, rng.integers(-(2**17), 2**17, (60, n_columns)), 0)
    ends = [np.zeros(n_columns), np.full(n_columns, 2.0**17), np.full(n_columns, -1.0), *(2.0**17 * np.eye(n_columns))]
    near = np.eye(n_columns)[rng.integers(0, n_columns, 40)] * rng.integers(2**9, 2**14, (40, 1))  # of one entry
    return np.clip(np.vstack([wide, sparse, ends, near]), -(2**17), 2**17)


def shortened(rows: np.ndarray, longest: float) -> np.ndarray:
    return bounded(rows, np.sqrt(np.einsum("ij,ij->i", rows, rows)), longest)


@pytest.mark.parametrize("n_columns", [1, 2, 5, 151])
@pytest.mark.parametrize("longest", [1024.0, math.nextafter(1448.2, 2000), 3.0, 8191.999999, 2.0**20])
def test_no_row_is_longer_than_is_paid_for_in_exact_arithmetic(n_columns, longest):
    rows = rows_of(n_columns, seed=n_columns)
    made = shortened(rows, longest)
    assert (made == np.trunc(made)).all()
    assert all(sum(int(entry) ** 2 for entry in row) <= B**2 for row in made.tolist())
    assert (np.sign(made) * np.sign(rows) >= 0).all()
    for row, length, given in zip(made, np.linalg.norm(rows, axis=1), rows, strict=True):
        whole = given * (B / max(length, longest))
        assert np.abs(row - whole).max() <= 1 + 1e-6  # rounded towards 0, and not shortened further
    if n_columns == 1 and longest < 2.0**17:  # one entry that is as long as the longest or more: exactly 2^13
        far = np.abs(rows[:, 0]) >= longest
        assert far.any()
        assert (np.abs(made[far, 0]) >= B - 1).all()


def test_a_row_of_any_whole_length_ends_at_most_at_the_bound():
    """Each length by itself is a division that may be rounded up; the product, too."""
    for n_columns in (1, 4, 9):  # lengths are whole numbers: 1, 2 and 3 times an entry
        entries = np.arange(1, 20_001, dtype=np.float64)
        rows = np.repeat(entries[:, None], n_columns, axis=1)
        made = shortened(rows, 1.0)
        assert (made == made[:, :1]).all()
        assert all(n_columns * int(entry) ** 2 <= B**2 for entry in made[:, 0].tolist())
        assert made.min() >= B // math.isqrt(n_columns) - 1


def test_a_row_follows_from_itself_alone():
    rows, rng = rows_of(37, seed=1), np.random.default_rng(2)
    whole, order = shortened(rows, 1448.0), rng.permutation(len(rows))
    assert (shortened(rows[order], 1448.0) == whole[order]).all()
    assert all((shortened(rows[place : place + 1], 1448.0)[0] == whole[place]).all() for place in range(len(rows)))
    others = np.vstack([rows[:5], np.full((1, 37), 2.0**17), rows[5:]])
    assert (np.delete(shortened(others, 1448.0), 5, axis=0) == whole).all()


def test_sums_of_the_longest_rows_are_exact():
    rng = np.random.default_rng(0)
    rows = np.array([longest_rows(6, seed)[0] for seed in range(40)])
    rows = rows[rng.integers(0, len(rows), 3_000)]
    slow = zip(*(products(row) for row in rows.tolist()), strict=True)
    assert pair_sums(rows).tolist() == [sum(each) for each in slow]
    largest = np.tile([[5_792.0, 5_792.0]], (2**14, 1))
    assert pair_sums(largest).tolist() == [2**14 * 5_792**2]
    assert pair_sums(rows[:0]).tolist() == [0] * 15
    assert pair_sums(rows).dtype == np.int64


@pytest.mark.parametrize("neighbours", MOVED)
@pytest.mark.parametrize(("n_columns", "mu"), [(2, 0.9), (151, 0.04), (20, 0.2)])
def test_the_price_is_that_of_gaussian_noise_by_the_closed_form(neighbours, n_columns, mu):
    pairs = NoisyPairSums(n_columns, mu, neighbours)
    assert pairs.event == GridGaussian(pairs.sigma, moved_by(neighbours), n_columns * (n_columns - 1) // 2)
    for delta in (1e-3, 1e-5, 1e-7):
        exact = gaussian_epsilon(MOVED[neighbours] / pairs.sigma, delta)
        assert exact * (1 - 1e-9) <= epsilon(pairs.event, delta) <= exact * (1 + 1e-6)
        assert epsilon(pairs.event, delta) <= gaussian_epsilon(mu, delta) * (1 + 1e-6)  # no more than was asked
    rho = (MOVED[neighbours] / pairs.sigma) ** 2 / 2
    assert rho * (1 - 1e-12) <= zcdp(pairs.event) <= rho * (1 + 1e-9)
    assert mu**2 / 2 * (1 - 1e-7) < rho <= mu**2 / 2 * (1 + 1e-12)


def test_beside_other_noise_mu_adds_up_in_squares():
    pairs = NoisyPairSums(12, 0.3, "add-or-remove")
    other = GridGaussian(2.0**30, 0.4 * 2.0**30, 100)
    together = epsilon(Composed((pairs.event, other)), 1e-5)
    assert together == pytest.approx(gaussian_epsilon(0.5, 1e-5), rel=1e-5)
    assert together >= gaussian_epsilon(0.5, 1e-5) * (1 - 1e-8)
    counted = Composed((pairs.event, DiscreteGaussian(10.0, 1.0)))
    assert zcdp(counted) == pytest.approx(0.3**2 / 2 + 0.1**2 / 2, rel=1e-8)


def test_the_same_noise_has_another_price_for_the_other_relation():
    for_adding, for_replacing = (NoisyPairSums(4, 0.3, relation) for relation in MOVED)  # type: ignore[arg-type]
    assert for_replacing.sigma == pytest.approx(math.sqrt(2) * for_adding.sigma, rel=1e-8)
    assert zcdp(for_adding.event_for("replace")) == pytest.approx(2 * zcdp(for_adding.event), rel=1e-12)
    assert zcdp(for_replacing.event_for("add-or-remove")) == pytest.approx(zcdp(for_replacing.event) / 2, rel=1e-12)
    for pairs in (for_adding, for_replacing):
        assert pairs.event_for(pairs.neighbours) == pairs.event
        priced = epsilon(pairs.event_for("replace"), 1e-5)
        assert priced >= gaussian_epsilon(MOVED["replace"] / pairs.sigma, 1e-5) * (1 - 1e-9)


def test_noise_is_never_finer_than_its_grid():
    """At so much budget that noise would be below what its price is proved for, it is as much as that."""
    pairs = NoisyPairSums(2, 1e9, "replace")
    assert pairs.sigma == 2.0**10
    assert zcdp(pairs.event) >= (2.0**26 / 2.0**10) ** 2 / 2


@pytest.mark.parametrize("neighbours", MOVED)
def test_noise_has_its_scale_on_each_sum_and_its_own_on_each(neighbours):
    pairs = NoisyPairSums(200, 0.5, neighbours)
    exact = np.arange(pairs.n_pairs) * 2**20
    noise = (pairs.release(exact, SeededNoise(3)) - exact) / pairs.sigma
    n = pairs.n_pairs  # 19,900: five standard errors of each
    assert abs(noise.mean()) < 5 / math.sqrt(n)
    assert noise.std() == pytest.approx(1.0, abs=5 / math.sqrt(2 * n))
    assert abs((noise[1:] * noise[:-1]).mean()) < 5 / math.sqrt(n)
    assert len(np.unique(noise)) > n - 20  # two of so many may be the same
    assert pairs.sigma == pytest.approx(MOVED[neighbours] / 0.5, rel=1e-8)
    again, other = (pairs.release(exact, SeededNoise(seed)) for seed in (3, 4))
    assert ((again - exact) / pairs.sigma == noise).all()
    assert not (other == again).any()


THREE = NoisyPairSums(3, 1.0, "replace")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: NoisyPairSums(1, 1.0, "replace"),
        lambda: NoisyPairSums(0, 1.0, "replace"),
        lambda: NoisyPairSums(2.5, 1.0, "replace"),  # type: ignore[arg-type]
        lambda: NoisyPairSums("3", 1.0, "replace"),  # type: ignore[arg-type]
        lambda: NoisyPairSums(3, 0.0, "replace"),
        lambda: NoisyPairSums(3, -1.0, "replace"),
        lambda: NoisyPairSums(3, math.nan, "replace"),
        lambda: NoisyPairSums(3, 1e-5, "replace"),  # more noise than is drawn
        lambda: NoisyPairSums(3, 1.0, "both"),  # type: ignore[arg-type]
        lambda: THREE.release(np.zeros(2, dtype=np.int64), SeededNoise(0)),
        lambda: THREE.release(np.zeros(4, dtype=np.int64), SeededNoise(0)),
        lambda: THREE.release(np.zeros((3, 1), dtype=np.int64), SeededNoise(0)),
        lambda: THREE.release(np.array(0), SeededNoise(0)),
    ],
)
def test_what_has_no_meaning_is_refused(wrong):
    with pytest.raises(InvalidParameter) as refusal:
        wrong()  # type: ignore[operator]
    assert "\n" not in str(refusal.value)
