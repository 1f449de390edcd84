"""Paid scores: how often a printed half width holds, what was released, and in what order."""

from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from tests.labelling.conftest import faults, paid, watched
from tests.mechanisms.test_choice import permute_and_flip_law

from quorate.accounting import PureDP, Repeated, epsilon
from quorate.audit import audit_schedule
from quorate.audit.schedules import with_limit
from quorate.ensemble import unit_places
from quorate.ensemble.held_out import on_grid
from quorate.errors import BudgetExhausted, DataRefused, InvalidParameter
from quorate.labelling import noisy_evaluation, private_limit, private_slack, read_score
from quorate.labelling.private_sets import PLACES
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import NoisyCounts, NoisySum, PrivateQuantile
from quorate.noise import OSNoise, SeededNoise
from quorate.types import Secret

FALSE_ALARM = 1e-6
TRIALS = 1_000
RECORDS = NoisySum.costing(0.5, grid=1, form="shares")
Y = np.arange(200) % 4 // 3  # a quarter is of class 1
X = np.column_stack([Y, np.arange(200) < 20]).astype(float)  # the second column is where the model errs
SLOTS = [b"%d" % row for row in range(200)]


# Right but for 20 of the 200 rows: it predicts "yes" where the two columns differ.
MOSTLY = DecisionTreeClassifier(random_state=0).fit([[0, 0], [0, 1], [1, 0], [1, 1]], ["no", "yes", "yes", "no"])


def evaluate(
    mechanism=RECORDS, noise=None, reservation=None, *, model=MOSTLY, X=X, y_codes=Y, unit_keys=SLOTS, **options
):
    reservation = paid(mechanism, "evaluation") if reservation is None else reservation
    given = {"classes": ["no", "yes"], "noise": SeededNoise(3) if noise is None else noise, **options}
    return noisy_evaluation(model, X, y_codes, unit_keys, mechanism=mechanism, reservation=reservation, **given)


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


def test_it_is_charged_then_drawn_then_stored_then_told():
    """As every figure that is released once: the order is that of `release_once`, which tests/release holds."""
    reservation, noise, seen = watched("evaluation", 1, RECORDS)
    score = evaluate(noise=noise, reservation=reservation)

    assert seen
    assert faults(reservation, seen) == []
    [stored] = reservation.blocks("evaluation")[0].answers
    assert read_score(stored, RECORDS) == score


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


KEY = Secret(bytes(range(32)))


def plain_scores(counts: Any, share: float) -> Any:
    """Return what each place misses of the quantile, in units, by its definition alone."""
    n, scores = sum(counts), []
    for j in range(len(counts)):
        too_few = share * n - sum(counts[: j + 1])
        too_many = sum(counts[:j]) - share * n
        scores.append(-max(0.0, too_few, too_many))
    return scores


@pytest.mark.parametrize("share", [0.9, 0.25, 0.5])
def test_the_price_of_every_change_of_one_unit_by_another_road(share):
    """All tables of up to five units on four places: exact laws of neighbours, by definitions, lie within ε."""
    mechanism, worst = PrivateQuantile(epsilon=1.0, share=share), 0.0
    assert mechanism.event == PureDP(1.0)
    assert epsilon(mechanism.event, 0) == 1.0
    laws = {}
    for counts in product(range(6), repeat=4):
        if sum(counts) <= 5:
            laws[counts] = permute_and_flip_law(plain_scores(counts, share), 1.0)
            own = mechanism.scores(np.array([counts]))[0] / mechanism.as_fraction.denominator
            np.testing.assert_allclose(own, plain_scores(counts, share), atol=1e-12)
            assert max(own) == 0  # the quantile itself is always there
    for counts, one in laws.items():
        for place in range(4):
            added = tuple(n + (j == place) for j, n in enumerate(counts))
            moved = [tuple(n - (j == other) for j, n in enumerate(added)) for other in range(4)]
            for neighbour in (added, *moved):
                if neighbour in laws:
                    worst = max(worst, float(np.abs(np.log(one) - np.log(laws[neighbour])).max()))
    assert 0.6 < worst <= 1.0 + 1e-12


@dataclass(frozen=True)
class ExactQuantile(PrivateQuantile):
    """The twin: the quantile as it is, at the price of the noisy one."""

    def release_many(self, counts: Any, noise: Any) -> Any:
        return self.scores(counts).argmax(axis=1)


@dataclass(frozen=True)
class TooLittleNoise(PrivateQuantile):
    """Another: scores in q-ths of q-ths, and noise as if one unit moved them by q."""

    def release_many(self, counts: Any, noise: Any) -> Any:
        return self.choice.release_many(self.as_fraction.denominator * self.scores(counts), noise)


def test_the_audit_of_a_run_attacks_the_choice_of_its_limit_beside_the_rest():
    votes = NoisyCounts(sigma=40.0, form="binary")
    rest = partial(audit_schedule, votes, Repeated(votes.event, 2), n_teachers=50, n_classes=2)
    for kind, violated in ((PrivateQuantile, False), (ExactQuantile, True), (TooLittleNoise, True)):
        how: dict[str, Any] = {"delta": 1e-5, "confidence": 1 - 1e-6, "runs": 2_000, "seed": 1}
        found = with_limit(rest, kind(epsilon=1.0, share=0.9), **how)
        assert [attack.name for attack in found.attacks if attack.violated] == violated * [found.attacks[-1].name]
        assert (found.attacks[-1].claimed, found.confidence) == (pytest.approx(1.0, abs=1e-4), 1 - 1e-6)


def rows_and_model(n: int, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = (rng.random(n) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
    model = LogisticRegression()
    model.classes_, model.coef_, model.intercept_ = np.array([0, 1]), np.array([[2.0, 0.0]]), np.zeros(1)
    model.n_features_in_ = 2
    return X, y, model


def limit_of(X: Any, y: Any, model: Any, *, reservation: Any = None, mechanism: Any = None, **more: Any) -> Any:
    mechanism = mechanism or PrivateQuantile(epsilon=1.0, share=0.9)
    reservation = reservation or paid(mechanism, "tuning")
    given = {"unit_keys": [b"%d" % row for row in range(len(X))], "noise": SeededNoise(1), "key": KEY, **more}
    return private_limit(
        model, X, y, given.pop("unit_keys"), classes=[0, 1], mechanism=mechanism, reservation=reservation, **given
    )


def test_the_code_that_releases_gives_the_mechanism_one_place_a_unit_and_charges_before():
    X, y, model = rows_and_model(900)
    ledger = Ledger(budget=Budget(1.0, 1e-6))
    mechanism = PrivateQuantile(epsilon=1.0, share=0.9)
    paid = ledger.reserve(mechanism.event, delta=0, purposes={"tuning": 1}, key="limit")
    released = limit_of(X, y, model, reservation=paid, n_units=4_500, share=0.2, noise=OSNoise())
    assert ledger.spent.epsilon == pytest.approx(1.0)
    new, truth, _ = rows_and_model(20_000, seed=5)
    sets = released.sets(model.predict_proba(new))
    assert released.slack is not None
    assert 0.9 - released.slack < sets[np.arange(20_000), truth].mean() < 0.97
    assert (released.coverage, released.event, released.seeded) == (0.9, PureDP(1.0), False)
    with pytest.raises(BudgetExhausted):
        limit_of(X, y, model, reservation=paid)
    with pytest.raises(InvalidParameter, match="n_units and share make a slack together"):
        limit_of(X, y, model, n_units=900)
    cheaper = Ledger(budget=Budget(1.0, 1e-6)).reserve(PureDP(0.1), delta=0, purposes={"tuning": 1}, key="limit")
    with pytest.raises(InvalidParameter, match="tuning"):
        limit_of(X, y, model, reservation=cheaper)


class Quirky(LogisticRegression):
    """A model that fails on some rows, and says another thing where it sees more than one."""

    def predict_proba(self, X: Any) -> Any:
        if X[0, 1] > 1.5:
            raise ValueError(X)
        return np.full((len(X), 2), 0.5) if len(X) > 1 else super().predict_proba(X)


def test_a_unit_counts_once_by_itself_and_one_on_which_the_model_fails_is_the_worst():
    X, y, plain = rows_and_model(24)
    model = Quirky()
    vars(model).update(vars(plain))
    units = [b"%d" % (row // 3) for row in range(24)]
    how: dict[str, Any] = {"classes": [0, 1], "n_places": 10, "key": KEY}
    whole = unit_places(model, X, y, units, **how).reveal()
    assert whole.sum() == 8
    alone = sum(
        unit_places(model, X[at : at + 3], y[at : at + 3], units[at : at + 3], **how).reveal() for at in range(0, 24, 3)
    )
    np.testing.assert_array_equal(whole, alone)  # what one unit adds follows from its rows and public facts
    far = X.copy()
    far[:, 1] = 2.0
    np.testing.assert_array_equal(unit_places(model, far, y, units, **how).reveal(), [0] * 9 + [8])
    every = unit_places(plain, X, y, [b"%d" % row for row in range(24)], **how).reveal()
    places = np.clip(np.ceil((1 - plain.predict_proba(X)[np.arange(24), y]) * 10) - 1, 0, 9).astype(int)
    np.testing.assert_array_equal(every, np.bincount(places, minlength=10))


def test_the_slack_holds_as_often_as_it_says_and_a_twin_without_the_noise_in_it_does_not():
    """Units, key and noise are drawn 2,000 times; where a score is uniform, place j covers (j + 1)/PLACES."""
    rng, n_units, share, failure = np.random.default_rng(4), 3_000, 0.2, 0.05
    mechanism = PrivateQuantile(epsilon=0.2, share=0.9)
    slack = private_slack(mechanism, n_units, share=share, failure=failure)
    held = rng.binomial(n_units, share, size=2_000)
    counts = np.array([np.bincount(rng.integers(0, PLACES, n), minlength=PLACES) for n in held])
    covered = (mechanism.release_many(counts, SeededNoise(2)) + 1) / PLACES
    most = failure + 2 * np.sqrt(failure * (1 - failure) / 2_000)
    assert np.mean(covered < 0.9 - slack) <= most
    twin = private_slack(PrivateQuantile(epsilon=1e6, share=0.9), n_units, share=share, failure=failure)
    assert np.mean(covered < 0.9 - twin) > most
    assert private_slack(mechanism, 30_000, share=share) < private_slack(mechanism, 3_000, share=share)


def test_what_cannot_be_is_refused_in_a_line():
    with pytest.raises(InvalidParameter, match="hides more than the 20 units that are held out, and nothing would be"):
        private_slack(PrivateQuantile(epsilon=0.1, share=0.9), 100, share=0.2)
    for wrong, said in (
        ({"share": 0.91234}, "three decimals"),
        ({"share": 1.0}, "share must be a number > 0 and < 1, got 1.0"),
        ({"epsilon": 0}, "epsil"),
    ):
        with pytest.raises(InvalidParameter, match=said):
            PrivateQuantile(**{"epsilon": 1.0, "share": 0.9, **wrong})
