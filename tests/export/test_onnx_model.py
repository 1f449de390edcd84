"""A converted student says what the student says, takes columns by their names, and one that does not is refused."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.folder.conftest import write_run

from quorate import PrivateClassifier, PublicPool
from quorate.data.encoding import public_encoder
from quorate.data.feature_maps.composed import feature_map_for
from quorate.data.feature_maps.first_maps import PatchFeatures
from quorate.deferred import skops
from quorate.direct.flow import model_of
from quorate.direct.plan import plan_direct
from quorate.errors import PreconditionFailed
from quorate.export import onnx_model
from quorate.export.contents import table_script
from quorate.export.onnx_model import feed, onnx_student
from quorate.export.onnx_parts import MISSING_TEXT, patch_sums
from quorate.export.package import export_files
from quorate.folder.folder import RunFolder
from quorate.folder.methods import execute, read_run
from quorate.folder.published import read_facts
from quorate.folder.settings import settings_of
from quorate.folder.student_rows import public_rows_of, reader_of_columns
from quorate.report.student_file import StudentFile, TableColumn, Written
from quorate.run.schema import Schema
from quorate.service.open_run import open_student
from quorate.students.decision_threshold import check_decision_threshold, with_threshold
from quorate.students.prediction_sets import at_temperature

onnxruntime = pytest.importorskip("onnxruntime")


def numbers(n=200):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    return X, np.array(["no", "maybe", "yes"])[np.clip((X[:, 0] + X[:, 1] ** 2).astype(int), 0, 2)]


X, y = numbers()


def said_by(content, fed):
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    single = {each.name for each in session.get_inputs() if each.type == "tensor(float)"}
    return session.run(None, {name: x.astype("f4") if name in single else x for name, x in fed.items()})


@pytest.mark.heavy
@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        RandomForestClassifier(10, random_state=0),
        DecisionTreeClassifier(random_state=0),
        make_pipeline(StandardScaler(), Nystroem(gamma=0.3, n_components=20, random_state=0), LogisticRegression()),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("frame", [False, True], ids=["array", "frame"])
def test_it_says_of_new_rows_what_the_student_says(model, frame):
    """New rows, since on the rows of the comparison a student that differs is refused."""
    rows = pl.DataFrame(X, schema=["a", "b", "c", "d"]) if frame else X
    model.fit(rows[:150], y[:150])
    found = onnx_student(model, rows[:50])
    assert list(found.inputs) == (["a", "b", "c", "d"] if frame else ["rows"])
    classes, shares = said_by(found.content, feed(rows[150:], found.inputs))
    assert np.mean(classes == model.predict(rows[150:])) > 0.97  # where trees tie, either class is right
    assert np.abs(np.asarray(shares) - model.predict_proba(rows[150:])).max() < 1e-6


@pytest.mark.heavy
@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_frames_with_words_and_missing_values_go_in_by_the_names_of_their_columns(library):
    rng = np.random.default_rng(1)
    pool = pl.DataFrame({
        "unused": [None] * 120,
        "age": [None if place % 17 == 0 else float(place % 70) for place in range(120)],
        "ward": [None if place % 11 == 0 else ("north", "süd", "west")[place % 3] for place in range(120)],
        "smokes": (rng.random(120) > 0.5).tolist(),
    }, schema_overrides={"unused": pl.Float64})  # fmt: skip
    rows = pool if library == "polars" else pd.DataFrame(pool.to_dict(as_series=False))
    if library == "pandas":
        rows["unused"] = rows["unused"].astype(float)
    encoder = public_encoder(rows)
    model = make_pipeline(encoder, LogisticRegression())
    y = rng.integers(0, 2, 120)
    model.steps[-1][1].fit(encoder.transform(rows), y)
    found = onnx_student(model, rows)
    assert found.inputs == {"age": "number", "ward": "text", "smokes": "number"}
    assert found.largest_difference < 1e-12
    one = {
        "age": np.array([[np.nan], [40.0]]),
        "ward": np.array([["nowhere"], [MISSING_TEXT]], dtype=object),
        "smokes": np.array([[1.0], [0.0]]),
    }
    cells = {"unused": [None, None], "age": [None, 40.0], "ward": ["nowhere", None], "smokes": [True, False]}
    new = pl.DataFrame(cells, schema=pool.schema)
    asked = new if library == "polars" else pd.DataFrame(new.to_dict(as_series=False)).astype({"unused": float})
    assert np.abs(np.asarray(said_by(found.content, one)[1]) - model.predict_proba(asked)).max() < 1e-12


@pytest.mark.heavy
def test_the_student_of_a_run_is_the_same_in_both_files(votes_run):
    student = skops.io.load(votes_run / "public" / "student.skops")
    found = onnx_student(student, pl.read_csv(votes_run / "public.csv"))
    assert found.n_compared == 80
    assert found.largest_difference < 1e-9
    new = pl.read_csv(votes_run / "evaluation.csv").drop("ill")
    assert said_by(found.content, feed(new, found.inputs))[0].tolist() == student.predict(new).tolist()


@pytest.mark.parametrize(
    "names", [["cap-shape", "stalk root", "größe", "4th"], ["a-b", "a_b", "a b", "a.b"], ["rows", "student", "x", "y"]]
)
def test_columns_keep_their_names_whatever_they_are(names):
    """Each value goes to its own column, also where names differ by signs alone; or the conversion is refused."""
    rows = pl.DataFrame(X, schema=names)
    model = LogisticRegression().fit(rows, y)
    try:
        found = onnx_student(model, rows)
    except PreconditionFailed:
        assert names[0] == "a-b"  # no file is better than one whose inputs are mixed up
        return
    assert list(found.inputs) == names
    session = onnxruntime.InferenceSession(found.content, providers=["CPUExecutionProvider"])
    assert [each.name for each in session.get_inputs()] == names
    assert found.largest_difference < 1e-9


def test_a_column_with_a_name_of_the_file_itself_is_refused():
    rows = pl.DataFrame(X, schema=["label", "b", "c", "d"])
    with pytest.raises(PreconditionFailed, match=r"cannot be called 'label'|differs from it"):
        onnx_student(LogisticRegression().fit(rows, y), rows)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("classes", [[False, True], [0, 1], [3, 7], ["a", "é"]], ids=str)
def test_classes_of_every_kind_come_out_as_they_are(classes):
    model = LogisticRegression().fit(X, np.array(classes)[(y == "no").astype(int)])
    found = onnx_student(model, X)
    assert set(said_by(found.content, {"rows": X})[0].tolist()) == set(classes)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("classes", [["a", "é"], [0, 1], [False, True], [3, 7]], ids=str)
@pytest.mark.parametrize("tree", [False, True])
def test_a_threshold_leaves_with_the_model(classes, tree):
    model = RandomForestClassifier(10, random_state=0) if tree else LogisticRegression()
    model.fit(X, np.array(classes)[(y == "yes").astype(int)])
    for positive in classes:
        shares = [0.1 if name == positive else 0.9 for name in classes]
        student = with_threshold(model, 0.23, classes=classes, shares=shares, pool=None)
        found = onnx_student(student, X[:100])
        said, probabilities = said_by(found.content, feed(X[100:], found.inputs))
        assert np.asarray(said).tolist() == student.predict(X[100:]).tolist()
        assert (np.asarray(said) != model.predict(X[100:])).any()
        np.testing.assert_allclose(probabilities, model.predict_proba(X[100:]), atol=1e-5)


def test_a_temperature_leaves_with_the_model_and_a_threshold_of_costs_on_it():
    labels = np.where(y == "no", "no", "yes")
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:150], labels[:150])
    calibrated = at_temperature(model, 2.5)
    costs = check_decision_threshold({"false_negative": 4, "false_positive": 1}, ["no", "yes"], None)
    moved = with_threshold(calibrated, costs, classes=["no", "yes"], shares=None, pool=None)
    found = onnx_student(moved, X[:50])
    classes, shares = said_by(found.content, feed(X[150:], found.inputs))
    assert np.abs(np.asarray(shares) - calibrated.predict_proba(X[150:])).max() < 1e-6
    assert np.abs(np.asarray(shares) - model.predict_proba(X[150:])).max() > 0.05
    np.testing.assert_array_equal(classes == "yes", calibrated.predict_proba(X[150:])[:, 1] >= 0.2)


def test_what_cannot_be_converted_is_refused_by_name_with_the_reason():
    with pytest.raises(PreconditionFailed, match=r"cannot leave as ONNX: skl2onnx says: .*HistGradientBoosting"):
        onnx_student(HistGradientBoostingClassifier(max_iter=3).fit(X, y), X)
    linear = make_pipeline(Nystroem(kernel="linear", n_components=5), LogisticRegression()).fit(X, y)
    with pytest.raises(PreconditionFailed, match="kernel 'linear', and only 'rbf'"):
        onnx_student(linear, X)


@pytest.mark.parametrize("letters", ["ascii", "any"])
def test_a_running_text_is_read_as_the_student_reads_it_without_a_locale(letters):
    """Words, capitals, a word that is twice there, one of one letter, none at all; and a row without any number."""
    words = ["fever", "missing", "Mild", "x", "dose_2", *(["Übelkeit", "straße", "Ωmega"] if letters == "any" else [])]
    rng = np.random.default_rng(2)
    notes = [", ".join(rng.choice(words, size=5)) for _ in range(200)]
    pool = pl.DataFrame({"age": rng.normal(size=200), "note": notes})
    encoder = public_encoder(pool, text=["note"])
    features = encoder.transform(pool)
    scale = Normalizer().fit(features)
    model = make_pipeline(encoder, scale, LogisticRegression())
    model[-1].fit(scale.transform(features), rng.integers(0, 2, 200))
    onnx = onnx_student(model, pool)
    assert onnx.largest_difference < 1e-6
    new = pl.DataFrame({"age": [None, 1.0, 0.0, None], "note": ["FEVER ÜBELKEIT. fever", "", "nothing known", ""]})
    fed = feed(new, onnx.inputs)
    fed["note"][[1, 3]] = MISSING_TEXT
    assert np.abs(np.asarray(said_by(onnx.content, fed)[1]) - model.predict_proba(new)).max() < 1e-6


def test_a_word_that_stands_for_a_missing_one_cannot_be_a_value():
    pool = pl.DataFrame({"ward": [MISSING_TEXT, "north"] * 20})
    encoder = public_encoder(pool)
    model = make_pipeline(encoder, LogisticRegression())
    model.steps[-1][1].fit(encoder.transform(pool), [0, 1] * 20)
    with pytest.raises(PreconditionFailed, match="stands for a missing text"):
        onnx_student(model, pool)


@pytest.mark.parametrize(
    ("sign", "off", "told"),
    [(-1, 0.0, r"differs from it on \d+ of 200 public rows"), (1, 2e-3, r"largest difference of a probability 0\.000")],
    ids=["another model", "a small error of probabilities, and no other class"],
)
def test_a_converted_file_that_says_something_else_is_refused(monkeypatch, sign, off, told):
    """The cheating twin: a converter that hands over another model."""
    honest, other = LogisticRegression().fit(X, y), LogisticRegression().fit(sign * X, y)
    other.intercept_ = other.intercept_ + np.array([off, 0, 0])
    real = onnx_model._converted
    monkeypatch.setattr(onnx_model, "_converted", lambda student, *rest: real(other, *rest))
    with pytest.raises(PreconditionFailed, match=told):
        onnx_student(honest, X)


def test_without_the_extra_the_command_that_installs_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(PreconditionFailed, match=r'pip install "quorate\[onnx\]"'):
        onnx_student(LogisticRegression().fit(X, y), X)


@pytest.mark.heavy
def test_an_estimator_writes_either_file_by_the_name(tmp_path):
    X, y = numbers(400)
    pool = pl.DataFrame(X[:60], schema=["a", "b", "c", "d"])
    clf = PrivateClassifier(
        classes=["maybe", "no", "yes"], epsilon=8.0, delta=1e-5, n_teachers=6, n_jobs=1, allow_hopeless=True
    )
    clf.fit(pl.DataFrame(X[60:], schema=pool.schema), y[60:], public=PublicPool(pool))
    content = clf.export(tmp_path / "student.onnx").read_bytes()
    assert said_by(content, feed(pool, dict.fromkeys("abcd", "number")))[0].tolist() == clf.predict(pool).tolist()
    skops.io.load(clf.export(tmp_path / "student.skops"))


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("columns", [["age", "ward", "bmi"], ["ward", "sex"], ["age", "bmi"]])
def test_a_model_of_kernels_says_the_same(columns):
    """Numbers by intervals and categories by their indicators, with values that the pool does not have."""
    rng = np.random.default_rng(5)
    table = pl.DataFrame(
        {
            "age": rng.integers(0, 90, 150),
            "bmi": [None if at % 9 == 0 else each for at, each in enumerate(rng.normal(size=150).tolist())],
            "ward": rng.choice(["a", "b", "c"], 150),
            "sex": rng.choice(["F", "M"], 150),
        }
    ).select(columns)
    schema = Schema.of(table[:100])
    pool = schema.numbers(table[:100])
    feature_map = feature_map_for("kernels", pool, categories=schema.indicator_blocks)
    plan = plan_direct(feature_map, pool, n_classes=2, n_units=2_000, epsilon=1.0, delta=1e-5)
    task = SimpleNamespace(plan=plan, schema=schema, classes=("no", "yes"), target_range=None)
    model = model_of(task, 0.2 * rng.normal(size=plan.start.shape))
    found = onnx_student(model, table[:100])
    rows = table[100:]
    if "ward" in columns:
        rows = rows.with_columns(ward=pl.Series(["unseen", *rows["ward"][1:]]))
    classes, shares = said_by(found.content, feed(rows, found.inputs))
    assert (np.asarray(classes) == model.predict(rows)).all()
    assert np.allclose(shares, model.predict_proba(rows), atol=1e-4 if columns == ["ward", "sex"] else 1e-6)  # single


def test_onnx_of_patches():
    """What is read off the published transformer is one step, and says the same of other images."""
    images = np.random.default_rng(0).random((40, 100))
    transformer = PatchFeatures.fit(images, n_centroids=8).transformer()
    assert patch_sums(transformer.steps[1][1]).places.shape == (9, 1, 36)
    model = make_pipeline(transformer, LogisticRegression())
    model[-1].fit(transformer.transform(images), np.arange(40) % 2)
    assert onnx_student(model, images[::-1] * 0.9).largest_difference < 1e-6


def with_columns(root):
    for table in ("private", "public", "evaluation"):
        rows = pl.read_csv(root / f"{table}.csv")
        places = range(len(rows))
        rows.with_columns(
            zip=pl.Series([f"{8000 + row % 5}" for row in places]),
            seen=pl.Series([f"2026-02-{1 + row % 28:02}" for row in places]),
            name=pl.Series([f"{100 + row}" for row in places]),
        ).write_csv(root / f"{table}.csv")


def with_images(root):
    rng = np.random.default_rng(4)
    (root / "images").mkdir()
    for table in ("private", "public"):
        rows = pl.read_csv(root / f"{table}.csv")
        labels = rows["ill"] if "ill" in rows.columns else ["no"] * len(rows)
        files = [f"{table}-{row}.npy" for row in range(len(rows))]
        for row, (file, label) in enumerate(zip(files, labels, strict=True)):
            bright = label == "yes" if table == "private" else row % 2
            np.save(root / "images" / file, (40 * rng.random((6, 6)) + 150 * bright).astype(np.uint8))
        named = pl.DataFrame({"file": files})
        (named.with_columns(ill=labels) if table == "private" else named).write_csv(root / f"{table}.csv")


RUNS = {
    "votes": (
        with_columns,
        {"data.categorical": ["zip"], "data.drop": ["name"], "student.model": "logistic"},
        {"age": "number", "bmi": "number", "ward": "text", "zip": "text", "seen": "number"},
    ),
    "direct": (
        with_columns,
        {"data.categorical": ["zip"], "data.drop": ["name"], "method.by": "direct", "method.rounds": 4,
         "teachers.count": None, "mechanism.queries": None, "run.n_jobs": None},
        {"age": "number", "bmi": "number", "ward": "text", "zip": "text", "seen": "number"},
    ),
    "images": (with_images, {"data.images": "images", "student.model": "logistic"}, {"rows": "numbers"}),
}  # fmt: skip


@pytest.mark.heavy
@pytest.mark.parametrize("kind", RUNS)
def test_the_student_of_a_run_leaves_as_onnx_and_its_card_says_how_to_ask_it(kind, tmp_path, monkeypatch):
    prepare, settings, inputs = RUNS[kind]
    root = write_run(tmp_path / "run", n=200, m=60, **{"budget.epsilon": 8.0}, **settings)
    prepare(root)
    made = execute(read_run(root), command="quorate run")
    export_files(root, tmp_path / "out", model="both")
    model = onnxruntime.InferenceSession((tmp_path / "out" / "student.onnx").read_bytes())
    assert json.loads(model.get_modelmeta().custom_metadata_map["quorate.inputs"]) == inputs
    file = made.student_file
    assert (file.rows, file.read_as, file.trusted) == (
        ("images", (), ()) if kind == "images" else ("table", ("date",), ())
    )
    assert read_facts(root) == made
    monkeypatch.chdir(tmp_path / "out")
    monkeypatch.syspath_prepend(tmp_path / "out")
    monkeypatch.delitem(sys.modules, "read_table", raising=False)
    told = {"rows": public_rows_of(settings_of(root), open_student(RunFolder(root)))}
    if kind != "images":  # the card reads a table by the program beside the model
        (root / "public.csv").rename(tmp_path / "out" / "new.csv")
    exec((tmp_path / "out" / "model_card.md").read_text().split("```")[1].removeprefix("python\n"), told)  # noqa: S102 - as a reader would
    assert len(told["student"].predict(told["rows"])) == 60


@pytest.mark.parametrize(
    ("written", "number", "day"),
    [
        (None, "38,8", "1969-12-31T12:30+01:00"),
        (
            Written(decimal=",", thousands=".", date_format="dd.mm.yyyy", missing=("k.A.",)),
            "-1.234,5",
            "1.12.2023 06:30",
        ),
    ],
    ids=["as tables write", "as declared"],
)
def test_the_program_beside_a_model_reads_a_table_as_the_run_does(written, number, day, monkeypatch):
    kinds = {"n": "number", "d": "date", "h": "time", "s": "duration", "c": "category", "t": "text"}
    how = {"type": "text", "written": written, "comma": written is None}
    columns = tuple(TableColumn(name=name, holds="text", read_as=kind, **how) for name, kind in kinds.items())
    cells = {
        "n": [number, "n/a", "12", None],
        "d": ["2024-03-01", day, "?", None],
        "h": ["12:30", "00:00:30", "23:59:59.5", None],
        "s": ["60", "86400", "0.5", None],
        "c": ["north", "k.A.", "süd", None],
        "t": ["seen again", "k.A.", "", None],
    }
    table, reader = pl.DataFrame(cells), reader_of_columns(columns, None)
    expected = reader.kinds(reader(table)).fill_nan(None)
    file = StudentFile(rows="table", columns=columns)
    program = {"__name__": "read_table"}
    script = table_script(SimpleNamespace(student_file=file))
    exec(script, program)  # noqa: S102 - our own
    assert program["converted"](table)["c"].to_list() == ["north", None if written else "k.A.", "süd", None]
    read = program["converted"](table)
    assert read["t"].to_list() == ["seen again", "" if written else "k.A.", "", ""] == expected["t"].to_list()
    assert program["onnx_inputs"](read, ["t"])["t"].tolist()[2:] == [["<missing>"]] * 2
    assert program["converted"](table).drop("c").equals(expected.drop("c"))
    with pytest.raises(ValueError, match="column 'n': 'many' is no number"):
        program["converted"](table.with_columns(n=pl.lit("many")))


def test_a_table_that_is_taken_as_it_is_has_no_program_beside_it():
    number = TableColumn(name="age", holds="number", read_as="number", type="number")
    raw = TableColumn(name="day", holds="time", type="date")  # of a Pipeline of the owner's
    for columns in ((number,), (number, raw)):
        facts = SimpleNamespace(student_file=StudentFile(rows="table", columns=columns))
        assert table_script(facts) is None
