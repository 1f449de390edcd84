"""Votes for a number in a folder: what is charged, what goes on after a kill, what leaves, and what says nothing."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm
from tests.folder.conftest import edit
from tests.folder.test_number_target_run import FRAME, PRICE, TABLE, facts_of, typed, written
from tests.folder.test_resume import entries_so_far, kill_when, said_by, start

import quorate
from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.folder.methods import ask, audit, check, internal_facts, read_run
from quorate.folder.settings import read_settings, settings_from
from quorate.ledger import Ledger
from quorate.mechanisms import NoisyMean
from quorate.mechanisms.noisy_mean import NoisyMeans
from quorate.service.open_run import opened
from quorate.service.settings import ServiceSettings

VOTES = '[method]\nby = "votes"'
CLOSE: dict[str, Any] = {"range": "[100, 300]"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = written(tmp_path_factory.mktemp("number-votes") / "run", more=VOTES, **CLOSE)
    typed("run", root)
    return root


def epsilon_of(mu: float, delta: float) -> float:
    """The least ε of Gaussian noise, by bisection of its exact δ."""
    low, high = 0.0, 100.0
    for _ in range(100):
        middle = (low + high) / 2
        above = norm.cdf(mu / 2 - middle / mu) - np.exp(middle) * norm.cdf(-mu / 2 - middle / mu) > delta
        low, high = (middle, high) if above else (low, middle)
    return high


@pytest.mark.heavy
def test_it_is_charged_for_all_noisy_means_and_told(run: Path) -> None:
    facts, model = facts_of(run), quorate.load(run)
    counts, part = facts.spending.parts
    assert (counts.mechanism, counts.answered) == ("TargetCounts", 2)
    assert (part.mechanism, part.answered, facts.setup.n_queries) == ("NoisyMeans", 200, 200)
    assert part.sigma is not None
    assert counts.sigma is not None
    length = (
        200 * (2 * 0.5 / part.sigma) ** 2 + 2 * 2 / counts.sigma**2
    )  # half of a vector, twice; two cells of each count
    price = epsilon_of(sqrt(length), 1e-6)
    assert price <= facts.guarantee.epsilon <= price + 1e-3
    assert facts.guarantee.epsilon <= 4
    score, held = facts.utility.number, TABLE[1_200:].drop("price")
    assert score is not None
    assert score.r_squared == pytest.approx(model.score(held, PRICE[1_200:].clip(100, 300)))
    assert score.r_squared > 0.4
    assert len(score.residuals) > 0
    for words in ("votes on each sum: NoisyMeans", "units on each count of targets: TargetCounts"):
        assert words in model.summary()
    assert "Residuals" in (run / "public" / "report.html").read_text(encoding="utf-8")
    with pytest.raises(PreconditionFailed, match="keep no answers back"):
        model.ask(held)
    said = typed("status", run)
    assert "✓ noisy means" in said
    assert "model      R²" in said


@pytest.mark.heavy
def test_the_same_run_again_trains_nobody_and_is_charged_once(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = facts_of(run)
    monkeypatch.setattr("quorate.voting.number_flow.train_chunk", lambda *_, **__: pytest.fail("trained"))
    typed("run", run)
    assert facts_of(run).spending == before.spending
    assert facts_of(run).utility == before.utility


@pytest.mark.heavy
def test_it_leaves_as_a_package_and_as_onnx(run: Path, tmp_path: Path) -> None:
    import onnxruntime

    box, held = tmp_path / "box", TABLE[1_200:1_250].drop("price")
    typed("export", run, "--to", box, "--format", "tre", "--model", "onnx")
    typed("check-export", box)
    assert "No count of private units" in (box / "COVER-SHEET.md").read_text(encoding="utf-8")
    assert "counts of classes" not in (box / "COVER-SHEET.md").read_text(encoding="utf-8")
    session = onnxruntime.InferenceSession((box / "student.onnx").read_bytes(), providers=["CPUExecutionProvider"])
    fed = {name: held[name].to_numpy().reshape(-1, 1) for name in ("a", "c")}
    numbers = session.run(None, {**fed, "b": held["b"].to_numpy().astype(object).reshape(-1, 1)})[0]
    predicted = quorate.load(run).predict(held)
    assert np.allclose(np.clip(numbers.ravel(), 100, 300), predicted, atol=0.05)
    held.write_csv(tmp_path / "held.csv")
    typed("predict", run, tmp_path / "held.csv", "--out", tmp_path / "out.parquet")
    assert pl.read_parquet(tmp_path / "out.parquet")["prediction"].to_list() == predicted.tolist()


class TestTheAudit:
    """It attacks the mechanism of the run by what was charged."""

    @pytest.mark.heavy
    def test_it_finds_nothing(self, run: Path) -> None:
        found = audit(read_run(run, begin=False), runs=4_000, seed=1, confidence=1 - 1e-6)
        assert not found.violated
        assert len(found.attacks) == 3
        assert found.attacks[1].proved > 0.5  # of 4: it would see a twin

    @pytest.mark.heavy
    def test_it_catches_half_of_the_noise(self, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        noisy = NoisyMean.release_many

        def quieter(self: NoisyMean, counts: Any, noise: Any) -> Any:
            return noisy(NoisyMean(self.sigma / 4, self.grid), counts, noise)

        monkeypatch.setattr(NoisyMean, "release_many", quieter)
        assert audit(read_run(run, begin=False), runs=4_000, seed=1, confidence=1 - 1e-6).violated

    @pytest.mark.heavy
    def test_it_catches_numbers_that_are_not_cut_off(self, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(NoisyMeans, "steps", lambda self, places: 3 * (places - self.grid))
        assert audit(read_run(run, begin=False), runs=4_000, seed=1, confidence=1 - 1e-6).violated


@pytest.mark.heavy
def test_a_run_that_is_killed_goes_on_and_is_charged_once(tmp_path: Path) -> None:
    root = written(tmp_path / "run", more=f"{VOTES}\n[run]\nn_jobs = 1\nepsilon = 2.0", **CLOSE)
    kill_when(root, lambda: entries_so_far(root) >= 4, 0.0)  # after the charge, amid the counts
    with Ledger(root / "ledger.db") as ledger:
        [charged] = ledger.reservations()
        spent, stored = ledger.spent, [block for block in charged.blocks("label") if block.answers is not None]
    assert len(stored) < 200
    process = start(root)
    assert process.wait() == 0, said_by(root)
    with Ledger(root / "ledger.db") as ledger:
        ledger.verify(prices=True)
        [charged] = ledger.reservations()
        blocks = charged.blocks("label")
        assert ledger.spent == spent
        assert [block.answers for block in blocks[: len(stored)]] == [block.answers for block in stored]
        assert sum(block.count for block in blocks) == 200
    answers = facts_of(root).answers
    assert answers.released + answers.interrupted == 200


@pytest.mark.heavy
def test_no_private_cell_changes_what_is_said_or_asked(tmp_path: Path) -> None:
    said = []
    for place, price in enumerate((PRICE[:1_000], PRICE[:1_000][::-1], np.full(1_000, "much"))):
        root = written(tmp_path / str(place), more=VOTES, **CLOSE)
        FRAME[:1_000].with_columns(price=pl.Series(price)).write_csv(root / "private.csv")
        found = check(read_run(root, begin=False))
        said.append((found.text(), json.dumps(found.found)))
        typed("run", root)
        facts = facts_of(root)
        *public, where = facts.setup.recipe  # where targets lie is released: counts of them, with noise
        assert "predictions of teachers were cut off at" in where
        said[-1] += (replace(facts.setup, recipe=tuple(public)), facts.answers, facts.spending, facts.guarantee)
    assert said[0] == said[1] == said[2]


@pytest.mark.heavy
@pytest.mark.parametrize("method", [VOTES, '[method]\nfeature_map = "linear"'], ids=["votes", "direct"])
def test_intervals_hold_the_number_as_often_as_promised(tmp_path: Path, method: str) -> None:
    root = written(tmp_path / "run", more=method, evaluation=TABLE[1_400:], calibration='"calibration.csv"', **CLOSE)
    beyond = TABLE[1_200:1_300].with_columns(price=pl.Series(np.where(np.arange(100) == 7, 900.0, PRICE[1_200:1_300])))
    beyond.write_csv(root / "calibration.csv")
    promise = "the truth is in 90 % of intervals, for rows drawn as the 100"
    assert promise in " ".join(check(read_run(root, begin=False)).text().split())
    said = typed("run", root)
    assert "intervals of 90 % end" in " ".join(said.split())
    assert "intervals of 90 % end" in " ".join((root / "public" / "model_card.md").read_text().split()).lower()
    model, held = quorate.load(root), TABLE[1_300:].drop("price")
    off = np.sort(np.abs(beyond["price"].to_numpy() - model.predict(beyond.drop("price"))))
    low, high = model.predict_interval(held).T
    assert np.allclose(high - model.predict(held), off[90])  # rank ⌈.9 · 101⌉, of a target that is not cut off, too
    assert np.mean((low <= PRICE[1_300:]) & (PRICE[1_300:] <= high)) > 0.78
    assert model.coverage_promise().n_rows == 100
    held.write_csv(tmp_path / "held.csv")
    out, more = tmp_path / "out.csv", ("--coverage", "0.9", "--json")
    said = typed("predict", root, tmp_path / "held.csv", "--out", out, *more)
    assert json.loads(said)["intervals"]["n_rows"] == 100
    table = pl.read_csv(out)
    assert table.columns == ["prediction", "lower", "upper"]
    assert np.allclose(table["lower"], low)
    beyond_reach = ("--out", tmp_path / "more.csv", "--coverage", "0.999")
    assert typed("predict", root, tmp_path / "held.csv", *beyond_reach, code=2).count("QUO-") == 1
    (root / "calibration.csv").write_text("\n".join((root / "calibration.csv").read_text().splitlines()[:9]))
    with pytest.raises(InvalidParameter, match=r"\[data\] calibration got 8 rows"):
        read_run(root, begin=False)


@pytest.mark.heavy
@pytest.mark.parametrize("method", [VOTES, '[method]\nfeature_map = "linear"'], ids=["votes", "direct"])
def test_a_share_of_the_evaluation_makes_intervals(tmp_path: Path, method: str) -> None:
    beyond = TABLE[1_200:].with_columns(price=pl.Series(np.full(300, 900.0)))  # the range ends at 500
    root = written(tmp_path / "run", more=method, evaluation=beyond, calibration_of_evaluation="0.4", **CLOSE)
    assert "records" in typed("plan", root)
    run = read_run(root, begin=False)
    assert set(run.calibration.truth) == {900.0}  # as they are, so that intervals are wide enough
    assert len(run.evaluation.truth) == 180
    assert max(run.evaluation.truth) <= 500.0
    assert "intervals, for rows drawn as the 120" in " ".join(check(run).text().split())
    typed("run", root)
    assert quorate.load(root).coverage_promise().n_rows == 120


@pytest.mark.heavy
@pytest.mark.parametrize("method", [VOTES, '[method]\nfeature_map = "linear"'], ids=["votes", "direct"])
def test_units_held_out_make_intervals_in_the_charge_of_the_run(tmp_path: Path, method: str) -> None:
    root = written(tmp_path / "run", more=method, calibration_share="0.5", **CLOSE)
    said = " ".join(check(read_run(root, begin=False)).text().split())
    assert "50.0 % of the records for intervals, within the same charge: the truth is in 90 % of intervals" in said
    typed("run", root)
    facts = facts_of(root)
    assert facts.guarantee.epsilon <= 4
    private = facts.fitted.private_intervals if facts.fitted is not None else None
    assert private is not None
    assert "which nothing learned from" in " ".join((root / "public" / "model_card.md").read_text().split())
    held = TABLE[1_200:].drop("price")
    low, high = quorate.load(root).predict_interval(held).T
    assert np.allclose(high - low, 2 * private.limit)
    assert np.mean((low <= PRICE[1_200:]) & (PRICE[1_200:] <= high)) > 0.9 - private.slack - 0.05
    held.write_csv(tmp_path / "held.csv")
    said = typed("predict", root, tmp_path / "held.csv", "--out", tmp_path / "out.csv", "--coverage", "0.9")
    assert "intervals: the truth is in 90 % of intervals" in " ".join(said.split())
    found = audit(read_run(root, begin=False), runs=4_000, seed=1, confidence=1 - 1e-6)
    assert not found.violated
    assert found.attacks[-1].name.startswith("limit of intervals: one unit is moved")
    with Ledger(root / "ledger.db") as ledger:
        ledger.verify(prices=True)
        assert len(ledger.reservations()) == 1


@pytest.mark.heavy
def test_intervals_without_public_targets_are_refused_in_one_line(run: Path, tmp_path: Path) -> None:
    FRAME[:5].write_csv(tmp_path / "rows.csv")
    said = typed("predict", run, tmp_path / "rows.csv", "--out", tmp_path / "out.csv", "--coverage", "0.9", code=4)
    assert "intervals need public rows with targets; first: name a table of them as [data] calibration" in said
    assert not (tmp_path / "out.csv").exists()
    with pytest.raises(PreconditionFailed, match="intervals need public rows"):
        quorate.load(run).predict_interval(FRAME)
    with pytest.raises(PreconditionFailed, match=r"predict_set is for classes, .* call predict_interval"):
        quorate.load(run).predict_set(FRAME)
    with pytest.raises(PreconditionFailed, match="classes alone are served"), opened(run, ServiceSettings()):
        pass


@pytest.mark.heavy
def test_a_plan_says_what_either_method_would_do_and_opens_no_private_file(tmp_path: Path) -> None:
    root = written(tmp_path / "run", **CLOSE)
    checked = {by: check(read_run(root, begin=False, settings=_by(root, by))).found for by in ("direct", "votes")}
    (root / "private.csv").unlink()
    said = typed("plan", root, "--json")
    planned = json.loads(said)
    assert planned["chosen"] == "direct"
    for by, found in checked.items():
        for name in ("price", "n_units", "n_coordinates", "noise"):
            assert planned["methods"][by][name] == found[name], (by, name)
    said = typed("plan", root)
    assert "the private file was not opened" in said
    assert "how near predictions come" in said
    assert all(len(line) <= 80 for line in said.splitlines() if str(root) not in line)
    assert "leave them out" in typed("plan", root, "--curve", "50:0.8", code=2)


def _by(root: Path, by: str) -> Any:
    document = tomllib.loads((root / "quorate.toml").read_text())
    return settings_from({**document, "method": {"by": by}}, folder=root)


@pytest.mark.heavy
def test_models_of_settings_teach_and_the_method_follows_from_them(tmp_path: Path) -> None:
    root = written(tmp_path / "run", more='[teachers]\nmodel = "own:lines"\ncount = 12\n[mechanism]\nqueries = 50')
    (root / "own.py").write_text("from sklearn.linear_model import Ridge\n\ndef lines():\n    return Ridge()\n")
    settings = read_settings(root / "quorate.toml")
    assert settings.chosen == "votes"
    assert "[teachers] model" in settings.chosen.why
    task = read_run(root, begin=False).task
    assert (task.teacher_name, task.n_teachers, task.n_queries) == ("Ridge", 12, 50)
    for model, name in (("forest", "RandomForestRegressor"), ("tree", "DecisionTreeRegressor")):
        edit(root, "own:lines", model)
        assert read_run(root, begin=False).task.teacher_name == name
        edit(root, f'"{model}"', '"own:lines"')
    edit(root, "own:lines", "logistic")
    with pytest.raises(InvalidParameter, match="votes for classes"):
        read_run(root, begin=False)


@pytest.mark.heavy
def test_what_it_has_not_is_refused_in_one_line(run: Path) -> None:
    read = read_run(run, begin=False)
    for act in (lambda: ask(read, FRAME), lambda: internal_facts(read), read.expected):
        with pytest.raises((InvalidParameter, PreconditionFailed)) as refused:
            act()
        assert "\n" not in str(refused.value)


def test_what_a_folder_asks_for_is_what_an_estimator_does(tmp_path: Path) -> None:
    """One default test: the plan of both, from the same public facts, and no file of the run's is made by a check."""
    root = written(tmp_path / "run", more=VOTES, **CLOSE)
    read = read_run(root, begin=False)
    model = quorate.PrivateRegressor(
        target_range=(100, 300), method="votes", epsilon=4.0, delta=1e-6, n_records=1_000, n_jobs=1
    )
    public = quorate.PublicPool(FRAME[1_000:1_200])
    asked = quorate.check(model, FRAME[:1_000], PRICE[:1_000], public=public).found
    found = check(read).found
    for name in ("n_teachers", "n_queries", "n_coordinates", "sigma", "price", "neighbours", "target_range"):
        assert found[name] == asked[name], name
    assert not (root / "private").exists()
