"""Feature maps of a direct run, and runs without public rows: from a schema to a package, also after a kill."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tests.folder.conftest import DIRECT, WARD, WITHOUT_POOL, Killed, charges, edit, history, run
from tests.folder.test_begun_before import begun
from tests.used_rows import used

from quorate.deferred import skops
from quorate.direct import flow, prepare
from quorate.errors import BudgetExhausted, DataRefused
from quorate.folder import batch
from quorate.folder.batch import load_run
from quorate.folder.methods import execute, read_run
from quorate.folder.settings import read_settings
from quorate.folder.student_rows import public_table, reader_of
from quorate.ledger import Ledger
from quorate.mechanisms import NoisyMarginals
from quorate.release.charge import GRADIENT_ROUND, MARGINAL_LEVEL
from quorate.voting import kept_votes
from quorate.voting.models import teacher_named

pytestmark = pytest.mark.mostly_heavy


def transformer(root, *, fit=True):
    made = ColumnTransformer([("numbers", StandardScaler(), ["age", "bmi"]), ("words", OneHotEncoder(), ["ward"])])
    return made.fit(pl.read_csv(root / "public.csv")) if fit else made


def test_a_run_takes_a_transformer_from_a_file_and_goes_on_with_it(make_run, cli):
    root = make_run(m=60, **DIRECT, **{"method.feature_map": "map.skops"})
    assert "there is no file" in cli.refused(4, "check", root)
    skops.io.dump(transformer(root, fit=False), root / "map.skops")
    assert "is not fitted" in cli.refused(2, "check", root)
    assert not (root / "ledger.db").exists()
    skops.io.dump(transformer(root), root / "map.skops")
    assert cli("run", root)[0] == 0
    again = read_run(root)
    assert again.task.stored
    model = skops.io.load(root / "public" / "student.skops")
    assert set(model.predict(pl.read_csv(root / "public.csv"))) <= {"no", "yes"}
    before = model[-1].coef_
    execute(again, command="quorate run")
    assert (skops.io.load(root / "public" / "student.skops")[-1].coef_ == before).all()
    (root / "map.skops").write_bytes(b"none")
    assert "skops.io.dump" in cli.refused(4, "check", root)


@pytest.fixture
def with_notes(make_run):
    def make(**changes):
        root = make_run(m=60, **{**DIRECT, "data.evaluation": "evaluation.csv", **changes})
        words = {"yes": "cough fever ache", "no": "well fine healthy"}
        rng = np.random.default_rng(0)
        for name in ("private", "public", "evaluation"):
            table = pl.read_csv(root / f"{name}.csv")
            sick = table["ill"] if "ill" in table.columns else rng.choice(["yes", "no"], table.height)
            notes = [" ".join(rng.choice([*words[each].split(), "the", "patient"], 6)) for each in sick]
            table.with_columns(pl.Series("note", notes)).write_csv(root / f"{name}.csv")
        return root

    return make


def test_running_text_is_named_in_the_settings(with_notes, cli):
    root = with_notes(**{"method.text": ["note"]})
    cli.ok("run", root)
    model = skops.io.load(root / "public" / "student.skops")
    rows = pl.read_csv(root / "evaluation.csv")
    assert (model.predict(rows.drop("ill")) == rows["ill"].to_numpy()).mean() > 0.9
    assert skops.io.get_untrusted_types(file=root / "public" / "student.skops") == []


def test_a_run_without_public_rows_goes_by_a_declared_schema_and_goes_on_as_it_was_begun(make_run, cli, tmp_path):
    root = make_run(**WITHOUT_POOL, **{"data.evaluation": "evaluation.csv", "method.marginals": 0})
    assert "6 features" in cli.ok("check", root)
    cli.ok("run", root)
    cli.ok("run", root)
    assert "finished" in cli.ok("status", root)
    cli.ok("audit", root, "--runs", 2_000, "--seed", 1)
    cli.ok("export", root, "--to", tmp_path / "out")
    model = skops.io.load(tmp_path / "out" / "student.skops")
    rows = pl.read_csv(root / "evaluation.csv").drop("ill")
    assert set(model.predict(rows)) <= {"no", "yes"}
    edit(root, "marginals = 0\n", "")
    task = read_run(root, begin=False).task
    assert (task.drawn, task.has_pool) == (None, False)
    cli.ok("run", root)
    assert charges(root) == 1


def test_sparse_rows_without_a_pool_need_their_number_of_columns(make_run, cli):
    settings = {**DIRECT, "data.public": None, "data.private": "private.svm", "data.classes": [0, 1]}
    root = make_run(**settings, **{"schema.columns": 6})
    rng = np.random.default_rng(0)
    rows = rng.random((400, 6)) < 0.4
    lines = [f"{int(row[0])} " + " ".join(f"{i + 1}:1" for i in np.flatnonzero(row)) for row in rows]
    (root / "private.svm").write_text("\n".join([*lines, "1 9:1"]) + "\n")
    assert len(used(read_run(root, begin=False).task)[1]) == 400
    assert cli("run", root)[0] == 0
    other = make_run("other", **settings, **{"schema.age": [0, 1]})
    (other / "private.svm").write_text("\n".join(lines))
    assert "columns = 5000" in cli.refused(2, "check", other).words


LISTS_ALONE = {
    **DIRECT,
    "data.public": None,
    "schema.age": "drop",
    "schema.bmi": "drop",
    "method.feature_map": "linear",  # kernels of 1,200 drawn rows would take most of the time
    **WARD,
}


def killed_in(owner, name, root):
    """Begin a run, and let the process die where it calls something."""

    def dies(*_, **_how):
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, dies)
        with pytest.raises(Killed):
            run(root)


def test_a_run_is_killed_within_a_level_goes_on_and_publishes_the_rows_it_drew(make_run, cli):
    root = make_run(**LISTS_ALONE)
    assert "1,200 rows from noisy counts of 1 column" in cli.ok("check", root).words
    killed_in(NoisyMarginals, "release_level", root)
    assert "1 level of marginals, charged and never released" in cli.ok("status", root).words
    told = cli.ok("run", root).words
    assert "lost 1 level of marginals, charged and never released: a process ended in between" in told
    assert "rows are drawn evenly within the declared bounds: the model may be of no use" in told
    assert "the model may be of no use" in cli.ok("status", root).words
    with Ledger(root / "ledger.db") as ledger:
        [reservation] = ledger.reservations()
        assert [block.answers for block in reservation.blocks(MARGINAL_LEVEL)] == [None]
        assert reservation.remaining(GRADIENT_ROUND) == 0
    pool = pl.read_parquet(root / "public" / "pool.parquet")
    assert pool.columns == ["ward"]
    page = (root / "public" / "report.html").read_text()
    assert "level 1 was drawn and lost" in page
    assert "The model was made without them, and may be of no use" in page
    assert "not people" in (root / "public" / "model_card.md").read_text()
    before = (root / "public" / "pool.parquet").read_bytes()
    assert cli("run", root)[0] == 0
    assert (root / "public" / "pool.parquet").read_bytes() == before


def test_a_run_of_lists_that_was_begun_with_the_share_of_numbers_goes_on_with_it(make_run, monkeypatch):
    root = make_run(**LISTS_ALONE, **{"budget.epsilon": 0.2})
    assert read_run(root, begin=False).task.drawn.before.share == 0.1
    asked = prepare.as_asked
    with monkeypatch.context() as then:
        then.setattr(
            prepare, "as_asked", lambda config, public: replace(asked(config, public), listed=False, averaged=False)
        )
        killed_in(flow, "descend", root)
    charged = history(root)
    with monkeypatch.context() as twin:  # that does not look for it would pay again
        twin.setattr(prepare, "_earlier", lambda *_: [])
        with pytest.raises(BudgetExhausted):
            execute(read_run(root), command="quorate run")
    for _ in range(2):
        again = read_run(root)
        assert again.task.drawn.before.share == 0.3
        execute(again, command="quorate run")
    assert charges(root) == 1
    assert history(root)[: len(charged)] == charged


def test_a_pool_that_was_kept_for_another_charge_is_not_that_of_a_run(make_run):
    """The stages of a run are beside the ledger of another one with the same public facts, as after a lost attempt."""
    first, second = make_run("first", **LISTS_ALONE), make_run("second", **LISTS_ALONE)
    execute(read_run(first), command="quorate run")
    killed_in(flow, "release_marginals", second)
    for stage in (first / "private").glob("*.stage"):
        (second / "private" / stage.name).write_bytes(stage.read_bytes())
    run = read_run(second)
    assert run.task.stored, "the other pool is found under the same name"
    execute(run, command="quorate run")
    pools = [pl.read_parquet(root / "public" / "pool.parquet") for root in (first, second)]
    assert not pools[0].equals(pools[1])


VOTES = {
    **{key: value for key, value in LISTS_ALONE.items() if not key.startswith("method.")},
    "method.by": "votes",
    "data.evaluation": "evaluation.csv",
}


def test_votes_without_public_rows_go_on_where_a_kill_left_them_and_are_told(make_run, cli):
    root = make_run(**VOTES)
    assert "4 rows from noisy counts of 1 column" in cli.ok("check", root).words
    killed_in(kept_votes, "count_votes", root)
    kept = load_run(root).task.inputs.public
    assert cli("run", root)[0] == 0
    with Ledger(root / "ledger.db") as ledger:
        [reservation] = ledger.reservations()
        assert len(reservation.blocks(MARGINAL_LEVEL)) == 1
        assert 4.0 - 1e-6 < ledger.spent.epsilon <= 4.0
    assert pl.read_parquet(root / "public" / "pool.parquet").equals(kept)
    card = (root / "public" / "model_card.md").read_text()
    assert "not people" in card
    assert "public rows, of which" not in card
    new = pl.DataFrame({"ward": [None, "north"], "age": [1, 2], "bmi": [1, 2]})
    new.write_csv(root / "new.csv")
    first = cli("ask", root, root / "new.csv")
    assert first[0] == 0, first[2]
    assert cli("ask", root, root / "new.csv")[1] == first[1]
    assert "finished" in cli("status", root)[1]


def test_votes_on_drawn_rows_that_logistic_teachers_began_go_on_with_them(make_run, monkeypatch):
    root = make_run(**{**WITHOUT_POOL, "method.rounds": None, "method.by": "votes", "mechanism.queries": 60})
    charged = begun(root, monkeypatch, earlier_defaults=True, teacher=teacher_named("logistic"))
    with monkeypatch.context() as twin:  # that does not look for them would pay again
        twin.setattr(batch, "earlier_configs", lambda *_: [])
        with pytest.raises(BudgetExhausted):
            execute(load_run(root), command="quorate run")
    run = load_run(root)
    assert isinstance(run.task.teacher, LogisticRegression)
    execute(run, command="quorate run")
    assert history(root) == charged


def test_numbers_lists_and_dropped_columns_from_check_to_package(make_run, cli, tmp_path):
    root = make_run(**{**WITHOUT_POOL, "schema.bmi": "number", "data.evaluation": "evaluation.csv"})
    assert cli("run", root)[0] == 0
    assert cli("audit", root, "--runs", 400, "--seed", 1)[0] == 0
    pytest.importorskip("onnxruntime")
    assert cli("export", root, "--format", "tre", "--model", "both", "--to", tmp_path / "out")[0] == 0
    assert (tmp_path / "out" / "pool.parquet").exists()
    metadata = json.loads((tmp_path / "out" / "metadata.json").read_text())
    assert '"rows_compared": 1' in json.dumps(metadata)  # 1,200 that were drawn
    cli.ok("check-export", tmp_path / "out")


@pytest.mark.quick
def test_a_column_that_the_schema_drops_is_left_out_where_rows_are_handed_in(make_run):
    root = make_run(**LISTS_ALONE)
    settings = read_settings(root / "quorate.toml")
    read = reader_of(settings, LogisticRegression(), public_table(settings))
    assert read(pl.read_csv(root / "public.csv")).columns == ["ward"]
    with pytest.raises(DataRefused, match=r"^X has the column 'odd', which the model does not take\. Leave it out"):
        read(pl.DataFrame({"ward": ["north"], "odd": [1]}))


@pytest.mark.quick
def test_how_cells_are_read_is_said_where_no_public_table_shows_it(make_run, cli):
    root = make_run(**LISTS_ALONE, **{"schema.seen": None, "data.evaluation": "evaluation.csv"})
    edit(root, "[schema]\n", "[schema]\nseen = [2000-01-01, 2040-01-01]\n")
    for name in ("private", "evaluation"):
        pl.read_csv(root / f"{name}.csv").with_columns(seen=pl.lit("23.08.2023")).write_csv(root / f"{name}.csv")
    err = cli.refused(4, "check", root)
    assert "the cell of row 0 in column 'seen' is not what [schema] says" in err.words
    assert "23.08.2023" not in err
    edit(root, 'evaluation = "evaluation.csv"\n', "")
    said = "dates of column 'seen' as ISO 8601 (2024-03-01), since no date_format is declared"
    out = cli.ok("check", root, "--look")
    assert said in out.words
    assert "empty cells alone as missing, since no missing is declared" in out.words
    assert f"see how many rows can be read before you pay, by quorate check {root} --look" in out.words
    assert "Most cells of column 'seen' cannot be read: say under [data] how they are written: decimal" in out.words
    assert "A cell of column 'seen' that cannot be read leaves out its row: list such texts under [data]" in out.words
    assert "Next: mend what the look shows, then quorate run" in out
    edit(root, "[data]\n", '[data]\ndate_format = "dd.mm.yyyy"\n')
    code, out, _ = cli("check", root, "--look")
    assert (code, said in out.words, "mend what" in out) == (0, False, False)


@pytest.mark.quick
@pytest.mark.parametrize(("more", "is_said"), [({}, True), ({"data.class_shares": {"yes": 0.05}}, False)])
def test_a_check_says_what_is_declared_for_a_rare_class_and_of_bounds_in_quotation_marks(make_run, cli, more, is_said):
    root = make_run(**LISTS_ALONE, **more)
    out = cli.ok("check", root).words
    assert ("such as [data] class_shares = { yes = 0.05 }: without it" in out) == is_said
    assert "is a list of the two texts" not in out
    edit(root, 'age = "drop"', 'age = ["0", "120"]' if is_said else 'age = ["1", "9"]')
    said = "[schema] 'age' is a list of the two texts '0' and '120'; for numbers between them write [0, 120]"
    assert (said in cli.ok("check", root).words) == is_said


@pytest.mark.quick
@pytest.mark.parametrize("marginals", [0, None])
def test_a_table_of_other_columns_than_the_schema_is_refused_in_its_words(make_run, cli, marginals):
    root = make_run(**LISTS_ALONE, **({} if marginals is None else {"method.marginals": marginals}))
    pl.read_csv(root / "private.csv").with_columns(note=pl.lit("x")).write_csv(root / "private.csv")
    line = cli.refused(4, "run", root).words
    assert "[schema] lacks the column 'note' of private.csv." in line
    assert '"note"]' in line
    assert "pool" not in line
    assert not (root / "ledger.db").exists()
