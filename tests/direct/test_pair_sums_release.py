"""Sums over pairs of columns from the charge to the model: resume after a kill, whole fits, and twins of it."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from tests.direct.conftest import dies
from tests.direct.test_joint_moments import COLUMNS, DECLARED, SCHEMA, B, people, rows_of
from tests.labelling.conftest import Killed
from tests.run.test_drawn_pool import Unpaid

from quorate import Budget, Ledger, PrivateLogisticRegression
from quorate.audit import GaussianClaim, audit_mechanism
from quorate.data.unit_ids import counted_rows
from quorate.direct import before_pool as before_module
from quorate.direct import descend, flow, joint_moments
from quorate.direct.joint_moments import PairColumns, release_pair_sums, sums_over
from quorate.errors import BudgetExhausted, InvalidParameter, QuorateWarning
from quorate.mechanisms import pair_sums as mechanism_module
from quorate.mechanisms.pair_sums import NoisyPairSums
from quorate.noise import SeededNoise
from quorate.release.charge import COORDINATES, GRADIENT_ROUND, MARGINAL_LEVEL, PAIR_SUMS
from quorate.types import Secret

MECHANISM = NoisyPairSums(len(COLUMNS), 0.5, "add-or-remove")


def reserved(purpose=PAIR_SUMS):
    ledger = Ledger(budget=Budget(50.0, 1e-5))
    return ledger.reserve(MECHANISM.event, delta=1e-5, purposes={purpose: 1}, key="pairs")


def released(reservation, seed=0, columns=COLUMNS, mechanism=MECHANISM):
    frame = people(60, 8)
    return release_pair_sums(
        mechanism, rows_of(frame), np.ones(60, dtype=bool), reservation, SeededNoise(seed), columns
    )


def test_sums_that_were_drawn_and_not_stored_are_never_drawn_again(monkeypatch):
    reservation, drawn = reserved(), []
    with monkeypatch.context() as patch:
        patch.setattr(NoisyPairSums, "release", lambda *_: drawn.append(1) or dies())
        with pytest.raises(Killed):
            released(reservation)
    assert drawn == [1]
    monkeypatch.setattr(NoisyPairSums, "release", lambda *_: drawn.append(1))
    assert released(reservation) is None
    assert drawn == [1]
    assert reservation.remaining(PAIR_SUMS) == 0
    assert [block.answers for block in reservation.blocks(PAIR_SUMS)] == [None]


def test_stored_sums_are_read_and_not_drawn_again():
    reservation = reserved()
    first, again = released(reservation), released(reservation, seed=1)
    assert (first == again).all()
    assert [block.answers for block in reservation.blocks(PAIR_SUMS)] == [[[first.tolist(), COLUMNS.digest]]]
    assert (first != released(reserved(), seed=1)).all()
    few = PairColumns.of(COLUMNS.linear, SCHEMA.numbers(SCHEMA.pool), 2)
    assert released(reservation, columns=few) is None  # of other columns than those that were stored


def check_order(monkeypatch):
    """Release sums whose block is drawn and not yet stored when their noise is drawn."""
    reservation, real = reserved(), NoisyPairSums.release

    def watched(self, sums, noise):
        assert [block.answers for block in reservation.blocks(PAIR_SUMS)] == [None]
        assert self.sigma == MECHANISM.sigma
        return real(self, sums, noise)

    monkeypatch.setattr(NoisyPairSums, "release", watched)
    return released(reservation)


def test_sums_are_durably_drawn_before_their_noise_and_exact_ones_are_not_published(monkeypatch):
    noisy = check_order(monkeypatch)
    exact = sums_over(COLUMNS, rows_of(people(60, 8)), np.ones(60, dtype=bool)).reveal()
    assert (noisy != exact).all()
    assert np.abs(noisy - exact).max() < 6 * MECHANISM.sigma


def test_fewer_columns_have_the_noise_that_was_paid_for_and_none_asks_for_nothing():
    encoded = SCHEMA.numbers(SCHEMA.pool)
    few, none = (PairColumns.of(COLUMNS.linear, encoded, most) for most in (2, 0))
    reservation = reserved()
    assert released(reservation, columns=none) is None
    assert reservation.remaining(PAIR_SUMS) == 1
    assert released(reservation, columns=few).shape == (3,)


def test_sums_that_nothing_was_reserved_for_are_not_released(monkeypatch):
    reached = []
    monkeypatch.setattr(NoisyPairSums, "release", lambda *_: reached.append(1))
    with pytest.raises((InvalidParameter, BudgetExhausted)):
        released(reserved(purpose=MARGINAL_LEVEL))
    assert not reached


N = 3_000
ROWS = people(N, 1)
TOLD = (ROWS["age"] - 45) / 15 + (ROWS["pulse"] - 70) / 10
LABELS = ((TOLD > -1).cast(int) + (TOLD > 1).cast(int)).to_list()


@pytest.fixture
def few_rows(monkeypatch):
    """A pool of few rows: kernels of 1,200 take most of the time of a fit."""
    for module in (flow, before_module):
        monkeypatch.setattr(module, "N_ROWS", 120)


def estimator(**changes):
    given = {"classes": [0, 1, 2], "epsilon": 2.0, "delta": 1e-5, "n_records": N, "unsafe_noise_seed": 4, "rounds": 4}
    return PrivateLogisticRegression(**{**given, **changes})


@pytest.mark.heavy
def test_marginals_sums_and_rounds_are_one_charge_of_the_whole_budget(few_rows):
    ledger = Ledger(budget=Budget(5.0, 1e-4))
    clf = estimator(ledger=ledger).fit(ROWS, LABELS, schema=DECLARED)
    [reservation] = ledger.reservations()
    assert set(reservation.purposes) == {MARGINAL_LEVEL, PAIR_SUMS, COORDINATES, GRADIENT_ROUND}
    assert reservation.purposes[PAIR_SUMS] == 1
    assert 2.0 - 1e-6 < ledger.spent.epsilon <= 2.0
    assert reservation.event == clf._kept.task.drawn.before.event_for("add-or-remove")
    [block] = reservation.blocks(PAIR_SUMS)
    assert len(block.answers[0][0]) > 2
    assert clf.score(ROWS, LABELS) > 0.6


@pytest.mark.heavy
@pytest.mark.parametrize("killed_in", ["the draw", "the rounds", "a statement"])
def test_a_fit_that_was_killed_goes_on_and_draws_nothing_again(killed_in, few_rows, tmp_path, monkeypatch):
    whole = estimator(ledger=tmp_path / "whole.db").fit(ROWS, LABELS, schema=DECLARED)
    owner, name = {
        "the draw": (NoisyPairSums, "release"),
        "the rounds": (descend, "noisy_sum"),
        "a statement": (flow.DirectTask, "state_coordinates"),
    }[killed_in]
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, dies)
        with pytest.raises(Killed):
            estimator(ledger=tmp_path / "ledger.db").fit(ROWS, LABELS, schema=DECLARED)
    with Ledger(tmp_path / "ledger.db") as ledger:
        [before] = ledger.reservations()[0].blocks(PAIR_SUMS)
    assert (before.answers is None) is (killed_in == "the draw")
    told = pytest.warns(QuorateWarning, match="drawn-and-lost: 1 sum over pairs of columns")
    with told if killed_in == "the draw" else nullcontext():
        clf = estimator(ledger=tmp_path / "ledger.db").resume(ROWS, LABELS, schema=DECLARED)
    with Ledger(tmp_path / "ledger.db") as ledger, Ledger(tmp_path / "whole.db") as other:
        [reservation], [undisturbed] = ledger.reservations(), other.reservations()
        [after], [theirs] = reservation.blocks(PAIR_SUMS), undisturbed.blocks(PAIR_SUMS)
        assert after.answers == before.answers
        assert reservation.event == undisturbed.event
        assert reservation.remaining(GRADIENT_ROUND) == 0
        if killed_in != "the draw":
            assert after.answers == theirs.answers
    same = clf.coef_.shape == whole.coef_.shape and bool((clf.coef_ == whole.coef_).all())
    assert same is (killed_in == "a statement")  # where no round was lost, the very same model
    assert clf.score(ROWS, LABELS) > 0.6


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore:rounds-tell-nothing")
@pytest.mark.parametrize("cells", [[50.0] * N, [None] * N, ["?"] * N], ids=["one value", "missing", "no numbers"])
def test_nothing_is_refused_after_the_charge_where_no_column_varies(cells, few_rows):
    ledger = Ledger(budget=Budget(5.0, 1e-4))
    rows = pl.DataFrame({"age": cells})
    clf = estimator(ledger=ledger).fit(rows, [0, 1, 2] * (N // 3), schema={"age": (0, 120)})
    [reservation] = ledger.reservations()
    assert reservation.purposes[PAIR_SUMS] == 1
    assert reservation.remaining(GRADIENT_ROUND) == 0
    assert set(clf.predict(rows[:3])) <= {0, 1, 2}


FEW = people(20, 11)  # whom nothing happens to
COLUMN_NAMES = ("age", "bmi", "pulse", "ward")
NOBODY, ONE = (), ((0, 10.0, 30, "s"),)
OTHER = ((0, 60.0, 200, "s"),)  # about at a right angle to it
SPREAD = ((120, 60.0, 30, "w"),)  # over all columns
PAIRS = {"add-or-remove": (NOBODY, SPREAD), "replace": (ONE, OTHER)}
MU = 0.9


def with_unit(unit):
    """Rows of everybody, those of one unit behind them, and which of them count."""
    rows = pl.DataFrame(list(unit), schema=FEW.schema, orient="row") if unit else FEW[:0]
    whose = [f"p{place}".encode() for place in range(len(FEW))] + [b"unit"] * len(unit)
    return pl.concat([FEW, rows]), counted_rows(whose, Secret(bytes(32)))


def sums_with(unit, neighbours, noise):
    frame, counted = with_unit(unit)
    mechanism = NoisyPairSums(len(COLUMNS), MU, neighbours)
    return release_pair_sums(mechanism, rows_of(frame), counted, Unpaid(), noise, COLUMNS)


def moved(pair, neighbours, claimed=None):
    """μ of the release on two neighbours, without noise: how far the sums move, in σ of the noise that is paid for."""
    one, other = (sums_with(unit, neighbours, SeededNoise(0)) for unit in pair)
    return float(np.linalg.norm((one - other).astype(float))) / NoisyPairSums(2, MU, claimed or neighbours).sigma


@pytest.fixture
def silent(monkeypatch):
    """No noise, so that exact sums can be compared."""
    monkeypatch.setattr(mechanism_module, "discrete_gaussian", lambda sigma, shape, noise: np.zeros(shape, dtype=int))


@pytest.mark.parametrize("neighbours", PAIRS)
def test_one_unit_moves_the_release_by_what_is_paid_for_and_not_much_less(neighbours, silent):
    least = {"add-or-remove": 0.89, "replace": 0.995}[neighbours]
    assert least * MU < moved(PAIRS[neighbours], neighbours) <= MU
    several = (SPREAD[0], OTHER[0], ONE[0], SPREAD[0])  # rows of one unit, of which one counts
    assert moved((NOBODY, several), "add-or-remove") <= MU
    assert moved((several, OTHER), "replace") <= MU


def rows_as_they_are(monkeypatch):
    """Rows are turned into integers and not shortened."""
    monkeypatch.setattr(joint_moments, "bounded", lambda steps, lengths, longest: np.trunc(steps * (B / longest)))


def all_rows_count(monkeypatch):
    real = sums_over
    monkeypatch.setattr(
        joint_moments, "sums_over", lambda columns, private, counted: real(columns, private, np.ones_like(counted))
    )


@pytest.mark.parametrize(
    ("twin", "pair", "least"),
    [(rows_as_they_are, (NOBODY, SPREAD), 1.7), (all_rows_count, (NOBODY, SPREAD * 3), 2.5)],
    ids=["rows are not shortened", "all rows of a unit count"],
)
def test_a_unit_that_moves_more_than_is_paid_for_is_caught(twin, pair, least, silent, monkeypatch):
    assert moved(pair, "add-or-remove") <= MU
    twin(monkeypatch)
    assert moved(pair, "add-or-remove") > least * MU


def test_noise_for_adding_where_a_unit_is_replaced_is_caught(silent):
    assert moved(PAIRS["replace"], "replace", claimed="add-or-remove") > 1.4 * MU
    assert moved(PAIRS["replace"], "replace") <= MU


class ManyReleases:
    """The release on the rows that are handed in, as an audit attacks it."""

    def __init__(self, neighbours):
        self.neighbours, self.runs = neighbours, 0
        self.exact = [  # of each neighbour once: rows are summed the same way each time
            sums_over(COLUMNS, rows_of(frame), counted) for frame, counted in map(with_unit, PAIRS[neighbours])
        ]
        self.units = PAIRS[neighbours]

    def release(self, counts, noise):
        self.runs += 1
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(joint_moments, "sums_over", lambda *_: self.exact[int(counts[0])])
            noisy = sums_with(NOBODY, self.neighbours, noise.at("run", self.runs))
        return noisy >> 22


def attacked(neighbours, runs):
    how = {"confidence": 1 - 1e-6, "runs": runs, "seed": 1}
    return audit_mechanism(ManyReleases(neighbours), ([0, 0], [1, 0]), GaussianClaim(MU), **how)


@pytest.mark.heavy
@pytest.mark.heavy_cases(1)
@pytest.mark.parametrize("neighbours", PAIRS)
def test_the_attack_on_releases_proves_no_more_than_is_claimed_and_is_not_blind(neighbours):
    result = attacked(neighbours, 6_000)
    assert not result.violated, result.verdict
    assert result.lower_bound > 0.3 * MU


@pytest.mark.heavy
@pytest.mark.parametrize("part", [0.0, 0.1], ids=["no noise", "a tenth of the noise"])
def test_the_attack_catches_a_release_with_less_noise(part, monkeypatch):
    real = mechanism_module.discrete_gaussian
    monkeypatch.setattr(
        mechanism_module,
        "discrete_gaussian",
        lambda sigma, shape, noise: np.rint(part * real(sigma, shape, noise)).astype(np.int64),
    )
    assert attacked("add-or-remove", 600).violated


def uncharged(reservation, purpose, count, compute, *, record):
    """A twin of the release that draws nothing from the reservation."""
    drawn = SimpleNamespace(noise=lambda source: source.at(purpose, 0))
    return drawn, compute(drawn)


def test_a_release_that_draws_nothing_from_its_reservation_is_caught(monkeypatch):
    monkeypatch.setattr(joint_moments, "release", uncharged)
    with pytest.raises(AssertionError):
        check_order(monkeypatch)
    with pytest.raises(InvalidParameter):  # where nothing was reserved, what was drawn cannot even be asked for
        released(reserved(purpose=MARGINAL_LEVEL))


def test_sums_that_a_twin_would_draw_again_on_resume_are_refused_by_the_ledger(monkeypatch):
    reservation = reserved()
    with monkeypatch.context() as patch:
        patch.setattr(NoisyPairSums, "release", dies)
        with pytest.raises(Killed):
            released(reservation)
    reached = []
    monkeypatch.setattr(NoisyPairSums, "release", lambda *_: reached.append(1))
    monkeypatch.setattr(type(reservation), "blocks", lambda *_: ())  # the twin does not look at what was drawn
    with pytest.raises(BudgetExhausted):
        released(reservation)
    assert not reached
