"""AgnosticPrediction: what it answers against its exact law, what it costs, what it keeps to itself."""

import copy
import functools
import pickle
import shutil
from dataclasses import replace
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from tests.learners import exact
from tests.learners.test_agnostic_price import DOMAIN
from tests.learners.test_agnostic_price import noisy_rows as rows

from quorate.accounting import ApproxDP, PureDP, Repeated
from quorate.accounting import epsilon as composed_epsilon
from quorate.errors import BudgetExhausted, DataRefused, InvalidParameter, LedgerIntegrityError, SecretRefused
from quorate.learners.agnostic import prediction
from quorate.learners.agnostic.prediction import AgnosticPrediction
from quorate.learners.agnostic.price import AgnosticPrice
from quorate.learners.agnostic.voting import PredictionPlan, plan_predictions, votes_of, voting_error
from quorate.learners.concepts import SymmetricDifference, Thresholds
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import PrivatePrediction
from quorate.noise import SeededNoise
from quorate.release.charge import STAGE

FALSE_ALARM = 1e-6
GRID, FOUR = Thresholds(bits=2), exact.thresholds(4)


POINTS = np.array([[0], [1], [1], [2], [3], [3]])
LABELS = np.array([1, 0, 1, 1, 0, 0], dtype=np.uint8)
PRICE = AgnosticPrice(n=6, n_sampled=4, choice_epsilon=2.0, learner_epsilon=1.0)
PLAN = PredictionPlan(price=PRICE, mechanism=PrivatePrediction(1.0), n_hypotheses=2, excess=1.0)


def law_of_an_answer(**changes):
    base = exact.votes_of_parts(FOUR, changes.pop("n_hypotheses", 2), 1.0, (2,))
    return exact.relabelled_then(base, FOUR, n_sampled=4, choice_epsilon=2.0, **changes)(POINTS, LABELS)


def test_answers_follow_the_exact_law_and_a_wrong_one_is_caught():
    private, root, drawn = AgnosticPrediction(concepts=GRID, epsilon=1.0), SeededNoise(7), []
    for i in range(1_800):
        noise = root.at("draw", i)
        hypotheses = private._hypotheses(POINTS, LABELS, PLAN, noise).reveal()
        drawn.append((PLAN.mechanism.release(votes_of(hypotheses, np.array([[2]]))[0], noise.at("prediction", 0)),))

    assert exact.p_value(law_of_an_answer(), drawn) > FALSE_ALARM
    assert exact.p_value(law_of_an_answer(n_hypotheses=1), drawn) < FALSE_ALARM


def delta_of_rounds(epsilon_each, times, epsilon):
    """δ of randomized response, told so many times, at ε: every sequence of truths and lies, in exact numbers."""
    truth = 1 / (1 + exact.exp(-Fraction(epsilon_each)))
    lie = 1 - truth
    return exact.EXACT.fsum(
        comb(times, i)
        * max(truth**i * lie ** (times - i) - exact.exp(Fraction(epsilon)) * lie**i * truth ** (times - i), 0)
        for i in range(times + 1)
    )


@pytest.mark.parametrize(("n_queries", "delta"), [(1, 1e-5), (3, 1e-3), (40, 1e-6), (400, 1e-8)])
def test_the_price_with_a_delta_is_that_of_all_sequences_of_answers_and_nearly_all_of_it_is_used(n_queries, delta):
    """By another road: binomial sums in exact numbers for the answers, and the lemma's formula for the rest."""
    plan = private(n_queries=n_queries, delta=delta).plan_for(20_000)
    price, each = plan.price, plan.mechanism.epsilon
    together = delta_of_rounds(each, n_queries, price.learner_epsilon)
    assert together <= price.learner_delta
    assert delta_of_rounds(each * 1.001, n_queries, price.learner_epsilon) > price.learner_delta * 0.99
    q = exact.exact(Fraction(price.n_sampled, price.n))
    e_choice = exact.exp(Fraction(price.choice_epsilon))
    m = 4 * exact.exp(Fraction(price.choice_epsilon) * price.n / price.n_sampled + Fraction(price.learner_epsilon))
    whole = exact.EXACT.log(((1 - q) * e_choice + q * m) / (1 - q + q * e_choice))
    assert whole <= price.event.epsilon <= 1.0
    assert q * price.learner_delta <= price.event.delta <= delta
    assert price.event.delta > 0.99 * delta or price.learner_delta == 0.5


def test_many_predictions_cost_the_root_of_their_number_and_none_more_than_without_a_delta():
    few, many = (private(n_queries=n, delta=1e-6).plan_for(20_000) for n in (5, 10_000))
    pure_few, pure_many = (private(n_queries=n).plan_for(20_000) for n in (5, 10_000))
    assert few.excess <= pure_few.excess
    assert many.mechanism.epsilon > 20 * pure_many.mechanism.epsilon


def asked_in_turn(epsilon, n_queries):
    """Answers to points that are chosen by the answers before them: the law of a whole transcript."""
    one = functools.partial(exact.votes_of_parts, FOUR, 1, epsilon)

    def law(points, labels):
        told = {(): exact.exact(1)}
        for _ in range(n_queries):
            told = {
                (*before, answer): chance * share
                for before, chance in told.items()
                for (answer,), share in one((1 + sum(before) % 3,))(
                    list(zip(points[:, 0], labels, strict=True))
                ).items()
            }
        return told

    return law


def test_the_true_delta_of_answers_to_chosen_questions_is_below_the_claim_and_a_cheat_is_above():
    """Every data set of these points, every neighbour, every transcript: enumerated."""
    each, n_queries, delta, data = 0.2, 8, 0.02, exact.labelled((0, 2), 1)
    together = composed_epsilon(Repeated(PureDP(each), n_queries), delta)
    assert together < 0.8 * each * n_queries
    assert delta / 4 < exact.true_delta(asked_in_turn(each, n_queries), together, data).value <= delta
    assert exact.true_delta(asked_in_turn(2 * each, n_queries), together, data).value > 2 * delta


def test_a_delta_is_charged_once_and_told_in_the_ledger_and_the_guarantee():
    ledger = Ledger(budget=Budget(1.0, 1e-5))
    asked = private(n_queries=100, delta=1e-5, ledger=ledger).fit(*rows())
    assert 0.99 < ledger.spent.epsilon <= 1.0
    assert 0.98e-5 < ledger.spent.delta <= 1e-5
    assert (asked.guarantee_.epsilon, asked.guarantee_.delta) == pytest.approx(
        (ledger.spent.epsilon, ledger.spent.delta), rel=1e-6
    )
    assert isinstance(asked.plan_.price.event, ApproxDP)
    assert asked.answers_left_ == 100
    asked.ask([[1], [60_000]])
    assert asked.answers_left_ == 98
    assert len(ledger.reservations()) == 1
    with pytest.raises(BudgetExhausted):
        private(delta=1e-5, ledger=ledger).fit(*rows())


def private(**changes):
    return AgnosticPrediction(**{"concepts": DOMAIN, "epsilon": 1.0, "n_queries": 3, "unsafe_noise_seed": 0, **changes})


def test_all_predictions_are_charged_by_fit_and_an_old_question_is_free():
    ledger = Ledger(budget=Budget(1.0, 1e-5))
    asked = private(ledger=ledger).fit(*rows())
    spent = ledger.spent.epsilon

    first = asked.ask([[100], [60_000], [100]])

    assert 0.999 < spent <= 1.0
    assert asked.answers_left_ == 1
    assert asked.ask([[60_000], [100]]).tolist() == [first[1], first[0]]
    assert asked.answers_left_ == 1
    with pytest.raises(BudgetExhausted):
        asked.ask([[1], [2]])
    assert asked.answers_left_ == 1
    assert asked.ask([[1]]).shape == (1,)
    assert ledger.spent.epsilon == spent


def test_each_fit_draws_a_sample_of_its_own_and_pays_for_it():
    ledger = Ledger(budget=Budget(2.5, 1e-5))
    asked = private(ledger=ledger).fit(*rows())
    asked.ask([[1]])

    asked.fit(*rows())

    assert 1.99 < ledger.spent.epsilon <= 2.0
    assert asked.answers_left_ == 3
    with pytest.raises(BudgetExhausted):
        asked.fit(*rows())


def test_a_ledger_on_disk_knows_the_answers(tmp_path):
    asked = private(ledger=tmp_path / "ledger.db").fit(*rows())
    told = asked.ask([[100], [60_000]])

    with Ledger(tmp_path / "ledger.db") as ledger:
        [reservation] = ledger.reservations()
        [block] = ledger.reservation(reservation.key, client=reservation.client).blocks("prediction")
    assert block.answers == told.tolist()


def test_nothing_of_a_fit_can_be_taken_away():
    asked = private().fit(*rows())

    for take in (pickle.dumps, copy.deepcopy, copy.copy):
        with pytest.raises(SecretRefused, match="without privacy"):
            take(asked)
    assert "cut=" not in repr(vars(asked))
    assert pickle.loads(pickle.dumps(private())).n_queries == 3  # noqa: S301  our own bytes
    assert not hasattr(asked, "predict")


def test_answers_are_as_good_as_the_bound_says():
    """The error of the next answer, over all points of the domain, for the hypotheses of some fits."""
    flipped, n = 0.1, 40_000
    asked = private(n_queries=1, epsilon=2.0)
    plan = asked.plan_for(n)
    domain = np.arange(0, 2**16, 7).reshape(-1, 1)
    found = []
    for seed in range(6):
        X, y = rows(n, flipped, seed)
        hypotheses = asked._hypotheses(X, y.astype(np.uint8), plan, SeededNoise(seed)).reveal()
        right = (domain[:, 0] < 30_000).astype(int)
        lead = plan.n_hypotheses - 2 * votes_of(hypotheses, domain)[np.arange(len(domain)), 1 - right]
        worse = np.exp(-plan.mechanism.epsilon * np.abs(lead) / 2) / 2  # permute-and-flip of two
        wrong = np.where(lead > 0, worse, 1 - worse)
        found.append(wrong.mean() * (1 - 2 * flipped))

    assert plan.excess < 0.5
    assert max(found) <= plan.excess


def test_where_nothing_is_proven_hypotheses_still_vote():
    plan = private(n_queries=3).plan_for(4_000)

    assert plan.excess > 0.5
    # Three votes more for the right label than for the other, at the least, are worth something.
    assert plan.n_hypotheses * plan.mechanism.epsilon > 1


def test_the_number_of_hypotheses_is_searched_and_never_worse_than_the_papers():
    growth = lambda m: m + 1  # noqa: E731
    plan = plan_predictions(10**6, epsilon=1.0, n_queries=1, growth=growth, beta=0.1)
    s, one = plan.price.n_sampled, plan.mechanism.epsilon
    found = voting_error(s, plan.n_hypotheses, one, growth, 0.02)

    assert all(
        found <= voting_error(s, plan.mechanism.n_hypotheses(alpha), one, growth, 0.02) for alpha in (0.5, 0.125)
    )
    assert plan.mechanism.epsilon <= plan.price.learner_epsilon


def test_more_queries_need_more_rows_and_as_many_as_are_needed_are_enough():
    one, ten = (private(n_queries=n, alpha=0.2).rows_needed().labelled for n in (1, 10))

    assert one < ten
    assert private(n_queries=1, alpha=0.2).plan_for(one).excess <= 0.2


def test_a_question_outside_the_domain_or_before_fit_costs_nothing():
    with pytest.raises(NotFittedError):
        private().ask([[1]])
    asked = private().fit(*rows())
    with pytest.raises(DataRefused):
        asked.ask([[2**16]])
    assert asked.answers_left_ == 3


def test_wrong_tables_are_refused_and_nothing_is_charged():
    X, y = rows(100)
    ledger = Ledger(budget=Budget(1.0, 1e-5))
    asked = private(ledger=ledger)

    for table, match in (((X, y + 1), "0, 1 and -1"), ((X, y[1:]), "length"), ((X, np.full(100, -1)), "two labels")):
        with pytest.raises(DataRefused, match=match):
            asked.fit(*table)
    with pytest.raises(DataRefused, match="rows_needed"):
        private(ledger=ledger, rows="theorem").fit(X, y)
    with pytest.raises(DataRefused, match="needs 29 at least"):
        private(ledger=ledger, epsilon=0.1).fit(X[:28], y[:28])
    with pytest.raises(InvalidParameter, match="groups"):
        asked.fit(X, y, groups=np.arange(100))
    assert ledger.spent.epsilon == 0


def test_a_ledger_that_was_put_back_sells_no_answer_twice(tmp_path):
    kept, older = tmp_path / "ledger", tmp_path / "older"
    kept.mkdir()
    asked = private(n_queries=1, ledger=kept / "ledger.db", unsafe_noise_seed=None).fit(*rows())
    shutil.copytree(kept, older)
    assert asked.ask([[5]]).shape == (1,)
    shutil.rmtree(kept)
    shutil.copytree(older, kept)
    for _ in range(2):
        with pytest.raises(LedgerIntegrityError, match="older or another ledger"):
            asked.ask([[60_000]])
    with pytest.raises(LedgerIntegrityError):
        _ = asked.answers_left_
    asked.ledger = older / "ledger.db"  # a copy at another place is no better
    with pytest.raises(LedgerIntegrityError):
        asked.ask([[60_000]])
    assert asked.ask([[5]]).shape == (1,)  # what was released stays known


def test_an_object_gives_no_more_answers_than_were_charged_whatever_a_ledger_says(monkeypatch):
    asked = private(n_queries=2).fit(*rows())
    asked.ask([[1], [2]])
    monkeypatch.setattr("quorate.ledger.Reservation.draw", lambda *_, **__: pytest.fail("drawn"))
    asked.n_queries = 100
    with pytest.raises(BudgetExhausted) as refusal:
        asked.ask([[3]])
    assert (refusal.value.spent, refusal.value.requested, refusal.value.limit) == (2, 1, 2)


def test_an_answer_that_was_drawn_and_lost_counts(monkeypatch):
    asked = private(n_queries=2).fit(*rows())
    with monkeypatch.context() as broken:
        broken.setattr("quorate.ledger.Reservation.store", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            asked.ask([[1]])
    with pytest.raises(BudgetExhausted):
        asked.ask([[2], [3]])
    assert asked.ask([[2]]).shape == (1,)


def test_a_public_attribute_does_not_turn_the_noise_down():
    """400 answers from 2,000 rows are nearly coins; with the mechanism that is put there, each would be 1."""
    asked = private(n_queries=400).fit(*rows(2_000, flipped=0.0))
    asked.plan_ = replace(asked.plan_, mechanism=PrivatePrediction(1e6))
    assert 100 < asked.ask(np.arange(400).reshape(-1, 1)).sum() < 390


def test_scores_that_the_class_would_refuse_are_refused_before_the_charge():
    X = np.random.default_rng(0).integers(0, 2**16, (4_000, 1))
    ledger = Ledger(budget=Budget(10.0, 0.0))
    asked = private(concepts=SymmetricDifference(DOMAIN), n_queries=1, epsilon=4.0, ledger=ledger)
    with pytest.raises(InvalidParameter, match="fewer rows") as refusal:
        asked.fit(X, X[:, 0] < 9_000)
    assert refusal.value.charged == "nothing was charged"
    assert ledger.spent.epsilon == 0
    assert asked.fit(X[:30], X[:30, 0] < 9_000).ask([[1]]).shape == (1,)


def stable(**changes):
    return private(**{"n_queries": 400, "cutoff": 2, "delta": 1e-5, **changes})


@pytest.mark.parametrize(("cutoff", "delta"), [(1, 1e-5), (3, 1e-6)])
def test_the_price_of_stable_answers_is_that_of_their_declined_ones_by_another_road(cutoff, delta):
    """Exact sums: T answers of randomized response, and the chance that a tie passes, from two geometric exact."""
    plan = stable(cutoff=cutoff, delta=delta).plan_for(20_000)
    price, noise = plan.price, plan.mechanism.stage_noise
    bar, query = (exact.exp(-1 / exact.exact(Fraction(scale))) for scale in (noise.threshold_scale, noise.query_scale))
    above = bar ** (int(noise.threshold) + 1) * (1 - query) / (1 - bar * query)  # P(geometric bar − geometric ≥ w + 1)
    each = Fraction(1 / noise.threshold_scale) + 2 * Fraction(1 / noise.query_scale)
    together = delta_of_rounds(each, cutoff, price.learner_epsilon) + cutoff * above
    assert 0.5 * price.learner_delta < together <= price.learner_delta
    assert price.event.epsilon <= 1.0
    assert 0.99 * delta < price.event.delta <= delta


def test_one_row_changes_one_vote_on_each_point_and_shared_rows_are_caught(monkeypatch):
    plan, (X, y), asked = stable().plan_for(20_000), rows(2_000), stable()
    X[(X > 10_000) & (X < 55_000)] = 1  # a gap, in which one row moves a cut
    points, moves = np.arange(0, 2**16, 64)[:, None], []
    for split in (np.array_split, lambda rows, n: [rows] * n):
        votes = []
        for place in (1, 50_000):
            moved = X.copy()
            moved[7] = place
            relabelled = (moved, (moved[:, 0] <= 50_000).astype(np.uint8))
            with monkeypatch.context() as patched:
                patched.setattr(prediction, "relabelled_sample", lambda *_, relabelled=relabelled: relabelled)
                patched.setattr(np, "array_split", split)
                learned = asked._hypotheses(X, y.astype(np.uint8), replace(plan, n_hypotheses=25), SeededNoise(0))
            votes.append(votes_of(learned.reveal(), points)[:, 0])
        moves.append(np.abs(votes[0] - votes[1]).max())
    assert moves == [1, 25]


def test_points_far_from_the_cut_are_free_and_declined_ones_end_it():
    ledger = Ledger(budget=Budget(1.0, 1e-5))
    asked = stable(ledger=ledger, n_queries=500).fit(*rows(60_000))
    far = np.concatenate([np.arange(0, 1_500, 10), np.arange(60_000, 61_500, 10)])[:, None]

    assert asked.ask(far).tolist() == [1] * 150 + [0] * 150
    assert asked.answers_left_ == 200
    near = asked.ask(np.arange(29_900, 30_000)[:, None]).tolist()  # between the cuts of the concepts
    first = [place for place, answer in enumerate(near) if answer is None][:2]
    assert len(first) == 2
    assert near[first[1] :] == [None] * (100 - first[1])
    assert asked.answers_left_ == 0
    assert asked.ask([[29_999], [10]]).tolist() == [None, 1]
    with pytest.raises(BudgetExhausted, match="cutoff=2"):
        asked.ask([[5]])
    [reservation] = ledger.reservations()
    assert dict(reservation.purposes) == {"prediction": 500, STAGE: 2}
    assert "of which 2 may be declined" in asked.guarantee_.mechanism
    assert 0.99 < ledger.spent.epsilon <= 1.0


def test_what_is_proven_of_stable_answers_grows_with_rows_and_covers_what_happens():
    asked = stable(n_queries=5_000, epsilon=3.0)
    plan, domain = asked.plan_for(400_000), np.arange(0, 2**16, 16)[:, None]
    assert plan.excess < asked.plan_for(200_000).excess
    X, y = rows(400_000)
    hypotheses = asked._hypotheses(X, y.astype(np.uint8), plan, SeededNoise(1)).reveal()
    votes, right = votes_of(hypotheses, domain), (domain[:, 0] < 30_000).astype(int)
    lead = votes[np.arange(len(domain)), right] - votes[np.arange(len(domain)), 1 - right]
    distance = np.maximum(lead - 1, 0) // 2
    passes = np.array([plan.mechanism.pass_probability(int(d)) for d in distance])
    assert 1 - np.mean(np.where(lead > 0, passes, 0.0)) <= plan.excess < 1


@pytest.mark.parametrize(
    ("changes", "match"),
    [({"delta": 0.0}, "cutoff needs a delta"), ({"cutoff": 0}, "cutoff"), ({"cutoff": 401}, "at most n_queries=400")],
)
def test_a_cutoff_that_does_not_go_is_refused(changes, match):
    with pytest.raises(InvalidParameter, match=match):
        stable(**changes).fit(*rows(100))
