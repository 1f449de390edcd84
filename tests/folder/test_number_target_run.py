"""A run whose target is a number, from its settings to what leaves."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import mean_absolute_error, r2_score

import quorate
from quorate.cli import main
from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed
from quorate.folder.methods import audit, read_run
from quorate.folder.settings import read_settings
from quorate.folder.template import keys_lacking, range_of
from quorate.report import Facts

RNG = np.random.default_rng(0)
N = 1_500
FRAME = pl.DataFrame({"a": RNG.normal(size=N), "b": RNG.choice(["x", "y"], N), "c": RNG.normal(size=N)})
PRICE = (200 + 30 * FRAME["a"].to_numpy() + 20 * (FRAME["b"] == "x").to_numpy() + RNG.normal(size=N)).round(2)
TABLE = FRAME.with_columns(price=pl.Series(PRICE))
NUMBER: dict[str, Any] = {"target": '"price"', "range": "[0, 4_000]"}


def written(root: Path, *, evaluation: pl.DataFrame | None = None, more: str = "", **data: Any) -> Path:
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


def typed(*words: object, code: int = 0) -> str:
    """Type a command that ends with this code; return all that it said."""
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said), pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    assert (stop.value.code or 0) == code, said.getvalue()
    return said.getvalue()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = written(tmp_path_factory.mktemp("number") / "run", more='[method]\nfeature_map = "linear"')
    said = typed("run", root)
    assert "R²" in said
    return root


def facts_of(run: Path) -> Facts:
    return Facts.from_json((run / "public" / "facts.json").read_text(encoding="utf-8"))


def test_the_report_tells_the_range_and_how_near_predictions_are(run: Path) -> None:
    facts, model = facts_of(run), quorate.load(run)
    held = TABLE[1_200:]
    predicted = model.predict(held.drop("price"))
    score = facts.utility.number
    assert score is not None
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


def test_predictions_are_cut_off_and_written_for_a_table(run: Path, tmp_path: Path) -> None:
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


@pytest.mark.heavy
def test_a_plan_has_no_rehearsal_and_status_says_how_good_it_is(run: Path) -> None:
    said = typed("plan", run, "--rehearse", "rules", code=2)
    assert "leave them out" in said
    assert "model      R²" in typed("status", run)
    looked = typed("check", run, "--look")
    assert "a number from 0 to 4000" in looked
    assert "1,000" in looked


@pytest.mark.heavy
def test_it_leaves_as_a_package_and_as_onnx_and_is_audited(run: Path, tmp_path: Path) -> None:
    import onnxruntime

    typed("export", run, "--to", tmp_path / "box", "--format", "tre", "--model", "onnx")
    typed("check-export", tmp_path / "box")
    file = next((tmp_path / "box").rglob("student.onnx"))
    session = onnxruntime.InferenceSession(file.read_bytes(), providers=["CPUExecutionProvider"])
    held = TABLE[1_200:1_250].drop("price")
    fed = {name: held[name].to_numpy().reshape(-1, 1) for name in ("a", "c")}
    numbers = session.run(None, {**fed, "b": held["b"].to_numpy().astype(object).reshape(-1, 1)})[0]
    assert np.allclose(numbers.ravel(), quorate.load(run).predict(held), atol=0.05)
    assert not audit(read_run(run, begin=False), runs=2_000, seed=1).violated


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"range": None}, "[data] range is required beside [data] target"),
        ({"target": None}, "[data] target is required beside [data] range"),
        ({"range": "[5, 5]"}, "[data] range must be two finite numbers"),
        ({"classes": '["no", "yes"]'}, "[data] classes is for classes"),
        ({"label": '"price"'}, "[data] label is for classes"),
        ({"more": '[method]\nby = "votes"\nrounds = 9'}, "[method] rounds is for the direct method"),
        ({"more": '[method]\nby = "direct"\n[teachers]\ncount = 50'}, "[teachers] count is for votes of teachers"),
        ({"more": "[mechanism]\nonline_answers = 50"}, "[mechanism] online_answers is for votes for classes"),
        ({"more": '[method]\nby = "votes"\n[run]\nmemory = 1'}, "[run] memory is for votes for classes"),
        ({"public": None, "more": '[method]\nby = "votes"\n[schema]\na = [0, 1]'}, "[data] public is required"),
        ({"more": "[student]\ndecision_threshold = 0.2"}, "decision_threshold"),
    ],
)
def test_what_is_no_number_is_refused_in_one_line(tmp_path: Path, keys: dict[str, Any], said: str) -> None:
    root = written(tmp_path / "run", **keys)
    with pytest.raises(InvalidParameter) as refusal:
        read_settings(root / "quorate.toml")
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.heavy
def test_a_public_target_that_is_no_number_is_refused(tmp_path: Path) -> None:
    odd = TABLE[1_200:].with_columns(price=pl.Series(["much", *map(str, PRICE[1_201:])]))
    with pytest.raises(DataRefused, match="row 0 holds no finite number"):
        read_run(written(tmp_path / "run", evaluation=odd), begin=False)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("sold", [["no", "yes"], ["no", "12"], ["1e9", "-1e9"]])
def test_a_public_table_without_a_number_in_the_target_is_told_before_a_charge(tmp_path: Path, sold: list[str]) -> None:
    root = written(tmp_path / "run")
    public = TABLE[1_000:1_200].with_columns(price=pl.Series(sold * 100))
    public.write_csv(root / "public.csv")
    run = read_run(root, begin=False)
    said = [finding.words for finding in run.cautions if finding.code == "target-without-numbers"]
    assert len(said) == ("12" not in sold)
    wrong = "public.csv have no numbers in the target column 'price', such as 'no'"
    assert "12" in sold or (wrong if "no" in sold else "public.csv has a 'price' within range = [") in said[0]
    assert [note.words for note in run.notes() if "public.csv has the target column 'price'" in note.words]


@pytest.mark.parametrize(
    "typed", ["5000,0", "0", "a,b", "0-5000", "[0, 5000]", "0,1e400", "-1e308,1e308", "1e12,1000000000001"]
)
def test_a_wrong_range_is_told_with_what_was_typed(typed: str) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        range_of(typed)
    close = "the ends of range are too close together for their size: got "
    wrong = "range must be the least and the largest value with a comma between, such as 0,5000; got "
    assert str(refusal.value) == (close if typed.startswith("1e12") else wrong) + typed


def test_a_range_without_a_target_asks_for_one() -> None:
    assert keys_lacking({"public": "b.csv", "range": (0, 1), "epsilon": 1, "delta": 1e-6}) == ["[data] target"]
