"""Every mechanism, named in quorate.toml: what a run with it writes, costs, says and does after a kill."""

import json
import signal
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import RidgeClassifier
from tests.folder.conftest import PUBLISHED, charges, edit, labels, run, spent_on
from tests.preloaded import Forked

from quorate import PrivateClassifier, PublicPool
from quorate.accounting import epsilon as price
from quorate.errors import BudgetExhausted, InvalidParameter
from quorate.folder.batch import ask, load_run
from quorate.folder.methods import execute
from quorate.ledger import Ledger
from quorate.mechanisms import (
    Exponential,
    GaussianNoisyMax,
    InteractiveNoisyMax,
    SoftLabel,
    StableSparseVector,
    StreamMechanism,
    for_runs,
    required_fields,
    user_fields,
)
from quorate.run.stage_store import FolderStages
from quorate.voting.kept_votes import votes
from quorate.voting.method import mechanism_in_words
from quorate.voting.shard_rows import shards_to_train

pytestmark = pytest.mark.mostly_heavy

KINDS = for_runs()
OF_TWELVE = {"threshold": 8.0, "confidence": 0.9, "cutoff": 5, "bins": 4}  # teachers; of other fields the example


def section(name, **more):
    fields = {key: OF_TWELVE.get(key, example) for key, (example, _) in required_fields(KINDS[name]).items()}
    return {f"mechanism.{key}": value for key, value in {"name": name, **fields, **more}.items()}


@pytest.mark.parametrize("name", KINDS)
def test_a_run_with_each_mechanism_writes_its_outputs_and_costs_its_price(make_run, name):
    root = make_run(n=300, m=60, **section(name))
    batch = load_run(root)
    mechanism, event = batch.task.recipe.mechanism, batch.task.recipe.event
    assert type(mechanism) is KINDS[name]
    facts = execute(batch, command="quorate run")
    assert {path.name for path in (root / "public").iterdir()} == PUBLISHED
    spent, n_charges = spent_on(root)
    assert n_charges == 1
    assert spent.epsilon == pytest.approx(price(event, 1e-5), abs=2e-9)
    assert 3.9 < spent.epsilon <= 4.0  # the budget was filled in, and not overrun
    assert (facts.guarantee.epsilon, facts.guarantee.delta) == (spent.epsilon, spent.delta)
    assert facts.guarantee.mechanism == f"at most 60 answers of {mechanism_in_words(mechanism)}"
    assert all(f"{field} = " in facts.guarantee.mechanism for field in user_fields(KINDS[name]))
    rows = labels(root)
    assert len(rows) == 60
    closes = issubclass(KINDS[name], StreamMechanism)
    states = {"answered", *(["declined"] * mechanism.may_decline), *(["never asked"] * closes)}
    assert {row["status"] for row in rows} <= states
    counted = facts.answers
    assert (counted.asked, counted.answered, counted.declined, counted.never_asked) == (
        60 - sum(row["status"] == "never asked" for row in rows),
        *(sum(row["status"] == status for row in rows) for status in ("answered", "declined", "never asked")),
    )
    assert all((row["label"] in {"no", "yes"}) == (row["status"] == "answered") for row in rows)
    assert "noisy_half_lead" in rows[0] if name == "NoisyCounts" else "noisy_half_lead" not in rows[0]
    html = (root / "public" / "report.html").read_text(encoding="utf-8")
    assert name in html


def test_soft_labels_are_written_as_scores(make_run):
    root = make_run(n=600, m=40, **section("SoftLabel", cutoff=20, bins=2), **{"budget.epsilon": 400.0})
    facts = run(root)
    rows = labels(root)
    scores = {row["score_yes"] for row in rows}
    assert facts.answers.asked - facts.answers.declined > 5
    assert scores <= {"", "0.25", "0.5", "0.75"}
    assert all((row["score_yes"] == "") == (row["status"] == "declined") for row in rows)
    assert all(row["label"] == ("yes" if float(row["score_yes"]) > 0.5 else "no") for row in rows if row["score_yes"])


def test_a_mechanism_that_closed_says_how_many_rows_it_was_never_asked(make_run, cli):
    """Twelve teachers are never far enough from a tie: ten are declined, then the stream is closed."""
    how = section("StableSparseVector", cutoff=10, online_answers=7)
    root = make_run(n=300, m=60, **how, **{"student.declined": "random", "budget.epsilon": 0.5})
    said = cli("run", root)[1].words
    assert "10 asked · 0 answered · 10 declined · 50 never asked" in said
    facts = json.loads((root / "public" / "facts.json").read_text(encoding="utf-8"))
    counted = {"asked": 10, "answered": 0, "declined": 10, "never_asked": 50}
    assert facts["answers"] == {
        "per_class": [0, 0],
        "interrupted": 0,
        **{k: counted[k] for k in counted if k != "answered"},
    }
    label, online = facts["spending"]["parts"]
    assert {key: label[key] for key in counted} == counted
    assert {online[key] for key in counted} == {0}
    words = "10 asked, 0 answered, 10 declined, 50 never asked"
    assert words in (root / "public" / "model_card.md").read_text(encoding="utf-8")
    assert words in (root / "public" / "report.html").read_text(encoding="utf-8")
    assert [row["status"] for row in labels(root)] == ["declined"] * 10 + ["never asked"] * 50
    status = cli.json("status", root)
    assert (status["answers"], status["answers_left"]) == (counted, 0)
    assert words in cli("status", root)[1]
    pl.read_csv(root / "public.csv").head(3).write_csv(root / "new.csv")
    assert cli("ask", root, root / "new.csv")[1].split() == ["declined"] * 3  # they were the first three asked
    pl.read_csv(root / "evaluation.csv").head(3).write_csv(root / "new.csv")
    refusal = cli.refused(3, "ask", root, root / "new.csv")
    assert "StableSparseVector is closed: all 10 of its stages are used up" in refusal.words


def test_answers_of_another_mechanism_with_the_same_event_are_not_taken_for_its_own(make_run):
    """Noisy counts and a noisy max cost the same; a stored half-lead is no class."""
    root = make_run(m=60, **section("NoisyCounts", sigma=30.0), **{"budget.composition": "zcdp"})
    run(root)
    edit(root, 'name = "NoisyCounts"', 'name = "GaussianNoisyMax"')
    facts = run(root)
    with Ledger(root / "ledger.db") as ledger:
        assert len(ledger.reservations()) == 2
        assert facts.guarantee.epsilon == ledger.spent.epsilon > 1.2 * price(ledger.reservations()[0].event, 1e-5)
    assert facts.answers.declined == 0


def test_another_threshold_is_another_release(finished_run):
    root = finished_run(m=60, **section("ConfidentNoisyMax"))
    edit(root, "threshold = 8.0", "threshold = 9.0")
    with pytest.raises(BudgetExhausted):
        run(root)


def test_scores_are_never_read_as_votes_nor_votes_as_scores(make_run):
    root = make_run(m=60, **section("NoisyCounts"))
    soft = 'name = "SoftLabel"\ncutoff = 5\nbins = 4'
    for old, new, shape, dtype in (
        ("", "", (60, 2), np.int64),
        ('name = "NoisyCounts"', soft, (60, 12), np.float64),
        (soft, 'name = "GaussianNoisyMax"', (60, 2), np.int64),
    ):
        edit(root, old, new)
        task = load_run(root).task
        stages, shards = FolderStages(root / "private"), shards_to_train(task)
        _, found = votes(task, task.queries, stages, lambda stage, done, total: None, shards=shards)
        assert (found.reveal().shape, found.reveal().dtype) == (shape, dtype)


@pytest.mark.parametrize("name", ["StableSparseVector", "SoftLabel", "InteractiveNoisyMax", "PrivatePrediction"])
def test_online_answers_come_from_the_same_mechanism(make_run, name):
    many = {"cutoff": 30} if "cutoff" in required_fields(KINDS[name]) else {}
    how = section(name, online_answers=6, **many)
    root = make_run(n=600, m=40, **how, **{"budget.epsilon": 500.0 if many else 60.0})
    run(root)
    pl.read_csv(root / "evaluation.csv").drop("ill").head(5).write_csv(root / "new.csv")
    batch = load_run(root)
    first = ask(batch, root / "new.csv")
    assert (len(first.answers), first.left) == (5, 1)
    assert set(first.answers) <= {"no", "yes", None}
    if name != "SoftLabel":
        assert any(answer is not None for answer in first.answers)
    again = ask(load_run(root), root / "new.csv")
    assert again == replace(first, new=0)


RNG = np.random.default_rng(4)
X, POOL = RNG.normal(size=(400, 3)), RNG.normal(size=(30, 3))
Y = (X[:, 0] > 0).astype(np.int64)


def classifier(mechanism, tmp_path, **more):
    given = {"classes": [0, 1], "epsilon": 50.0, "delta": 1e-5, "n_teachers": 8, "n_jobs": 1, "queries": "all"}
    return PrivateClassifier(
        mechanism=mechanism, ledger=tmp_path / "ledger.db", allow_hopeless=True, **{**given, **more}
    )


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("mechanism", "more", "said"),
    [
        (GaussianNoisyMax(sigma=40.0), {}, 'form="histogram"; 2 classes are counted with form="binary"'),
        (StableSparseVector(epsilon=1.0, delta=1e-6, cutoff=5, n_queries=30), {"online_answers": 1}, "n_queries >= 31"),
        (SoftLabel(epsilon=1.0, delta=1e-6, cutoff=5, n_queries=29, bins=3), {}, "n_queries >= 30"),
        (SoftLabel(epsilon=40.0, delta=1e-6, cutoff=10, n_queries=30, bins=3), {"classes": [0, 1, 2]}, "two classes"),
        (InteractiveNoisyMax(9.0, 40.0, 40.0, 9, 0.9, "binary"), {}, "the n_teachers=8 of this run, got 9"),
        (InteractiveNoisyMax(9.0, 40.0, 40.0, 8, 0.9, "binary"), {"student": RidgeClassifier()}, "no predict_proba"),
        (Exponential(epsilon=0.1, sensitivity=0.5), {}, "sensitivity >= 1"),
    ],
)
def test_an_instance_that_does_not_fit_is_refused_before_anything_is_charged(mechanism, more, said, tmp_path):
    with pytest.raises(InvalidParameter) as refusal:
        classifier(mechanism, tmp_path, **more).fit(X, Y, public=PublicPool(POOL))
    assert said in str(refusal.value)
    assert charges(tmp_path) == 0


KILLED = """
import os, signal, sys
from pathlib import Path
from quorate.ledger import Reservation
from quorate.folder.batch import load_run
from quorate.folder.methods import execute
root, when, at = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
real, drawn = Reservation.draw, []
def draw(self, purpose, count=1, **how):
    drawn.append(purpose)
    last = drawn.count("label") == at and purpose == "label"
    if last and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    block = real(self, purpose, count, **how)
    if last:
        os.kill(os.getpid(), signal.SIGKILL)
    return block
Reservation.draw = draw
execute(load_run(root), command="quorate run")
"""


def kill(root, when, at):
    said = root / "said.txt"
    assert Forked(KILLED, root, when, at, said=said).wait(60) == -signal.SIGKILL, said.read_text()


def test_a_killed_stream_goes_on_with_the_stages_that_are_left(make_run):
    root = make_run(n=1500, m=200, **section("StableSparseVector", cutoff=40), **{"budget.epsilon": 400.0})
    kill(root, "after", 2)
    with Ledger(root / "ledger.db") as ledger:
        spent, (reservation,) = ledger.spent, ledger.reservations()
        stored = {block.first: block.answers for block in reservation.blocks("label") if block.answers is not None}
        counted = 40 - reservation.remaining("sparse-vector stage")
    assert list(stored) == [0]
    assert counted >= 2
    facts = run(root)
    rows = labels(root)
    assert [row["status"] for row in rows].count("interrupted") == 64
    assert all(row["status"] == "interrupted" for row in rows[64:128])
    codes = [-1 if row["label"] == "" else ("no", "yes").index(row["label"]) for row in rows]
    assert codes[:64] == stored[0]
    declined = sum(row["status"] == "declined" for row in rows)
    assert declined < 60  # the stream did go on
    with Ledger(root / "ledger.db") as ledger:
        assert (ledger.spent, len(ledger.reservations())) == (spent, 1)
        left = ledger.reservations()[0].remaining("sparse-vector stage")
        assert 40 - left >= counted + 1
    assert facts.guarantee.epsilon == spent.epsilon


def test_a_killed_interactive_run_repeats_an_unbroken_one(make_run):
    size = {"n": 600, "m": 700, "run.unsafe_noise_seed": 7, "budget.epsilon": 60.0}
    mechanism = section("InteractiveNoisyMax", confidence=0.8)
    whole, broken = make_run("whole", **size, **mechanism), make_run("broken", **size, **mechanism)
    run(whole)
    for at in (2, 4):  # after one block of answers and after four: inside a round, and at its end
        kill(broken, "before", at)
    facts = run(broken)
    assert labels(broken) == labels(whole)
    assert facts.answers.interrupted == 0
    assert {row["status"] for row in labels(whole)} == {"answered", "declined"}
