"""Paid scores: how often a printed half width holds, what was released, and in what order."""

import numpy as np
import pytest
from scipy import stats
from sklearn.tree import DecisionTreeClassifier
from tests.labelling.doubles import paid

from quorate.accounting import PureDP
from quorate.ensemble.held_out import on_grid
from quorate.errors import BudgetExhausted, DataRefused, InvalidParameter
from quorate.labelling import noisy_evaluation, read_score
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import NoisySum
from quorate.noise import OSNoise, SeededNoise

FALSE_ALARM = 1e-6
TRIALS = 1_000
RECORDS = NoisySum.costing(0.5, grid=1, form="shares")
Y = np.arange(200) % 4 // 3  # a quarter is of class 1
X = np.column_stack([Y, np.arange(200) < 20]).astype(float)  # the second column is where the model errs
SLOTS = [b"%d" % row for row in range(200)]


# Right but for 20 of the 200 rows: it predicts "yes" where the two columns differ.
MOSTLY = DecisionTreeClassifier(random_state=0).fit([[0, 0], [0, 1], [1, 0], [1, 1]], ["no", "yes", "yes", "no"])


def evaluate(mechanism=RECORDS, noise=None, reservation=None, **options):
    reservation = paid(mechanism, "evaluation") if reservation is None else reservation
    given = {"X": X, "y_codes": Y, "unit_keys": SLOTS, "classes": ["no", "yes"], **options}
    model = given.pop("model", MOSTLY)
    rows, codes, unit_keys = given.pop("X"), given.pop("y_codes"), given.pop("unit_keys")
    noise = SeededNoise(3) if noise is None else noise
    return noisy_evaluation(
        model, rows, codes, unit_keys, mechanism=mechanism, reservation=reservation, noise=noise, **given
    )


def truth(table):
    pairs = np.asarray(table, dtype=float).reshape(-1, 2)
    return pairs[:, 0].sum() / pairs.sum(), (pairs[:, 0] / pairs.sum(axis=1)).mean()


def rejects(misses, failure):
    """Whether so many misses are too many for the stated failure rate; on correct code once in a million."""
    return stats.binom.sf(misses - 1, TRIALS, failure) < FALSE_ALARM


def misses_of(table, mechanism, failure, *, read_with=None, exact=None):
    """How often accuracy and balanced accuracy lie outside their printed half widths."""
    accuracy, balanced = truth(table) if exact is None else exact
    released = mechanism.release_many(np.tile(np.array(table, dtype=np.int64), (TRIALS, 1)), SeededNoise(7))
    scores = [read_score(row, read_with or mechanism, failure=failure) for row in released.tolist()]
    wide = sum(abs(score.accuracy - accuracy) > score.half_width for score in scores)
    if len(table) == 2:
        return wide, 0
    return wide, sum(abs(score.balanced_accuracy - balanced) > score.balanced_half_width for score in scores)


TABLES = [(80, 20), (700, 60, 40, 30), (30, 3, 5, 4, 900, 80), (1, 1, 0, 3), (3000, 0, 0, 2)]


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("table", TABLES[:3], ids=str)
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("failure", [0.3, 0.02])
def test_half_widths_hold_as_often_as_they_say(table, noise, failure):
    for misses in misses_of(table, NoisySum(4.0, 1, "shares", noise), failure):
        assert not rejects(misses, failure)


@pytest.mark.heavy
@pytest.mark.parametrize("table", TABLES[3:], ids=str)
def test_they_hold_where_noise_swamps_a_class(table):
    """An accuracy of an empty class is not defined; the other statement holds."""
    wide, _ = misses_of(table, NoisySum(4.0, 1, "shares"), 0.1) if table[2] or table[3] else (0, 0)
    assert not rejects(wide, 0.1)


@pytest.mark.heavy
def test_a_half_width_for_a_third_of_the_noise_is_caught():
    mechanism, cheat = NoisySum(12.0, 1, "shares"), NoisySum(4.0, 1, "shares")
    for misses in misses_of(TABLES[1], mechanism, 0.05, read_with=cheat):
        assert rejects(misses, 0.05)


@pytest.mark.heavy
@pytest.mark.parametrize("grid", [2, 1000])
def test_half_widths_hold_for_the_shares_before_they_were_rounded(grid):
    rng = np.random.default_rng(2)
    units = [rng.multinomial(n, [0.6, 0.1, 0.2, 0.1]) for n in rng.integers(1, 7, 400)]
    table = sum(on_grid(unit, grid, 4) for unit in units)
    exact = truth(sum(unit / unit.sum() for unit in units))
    for misses in misses_of(table, NoisySum(2.0, grid, "shares"), 0.05, exact=exact):
        assert not rejects(misses, 0.05)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_with_a_declared_number_of_units_one_sum_is_enough_and_its_half_width_holds(noise):
    mechanism, n_units, wrong = NoisySum(3.0, 1, noise=noise), 400, 40
    released = mechanism.release_many(np.full((TRIALS, 1), wrong), SeededNoise(8)).tolist()
    scores = [read_score(answer, mechanism, n_units=n_units, failure=0.1) for answer in released]
    misses = sum(abs(score.accuracy - 0.9) > score.half_width for score in scores)

    assert not rejects(misses, 0.1)
    assert misses > 0.1 * TRIALS / 3  # and it is not wider than it need be
    at_same_price = read_score([360, 40], NoisySum(6.0, 1, "shares", noise), failure=0.1)
    assert scores[0].half_width < 0.7 * at_same_price.half_width


def test_a_score_that_noise_swamped_is_still_a_share():
    for answer in ([-50, -20], [0, 0], [-5, 9], [9, -5], [-1, -1, 4, -9]):
        score = read_score(answer, NoisySum(4.0, 1, "shares"))
        assert 0 <= score.accuracy <= 1
        assert 0 <= score.half_width <= 1
    assert read_score([0, 0], NoisySum(4.0, 1, "shares")).half_width == pytest.approx(0.5)
    assert read_score(900, NoisySum(4.0, 1), n_units=100).accuracy == 0
    assert read_score(-9, NoisySum(4.0, 1), n_units=100).accuracy == 1


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("answer", "form"),
    [([3, 4], "single"), (3, "shares"), ([3], "shares"), ([3, 4, 5], "shares"), ([[3, 4]], "shares")],
)
def test_an_answer_of_another_form_is_not_read(answer, form):
    with pytest.raises(InvalidParameter, match=r"^answer must be "):
        read_score(answer, NoisySum(4.0, 1, form), n_units=10)


@pytest.mark.heavy
def test_what_is_released_is_the_exact_table_plus_noise():
    wide = NoisySum(scale=1e-2, grid=1, form="shares")  # noise of 0, but for once in 10^43
    score = evaluate(wide, reservation=paid(wide, "evaluation"))
    assert score.sums == (135, 15, 45, 5)
    assert score.accuracy == 180 / 200
    assert score.balanced_accuracy == (135 / 150 + 45 / 50) / 2
    assert score.event == wide.event
    overall = evaluate(wide, reservation=paid(wide, "evaluation"), balanced=False)
    assert overall.sums == (180, 20)
    assert overall.balanced_accuracy is None
    single = NoisySum(scale=1e-2, grid=1)
    assert evaluate(single, reservation=paid(single, "evaluation"), n_units=200).sums == (20,)


@pytest.mark.heavy
def test_a_person_with_many_rows_counts_once():
    mechanism = NoisySum(scale=1e-2, grid=1000, form="shares")
    busy = np.tile(X[:1], (1000, 1))  # a row that the model gets wrong
    score = evaluate(
        mechanism,
        reservation=paid(mechanism, "evaluation"),
        X=np.vstack([X, busy]),
        y_codes=np.concatenate([Y, np.zeros(1000, np.int64)]),
        unit_keys=[*SLOTS, *[b"busy"] * 1000],
    )
    assert score.accuracy == pytest.approx(180 / 201, abs=0.002)


def test_it_is_charged_then_drawn_then_stored_then_told(diary):
    reservation, noise = diary("evaluation", 1, RECORDS)
    score = evaluate(noise=noise, reservation=reservation)

    diary.check_single(reservation)
    assert reservation.stored == [[list(score.sums)]]
    assert not score.seeded


@pytest.mark.heavy
def test_the_ledger_holds_what_the_score_was_read_from():
    reservation = paid(RECORDS, "evaluation")
    score = evaluate(reservation=reservation)
    [block] = reservation.blocks("evaluation")

    assert block.status == "stored"
    assert read_score(block.answers[0], RECORDS, seeded=True) == score
    with pytest.raises(BudgetExhausted):
        evaluate(reservation=reservation)


def test_nothing_is_drawn_when_something_is_wrong():
    ledger = Ledger(budget=Budget(50.0, 1e-6))
    cheap = ledger.reserve(PureDP(0.1), delta=0, purposes={"evaluation": 1}, key="cheap")
    labels = ledger.reserve(RECORDS.event, delta=0, purposes={"label": 1}, key="labels")
    good = paid(RECORDS, "evaluation")
    with pytest.raises(InvalidParameter, match="does not pay for 1 answers of NoisySum"):
        evaluate(reservation=cheap)
    with pytest.raises(InvalidParameter, match='no answers for "evaluation"'):
        evaluate(reservation=labels)
    twice = ledger.reserve(RECORDS.event, delta=0, purposes={"evaluation": 2}, key="twice for one price")
    with pytest.raises(InvalidParameter, match="does not pay for 2 answers"):
        evaluate(reservation=twice)
    for options, error in (
        ({"n_units": 200}, InvalidParameter),
        ({"failure": 0}, InvalidParameter),
        ({"failure": float("nan")}, InvalidParameter),
        ({"model": object()}, InvalidParameter),
        ({"y_codes": Y + 5}, DataRefused),
        ({"unit_keys": SLOTS[:-1]}, DataRefused),
        ({"unit_keys": [b"one"] * 200}, DataRefused),
        ({"X": X[:, :1]}, DataRefused),
    ):
        with pytest.raises(error):
            evaluate(reservation=good, **options)
    single = NoisySum.costing(0.5, grid=1)
    with pytest.raises(InvalidParameter, match="n_units must be given"):
        evaluate(single, reservation=paid(single, "evaluation"))
    assert good.remaining("evaluation") == 1


@pytest.mark.heavy
def test_a_reservation_may_hold_it_among_other_things():
    """One tight price for labels and their evaluation together."""
    from quorate.accounting import Composed, DiscreteGaussian, Repeated

    event = Composed((Repeated(DiscreteGaussian(40.0, 1.0), 100), RECORDS.event))
    reservation = Ledger(budget=Budget(50.0, 1e-5)).reserve(
        event,
        delta=1e-6,
        purposes={"label": 100, "evaluation": 1},
        key="both",
        charged_to={"label": 0, "evaluation": 1},
    )
    assert 0 <= evaluate(reservation=reservation, noise=OSNoise()).accuracy <= 1
