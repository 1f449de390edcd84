"""Votes made elsewhere: charged once, bound to their ledger, and said to be what they are."""

import json
import stat

import numpy as np
import pytest
from tests.folder.conftest import charges, entries, labels

from quorate.accounting import Guarantee
from quorate.accounting import epsilon as price
from quorate.errors import BudgetExhausted, InvalidParameter, LedgerMismatch
from quorate.folder.external_votes import (
    FIGURE_LOST,
    _text_in_key,
    data_dependent_epsilon,
    price_of,
    release_votes,
    write_analysis,
)
from quorate.folder.votes_file import VotesFile
from quorate.labelling import DataDependentRelease
from quorate.ledger import Budget, Ledger, Reservation
from quorate.mechanisms import (
    ConfidentNoisyMax,
    Exponential,
    GaussianNoisyMax,
    LaplaceNoisyMax,
    NoisyCounts,
    SoftLabel,
    StableSparseVector,
)
from quorate.noise import OSNoise, SeededNoise
from quorate.types import Secret
from quorate.voting.method import mechanism_in_words

DELTA = 1e-5
STATED = "the owner's statement and was not checked"
SEEDED, SEEDED_EARLIER = "the noise was seeded", "an earlier run on the same ledger had seeded noise"
EARLIER = "ε and δ include what earlier runs on the same data spent"
RNG = np.random.default_rng(20)
COUNTS = RNG.multinomial(250, RNG.dirichlet([0.3] * 4, size=100)).astype(np.int64)
NAMES = ("ant", "bee", "cow", "dog")
GNMAX = GaussianNoisyMax(sigma=60.0)
CONFIDENT = ConfidentNoisyMax(threshold=150.0, sigma_threshold=80.0, sigma_answer=60.0)
SANITISER = DataDependentRelease(order=20.0, beta=0.01, multiplier=40.0, delta=1e-6)


def votes(counts=COUNTS, names=NAMES):
    return VotesFile(Secret(counts), names[: counts.shape[1]], 250)


def release(root, mechanism=GNMAX, file=None, **how):
    defaults = {"budget": Budget(20.0, 1e-4), "delta": DELTA, "noise": OSNoise(), "allow_hopeless": True}
    return release_votes(votes() if file is None else file, mechanism, root=root, **{**defaults, **how})


def says(done, caveat):
    return any(each.startswith(caveat) or each.endswith(caveat) for each in done.guarantee.caveats)


def drawn(root):
    """What was spent, and how many answers were drawn for each reservation; refusals leave a trace of their own."""
    with Ledger(root / "ledger.db") as ledger:
        blocks = [sum(block.count for block in each.blocks("label")) for each in ledger.reservations()]
        return ledger.spent, blocks


def test_labels_and_guarantee_are_written(tmp_path):
    done = release(tmp_path, unit="patient")
    rows = labels(tmp_path)
    assert [row["row"] for row in rows] == [str(number) for number in range(100)]
    assert [row["label"] for row in rows] == [NAMES[code] for code in done.released.codes]
    assert {row["status"] for row in rows} == {"answered"}
    clear = np.sort(COUNTS, axis=1)[:, -1] - np.sort(COUNTS, axis=1)[:, -2] > 200
    assert clear.any()
    assert (done.released.codes[clear] == COUNTS.argmax(axis=1)[clear]).mean() > 0.5  # it is about 0.99
    written = Guarantee.from_json((tmp_path / "public" / "guarantee.json").read_text())
    assert written == done.guarantee
    assert written.unit == "patient"
    assert written.neighbours == "add, remove or replace one patient, as the owner states"
    assert written.mechanism == f"at most 100 answers of {mechanism_in_words(GNMAX)}"
    assert says(done, STATED)
    assert not says(done, EARLIER)
    with Ledger(tmp_path / "ledger.db") as ledger:
        assert ledger.spent.epsilon == written.epsilon == pytest.approx(price_of(votes(), GNMAX, DELTA), abs=2e-9)
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o700


MECHANISMS = [
    GNMAX,
    CONFIDENT,
    NoisyCounts(sigma=60.0),
    LaplaceNoisyMax(laplace_scale=150.0),
    Exponential(epsilon=0.02),
    StableSparseVector(epsilon=1.0, delta=1e-6, cutoff=10, n_queries=100),
]


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: type(each).__name__)
def test_each_mechanism_is_charged_once_and_repeats_its_labels(tmp_path, mechanism):
    first = release(tmp_path, mechanism)
    before, written = entries(tmp_path), labels(tmp_path)
    again = release(tmp_path, mechanism)
    assert again.guarantee == first.guarantee
    assert labels(tmp_path) == written
    assert entries(tmp_path) == before
    assert first.guarantee.epsilon == pytest.approx(price(mechanism.schedule(100), DELTA), abs=2e-9)


@pytest.mark.heavy
def test_a_mechanism_of_the_same_event_is_charged_anew(tmp_path):
    """Noisy counts cost what a noisy max costs, and a threshold costs nothing: their answers differ all the same."""
    release(tmp_path, NoisyCounts(sigma=60.0))
    one = release(tmp_path, GNMAX)
    assert one.released.codes.max() <= 3
    assert charges(tmp_path) == 2
    release(tmp_path, CONFIDENT)
    other = release(tmp_path, ConfidentNoisyMax(threshold=1e9, sigma_threshold=80.0, sigma_answer=60.0))
    assert other.released.declined.all()
    assert says(other, EARLIER)


def test_other_votes_are_refused_and_nothing_is_drawn(tmp_path):
    release(tmp_path)
    before, written = drawn(tmp_path), (tmp_path / "public" / "labels.csv").read_bytes()
    changed = COUNTS.copy()
    changed[7] += [1, -1, 0, 0] if changed[7, 1] else [-1, 1, 0, 0]
    for file in (votes(changed), votes(COUNTS[:99])):
        with pytest.raises(LedgerMismatch):
            release(tmp_path, file=file)
    assert drawn(tmp_path) == before
    assert (tmp_path / "public" / "labels.csv").read_bytes() == written


def test_the_same_votes_in_another_order_are_other_queries(tmp_path):
    release(tmp_path)
    turned = release(tmp_path, file=votes(COUNTS[::-1].copy()))
    assert charges(tmp_path) == 2
    clear = COUNTS[::-1].max(axis=1) > 240
    assert (turned.released.codes[clear] == COUNTS[::-1].argmax(axis=1)[clear]).mean() > 0.5


def test_what_does_not_fit_the_budget_is_refused_and_nothing_is_drawn(tmp_path):
    with pytest.raises(BudgetExhausted):
        release(tmp_path, budget=Budget(0.5, DELTA))
    assert charges(tmp_path) == 0
    assert not (tmp_path / "public" / "labels.csv").exists()


@pytest.mark.parametrize(
    ("mechanism", "said"),
    [
        (SoftLabel(epsilon=1.0, delta=1e-6, cutoff=3, n_queries=100, bins=4), "needs the teachers' scores"),
        (GaussianNoisyMax(sigma=60.0, form="binary"), 'form="histogram"'),
        (Exponential(epsilon=0.02, sensitivity=0.5), "sensitivity >= 1"),
    ],
)
def test_a_mechanism_that_votes_cannot_serve_is_refused_before_a_ledger_exists(tmp_path, mechanism, said):
    with pytest.raises(InvalidParameter) as refusal:
        release(tmp_path, mechanism)
    assert said in str(refusal.value)
    assert not (tmp_path / "ledger.db").exists()


def killed(root, at, **how):
    """Release, and die where the answers of a block were drawn and are to be stored."""
    real = Reservation.store

    def die(self, block, answers):
        if at(block):
            raise KeyboardInterrupt
        return real(self, block, answers)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Reservation, "store", die)
        with pytest.raises(KeyboardInterrupt):
            release(root, **how)


def test_a_killed_release_goes_on_and_what_was_in_flight_is_declined(tmp_path):
    killed(tmp_path, lambda block: block.first == 64)
    done = release(tmp_path)
    assert done.released.interrupted.tolist() == [False] * 64 + [True] * 36
    assert [row["status"] for row in labels(tmp_path)] == ["answered"] * 64 + ["interrupted"] * 36
    assert charges(tmp_path) == 1


def test_seeded_labels_repeat_are_marked_wherever_they_go_and_are_never_taken_for_private_ones(tmp_path):
    one, two = (release(tmp_path / name, noise=SeededNoise(3)) for name in ("one", "two"))
    assert one.released.codes.tolist() == two.released.codes.tolist()
    assert one.guarantee.caveats[0].startswith(SEEDED)
    assert says(one, STATED)
    assert {row["guarantee"] for row in labels(tmp_path / "one")} == {"none: seeded noise, not private"}
    private = release(tmp_path / "one")
    assert private.released.codes.tolist() != one.released.codes.tolist()
    assert not says(private, SEEDED)
    assert says(private, SEEDED_EARLIER)
    assert "guarantee" not in labels(tmp_path / "one")[0]


@pytest.mark.heavy
@pytest.mark.parametrize("mechanism", [GNMAX, CONFIDENT], ids=["GNMax", "Confident"])
def test_the_data_dependent_figure_is_released_once_and_paid_for(tmp_path, mechanism):
    done = release(tmp_path, mechanism, sanitiser=SANITISER)
    assert done.sanitised_epsilon is not None
    assert done.guarantee.epsilon > price_of(votes(), mechanism, DELTA) + 0.1
    before = entries(tmp_path)
    again = release(tmp_path, mechanism, sanitiser=SANITISER)
    assert (again.sanitised_epsilon, again.guarantee) == (done.sanitised_epsilon, done.guarantee)
    assert entries(tmp_path) == before


@pytest.mark.heavy
def test_a_figure_lost_with_its_process_is_not_drawn_again_and_the_labels_are_written(tmp_path):
    killed(tmp_path, lambda block: block.purpose == "evaluation", sanitiser=SANITISER)
    done = release(tmp_path, sanitiser=SANITISER)
    assert done.sanitised_epsilon is None
    assert FIGURE_LOST in done.guarantee.caveats
    assert len(labels(tmp_path)) == 100


def test_the_analysis_is_readable_by_its_owner_alone(tmp_path):
    figures = data_dependent_epsilon(votes(), GNMAX, DELTA)
    assert repr(figures) == "Secret(…)"
    path = write_analysis(tmp_path, figures)
    assert path == tmp_path / "private" / "analysis.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    content = json.loads(path.read_text())
    assert content.pop("note") == "not for release: these figures depend on the votes"
    assert content == figures.reveal()
    assert not any((tmp_path / "public").iterdir())


def test_a_charge_for_a_figure_has_the_key_that_version_0_1_gave_it():
    mechanism = GaussianNoisyMax(sigma=40.0)
    assert _text_in_key(mechanism, SANITISER) == (
        "(GaussianNoisyMax(sigma=40.0, form='histogram'), "
        "Sanitiser(order=20.0, beta=0.01, multiplier=40.0, delta=1e-06))"
    )
    assert _text_in_key(mechanism, None) == "(GaussianNoisyMax(sigma=40.0, form='histogram'), None)"
