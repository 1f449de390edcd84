"""Runs whose target is a number, by rounds and by votes: what is charged, what is told, what leaves."""

import json
import tomllib
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import mean_absolute_error, r2_score
from tests.folder.conftest import edit, spent_on
from tests.golden.folders import command

import quorate
from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed
from quorate.folder.methods import ask, audit, check, internal_facts, read_run
from quorate.folder.published import read_facts
from quorate.folder.settings import read_settings, settings_from
from quorate.folder.template import keys_lacking, range_of
from quorate.mechanisms import NoisyMean
from quorate.mechanisms.noisy_mean import NoisyMeans
from quorate.service.open_run import opened
from quorate.service.settings import ServiceSettings

pytestmark = pytest.mark.mostly_heavy

RNG = np.random.default_rng(0)
N = 1_500
FRAME = pl.DataFrame({"a": RNG.normal(size=N), "b": RNG.choice(["x", "y"], N), "c": RNG.normal(size=N)})
PRICE = (200 + 30 * FRAME["a"].to_numpy() + 20 * (FRAME["b"] == "x").to_numpy() + RNG.normal(size=N)).round(2)
TABLE = FRAME.with_columns(price=pl.Series(PRICE))
NUMBER = {"target": '"price"', "range": "[0, 4_000]"}


def written(root, *, evaluation=None, more="", **data):
    """Write a folder; `data`: keys in place of those of a number, none where None."""
    root.mkdir()
    TABLE[:1_000].write_csv(root / "private.csv")
    TABLE[1_000:1_200].drop("price").write_csv(root / "public.csv")
    (TABLE[1_200:] if evaluation is None else evaluation).write_csv(root / "evaluation.csv")
    keys = {**NUMBER, "private": '"private.csv"', "public": '"public.csv"', "n_records": 1_000, **data}
    keys |= {"evaluation": '"evaluation.csv"'}
    lines = [f"{key} = {value}" for key, value in keys.items() if value is not None]
    text = "\n".join(["[data]", *lines, "[budget]", "epsilon = 4.0", "delta = 1e-6", more])
    (root / "quorate.toml").write_text(text + "\n", encoding="utf-8")
    return root


def typed(*words, code=0):
    """Type a command that ends with this code; return all that it said."""
    found, said = command(*words)
    assert found == code, said
    return said


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    root = written(tmp_path_factory.mktemp("number") / "run", more='[method]\nfeature_map = "linear"')
    said = typed("run", root)
    assert "R²" in said
    return root


@pytest.mark.quick
def test_the_report_tells_the_range_and_how_near_predictions_are(run):
    facts, model = read_facts(run), quorate.load(run)
    held = TABLE[1_200:]
    predicted = model.predict(held.drop("price"))
    score = facts.utility.number
    assert score.r_squared == pytest.approx(r2_score(PRICE[1_200:], predicted), abs=1e-9)
    assert score.r_squared > 0.8
    assert score.mean_absolute_error == pytest.approx(mean_absolute_error(PRICE[1_200:], predicted))
    assert model.score(held.drop("price"), PRICE[1_200:]) == pytest.approx(score.r_squared)
    assert facts.setup.target_range == (0, 4_000)
    assert facts.setup.classes == ()
    parts = np.array_split(np.argsort(predicted), len(score.residuals))
    for told, part in zip(score.residuals, parts, strict=True):
        assert told.median == pytest.approx(np.median(PRICE[1_200:][part] - predicted[part]), abs=1e-9)
    for name in ("report.html", "model_card.md"):
        text = (run / "public" / name).read_text(encoding="utf-8")
        assert "a number from 0 to 4000" in text
        assert f"{score.r_squared:.3f}" in text
        assert "lasses" not in text.partition("This report as JSON")[0]
    assert "Residuals" in (run / "public" / "report.html").read_text(encoding="utf-8")


@pytest.mark.quick
def test_predictions_are_cut_off_and_written_for_a_table(run, tmp_path):
    far = pl.DataFrame({"a": [1e9, -1e9], "b": ["x", "y"], "c": [0.0, 0.0]})
    model = quorate.load(run)
    assert ((model.predict(far) >= 0) & (model.predict(far) <= 4_000)).all()
    with pytest.raises(PreconditionFailed, match="predicts a number"):
        model.predict_proba(far)
    far.write_csv(tmp_path / "far.csv")
    out = tmp_path / "out.parquet"
    said = typed("predict", run, tmp_path / "far.csv", "--out", out, "--json")
    assert json.loads(said)["target_range"] == [0, 4_000]
    assert pl.read_parquet(out)["prediction"].to_list() == model.predict(far).tolist()


def test_a_plan_has_no_rehearsal_and_status_says_how_good_it_is(run):
    said = typed("plan", run, "--rehearse", "rules", code=2)
    assert "leave them out" in said
    assert "model      R²" in typed("status", run)
    looked = typed("check", run, "--look")
    assert "a number from 0 to 4000" in looked
    assert "1,000" in looked
    assert not audit(read_run(run, begin=False), runs=2_000, seed=1).violated


def test_a_public_target_that_is_no_number_is_refused(tmp_path):
    odd = TABLE[1_200:].with_columns(price=pl.Series(["much", *map(str, PRICE[1_201:])]))
    with pytest.raises(DataRefused, match="row 0 holds no finite number"):
        read_run(written(tmp_path / "run", evaluation=odd), begin=False)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("sold", [["no", "yes"], ["no", "12"], ["1e9", "-1e9"]])
def test_a_public_table_without_a_number_in_the_target_is_told_before_a_charge(tmp_path, sold):
    root = written(tmp_path / "run")
    public = TABLE[1_000:1_200].with_columns(price=pl.Series(sold * 100))
    public.write_csv(root / "public.csv")
    run = read_run(root, begin=False)
    said = [finding.words for finding in run.cautions if finding.code == "target-without-numbers"]
    assert len(said) == ("12" not in sold)
    wrong = "public.csv have no numbers in the target column 'price', such as 'no'"
    assert "12" in sold or (wrong if "no" in sold else "public.csv has a 'price' within range = [") in said[0]
    assert [note.words for note in run.notes() if "public.csv has the target column 'price'" in note.words]


@pytest.mark.quick
@pytest.mark.parametrize(
    "typed", ["5000,0", "0", "a,b", "0-5000", "[0, 5000]", "0,1e400", "-1e308,1e308", "1e12,1000000000001"]
)
def test_a_wrong_range_is_told_with_what_was_typed(typed):
    with pytest.raises(InvalidParameter) as refusal:
        range_of(typed)
    close = "the ends of range are too close together for their size: got "
    wrong = "range must be the least and the largest value with a comma between, such as 0,5000; got "
    assert str(refusal.value) == (close if typed.startswith("1e12") else wrong) + typed


@pytest.mark.quick
def test_a_range_without_a_target_asks_for_one():
    assert keys_lacking({"public": "b.csv", "range": (0, 1), "epsilon": 1, "delta": 1e-6}) == ["[data] target"]


VOTES = '[method]\nby = "votes"'
CLOSE = {"range": "[100, 300]"}


@pytest.fixture(scope="module")
def voted(tmp_path_factory):
    root = written(tmp_path_factory.mktemp("number-votes") / "run", more=VOTES, **CLOSE)
    typed("run", root)
    return root


def test_it_is_charged_for_all_noisy_means_and_told(voted):
    facts, model = read_facts(voted), quorate.load(voted)
    counts, part = facts.spending.parts
    assert (counts.mechanism, counts.answered) == ("TargetCounts", 2)
    assert (part.mechanism, part.answered, facts.setup.n_queries) == ("NoisyMeans", 200, 200)
    assert 3.99 < facts.guarantee.epsilon <= 4  # the price of both by another road: tests/voting/test_number_votes.py
    score, held = facts.utility.number, TABLE[1_200:].drop("price")
    assert score.r_squared == pytest.approx(model.score(held, PRICE[1_200:].clip(100, 300)))
    assert score.r_squared > 0.4
    assert len(score.residuals) > 0
    for words in ("votes on each sum: NoisyMeans", "units on each count of targets: TargetCounts"):
        assert words in model.summary()
    assert "Residuals" in (voted / "public" / "report.html").read_text(encoding="utf-8")
    with pytest.raises(PreconditionFailed, match="keep no answers back"):
        model.ask(held)
    said = typed("status", voted)
    assert "✓ noisy means" in said
    assert "model      R²" in said


def test_the_same_run_again_trains_nobody_and_is_charged_once(voted, monkeypatch):
    before = read_facts(voted)
    monkeypatch.setattr("quorate.voting.number_flow.train_chunk", lambda *_, **__: pytest.fail("trained"))
    typed("run", voted)
    assert read_facts(voted).spending == before.spending
    assert read_facts(voted).utility == before.utility


@pytest.mark.parametrize(("made", "ends"), [("run", (0, 4_000)), ("voted", (100, 300))])
def test_it_leaves_as_a_package_and_as_onnx(made, ends, tmp_path, request):
    import onnxruntime

    root, box, held = request.getfixturevalue(made), tmp_path / "box", TABLE[1_200:1_250].drop("price")
    typed("export", root, "--to", box, "--format", "tre", "--model", "onnx")
    typed("check-export", box)
    assert "No count of private units" in (box / "COVER-SHEET.md").read_text(encoding="utf-8")
    assert "counts of classes" not in (box / "COVER-SHEET.md").read_text(encoding="utf-8")
    session = onnxruntime.InferenceSession((box / "student.onnx").read_bytes(), providers=["CPUExecutionProvider"])
    fed = {name: held[name].to_numpy().reshape(-1, 1) for name in ("a", "c")}
    numbers = session.run(None, {**fed, "b": held["b"].to_numpy().astype(object).reshape(-1, 1)})[0]
    predicted = quorate.load(root).predict(held)
    assert np.allclose(np.clip(numbers.ravel(), *ends), predicted, atol=0.05)
    held.write_csv(tmp_path / "held.csv")
    typed("predict", root, tmp_path / "held.csv", "--out", tmp_path / "out.parquet")
    assert pl.read_parquet(tmp_path / "out.parquet")["prediction"].to_list() == predicted.tolist()


def test_its_audit_finds_nothing_and_catches_half_of_the_noise_and_numbers_that_are_not_cut_off(voted, monkeypatch):
    def audited():
        return audit(read_run(voted, begin=False), runs=4_000, seed=1, confidence=1 - 1e-6)

    def quieter(self, counts, noise):
        return noisy(NoisyMean(self.sigma / 4, self.grid), counts, noise)

    found, noisy = audited(), NoisyMean.release_many
    assert not found.violated
    assert len(found.attacks) == 3
    assert found.attacks[1].proved > 0.5  # of 4: it would see a twin
    for kind, name, twin in (
        (NoisyMean, "release_many", quieter),
        (NoisyMeans, "steps", lambda self, places: 3 * (places - self.grid)),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(kind, name, twin)
            assert audited().violated, name


def test_no_private_cell_changes_what_is_said_or_asked(tmp_path):
    said = []
    for place, price in enumerate((PRICE[:1_000], PRICE[:1_000][::-1], np.full(1_000, "much"))):
        root = written(tmp_path / str(place), more=VOTES, **CLOSE)
        FRAME[:1_000].with_columns(price=pl.Series(price)).write_csv(root / "private.csv")
        found = check(read_run(root, begin=False))
        text = " ".join(found.text().split()).replace(str(root), "RUN")
        said.append((text, json.dumps(found.found).replace(str(root), "RUN")))
        typed("run", root)
        facts = read_facts(root)
        *public, where = facts.setup.recipe  # where targets lie is released: counts of them, with noise
        assert "predictions of teachers were cut off at" in where
        said[-1] += (replace(facts.setup, recipe=tuple(public)), facts.answers, facts.spending, facts.guarantee)
    assert said[0] == said[1] == said[2]


@pytest.mark.parametrize("method", [VOTES, '[method]\nfeature_map = "linear"'], ids=["votes", "direct"])
def test_intervals_hold_the_number_as_often_as_promised(tmp_path, method):
    root = written(tmp_path / "run", more=method, evaluation=TABLE[1_400:], calibration='"calibration.csv"', **CLOSE)
    beyond = TABLE[1_200:1_300].with_columns(price=pl.Series(np.where(np.arange(100) == 7, 900.0, PRICE[1_200:1_300])))
    beyond.write_csv(root / "calibration.csv")
    promise = "the truth is in 90 % of intervals, for rows drawn as the 100"
    assert promise in " ".join(check(read_run(root, begin=False)).text().split())
    said = typed("run", root)
    assert "intervals of 90 % end" in " ".join(said.split())
    assert "intervals of 90 % end" in " ".join((root / "public" / "model_card.md").read_text().split()).lower()
    model, held = quorate.load(root), TABLE[1_300:].drop("price")
    low, high = model.predict_interval(held).T  # how wide, and beyond the range: tests/direct/test_number_target.py
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


@pytest.mark.parametrize("method", [VOTES, '[method]\nfeature_map = "linear"'], ids=["votes", "direct"])
def test_a_share_of_the_evaluation_makes_intervals(tmp_path, method):
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


@pytest.mark.parametrize("method", [VOTES, '[method]\nfeature_map = "linear"'], ids=["votes", "direct"])
def test_units_held_out_make_intervals_in_the_charge_of_the_run(tmp_path, method):
    root = written(tmp_path / "run", more=method, calibration_share="0.5", **CLOSE)
    said = " ".join(check(read_run(root, begin=False)).text().split())
    assert "50.0 % of the records for intervals, within the same charge: the truth is in 90 % of intervals" in said
    typed("run", root)
    facts = read_facts(root)
    assert facts.guarantee.epsilon <= 4
    private = facts.fitted.private_intervals if facts.fitted is not None else None
    assert "which nothing learned from" in " ".join((root / "public" / "model_card.md").read_text().split())
    low, high = quorate.load(root).predict_interval(TABLE[1_200:].drop("price")).T
    assert np.allclose(high - low, 2 * private.limit)
    assert np.mean((low <= PRICE[1_200:]) & (PRICE[1_200:] <= high)) > 0.9 - private.slack - 0.05
    found = audit(read_run(root, begin=False), runs=4_000, seed=1, confidence=1 - 1e-6)
    assert not found.violated
    assert found.attacks[-1].name.startswith("limit of intervals: one unit is moved")
    assert spent_on(root)[1] == 1


def test_intervals_without_public_targets_are_refused_in_one_line(voted, tmp_path):
    FRAME[:5].write_csv(tmp_path / "rows.csv")
    said = typed("predict", voted, tmp_path / "rows.csv", "--out", tmp_path / "out.csv", "--coverage", "0.9", code=4)
    assert 'intervals need public rows with targets. Write calibration = "FILE" under [data]' in said
    assert not (tmp_path / "out.csv").exists()
    with pytest.raises(PreconditionFailed, match="intervals need public rows"):
        quorate.load(voted).predict_interval(FRAME)
    with pytest.raises(PreconditionFailed, match=r"predict_set is for classes, .* call predict_interval"):
        quorate.load(voted).predict_set(FRAME)
    with pytest.raises(PreconditionFailed, match="classes alone are served"), opened(voted, ServiceSettings()):
        pass


def test_a_plan_says_what_either_method_would_do_and_opens_no_private_file(tmp_path):
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


def _by(root, by):
    document = tomllib.loads((root / "quorate.toml").read_text())
    return settings_from({**document, "method": {"by": by}}, folder=root)


def test_models_of_settings_teach_and_the_method_follows_from_them(tmp_path):
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


def test_what_it_has_not_is_refused_in_one_line(voted):
    read = read_run(voted, begin=False)
    for act in (lambda: ask(read, FRAME), lambda: internal_facts(read), read.expected):
        with pytest.raises((InvalidParameter, PreconditionFailed)) as refused:
            act()
        assert "\n" not in str(refused.value)


@pytest.mark.quick
def test_what_a_folder_asks_for_is_what_an_estimator_does(tmp_path):
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
