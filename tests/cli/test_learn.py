"""``quorate learn``: a rule from a table with few labels; what is printed, written, charged and refused."""

import json

import numpy as np
import polars as pl
import pytest

from quorate.ledger import Ledger

pytestmark = pytest.mark.mostly_heavy


@pytest.fixture
def table(tmp_path):
    random = np.random.default_rng(0)
    age, job = random.integers(18, 80, 3_000), random.choice(["nurse", "cook"], 3_000)
    label = np.where((age >= 40) & (job == "cook"), "yes", "no").tolist()
    few = [each if place < 1_000 else None for place, each in enumerate(label)]
    path = tmp_path / "private.csv"
    pl.DataFrame({"age": age, "job": job, "ill": few}).write_csv(path)
    return path


def asked(table, *more, age=("--cut", "age=30,40,50")):
    cuts = (*age, "--cut", "job=cook")
    return ("learn", table, "--label", "ill", "--class", "no", "--class", "yes", "--epsilon", "1", *cuts, *more)


@pytest.mark.several_fits
def test_a_rule_is_learned_written_and_given_again(cli, table, tmp_path):
    out = tmp_path / "out"
    said = cli.ok(*asked(table, "--out", out))
    assert "yes where age is at least 40 and job is cook; otherwise no" in said
    assert "(ε = 1, δ = 0)" in said
    rule = json.loads((out / "rule.json").read_text())
    assert rule["rule"]["where"] == "age is at least 40 and job is cook"
    assert rule["labels_used"] == 1_000
    page = (out / "report.html").read_text()
    assert "age is at least 40 and job is cook" in page
    assert "<script" not in page
    code, again, _ = cli(*asked(table, "--out", out, "--json"))
    assert (code, json.loads(again)["concept"]) == (0, rule["concept"])
    assert sorted(path.name for path in out.iterdir()) == ["report.html", "rule.json"]  # no ledger, no key
    with Ledger(tmp_path / "private.csv.ledger.db") as ledger:
        assert ledger.spent.epsilon == 1.0


def test_another_folder_for_the_files_is_no_other_budget(cli, table, tmp_path):
    assert cli(*asked(table, "--out", tmp_path / "a"))[0] == 0
    (tmp_path / "link.csv").symlink_to(table)
    for same in (table, tmp_path / "link.csv"):
        cli.refused(3, *asked(same, "--out", tmp_path / "b", "--concept", "stump"))
    assert not (tmp_path / "b").exists()


@pytest.mark.several_fits
def test_fits_with_other_cuts_share_one_ledger_and_its_budget(cli, table, tmp_path):
    ledger = ("--ledger", tmp_path / "ledger.db", "--out", tmp_path / "out")
    assert cli(*asked(table, *ledger, "--budget", "2"))[0] == 0
    ledger = (*ledger[:2], "--out", tmp_path / "out-2")
    assert cli(*asked(table, *ledger, age=("--cut", "age=20,35")))[0] == 0
    said = cli.refused(3, *asked(table, *ledger, "--concept", "stump"))
    assert "ExponentialLearner.fit costs ε=1, and the ledger has 0 left of 2; give a smaller --epsilon" in said
    other = tmp_path / "other.csv"
    other.write_text(table.read_text().replace("cook", "clerk", 1))
    assert cli(*asked(other, *ledger))[0] == 4


def test_a_check_charges_nothing(cli, table, tmp_path):
    said = cli.ok(*asked(table, "--check", "--out", tmp_path / "out", "--learner", "sanitized"))
    assert said.splitlines()[:5] == [
        "Nothing is wrong. This would",
        "  learn    when ill is 'yes' and not 'no'",
        "  column   age, cut at 30, 40, 50",
        "  column   job: cook, or another value",
        "  from     1,000 rows with a label and 2,000 without",
    ]
    assert "\n  release  one concept of Rectangles, chosen by permute-and-flip on 1,000 labelled records" in said
    assert "\n  spend    ε = 1, δ = 0 for any one record, from private.csv.ledger.db\n" in said
    assert "Nothing was charged" in said
    assert not (tmp_path / "out").exists()
    said = cli.ok(*asked(table, "--check"))
    assert "\n  expect   nine times in ten an error at most 0.15 above that of the best rule of this kind" in said
    said = cli.ok(*asked(table, "--check", "--epsilon", "0.001"))
    assert "\n  caution  with so few labelled rows at this epsilon no bound on the error is below that of a co" in said
    assert json.loads(cli.ok(*asked(table, "--check", "--json")))["unlabelled"] == 2_000


@pytest.mark.several_fits
def test_a_check_refuses_what_the_fit_would_refuse_and_leaves_no_file(cli, table, tmp_path):
    out, ledger = ("--out", tmp_path / "out"), tmp_path / "private.csv.ledger.db"
    before = sorted(tmp_path.iterdir())
    wrong = table.read_text()
    for more, words in (
        (("--cut", "height=3"), "no column 'height'"),
        (("--budget", "0.5"), "costs ε=1, and the ledger has 0.5 left of 0.5"),
    ):
        for only in ((), ("--check",)):
            code, _, said = cli(*asked(table, *more, *only, "--ledger", tmp_path / "apart" / "one.db", *out))
            assert code in {3, 4}, said
            assert words in said
    (tmp_path / "apart" / "one.db").unlink(missing_ok=True)
    table.write_text(wrong.replace(",yes", ",perhaps", 1))
    assert cli(*asked(table, "--check", *out))[0] == 4
    table.write_text(wrong)
    assert cli(*asked(table, "--check", *out))[0] == 0
    assert sorted(path for path in tmp_path.iterdir() if path.name != "apart") == before

    assert cli(*asked(table, *out))[0] == 0
    with Ledger(ledger) as opened:
        entries = opened.head.sequence
    assert cli(*asked(table, "--check", *out))[0] == 0  # the same fit is given again
    for more in (("--concept", "stump"), ("--epsilon", "0.1")):
        cli.refused(3, *asked(table, *more, "--check", *out))
    table.write_text(wrong.replace("cook", "clerk", 1))  # other data than the ledger's
    assert cli(*asked(table, "--check", *out))[0] == 4
    with Ledger(ledger) as opened:
        assert opened.head.sequence == entries
        assert opened.spent.epsilon == 1.0


def test_the_private_table_is_read_once(cli, table, tmp_path, monkeypatch):
    from quorate.learn import rule

    reads = []
    honest = rule.read_cells
    monkeypatch.setattr(rule, "read_cells", lambda path, **given: reads.append(path) or honest(path, **given))
    pool = tmp_path / "pool.csv"
    pl.DataFrame({"age": range(100), "job": ["cook", "nurse"] * 50}).write_csv(pool)
    more = ("--pool", pool, "--column", "age", "--out", tmp_path / "out")
    for only in (("--check",), ()):
        assert cli(*asked(table, *more, *only, age=()))[0] == 0
    assert reads == [table, table]


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--domain", "age=0..120", "--cut", "income=3", "--domain", "income=0..2"), "'income': 3 parts no values"),
        (("--domain", "job=clerk,nurse"), "'job': 'cook' parts no values"),
        (("--domain", "age=30..60"), "'age': 30 parts no values"),
        (("--domain", "age=nurse"), "'age': 30 parts no values"),
        (("--domain", "height=0..3"), "not cut"),
        (("--domain", "age=0..120", "--domain", "age=0..90"), "given twice"),
        (("--domain", "age=9..3"), "COLUMN=LOW..HIGH"),
        (("--cut", "age=20,35"), "--cut: 'age' is given twice"),
        (("--pool", "pool.csv", "--column", "age"), "'age' is given in --cut and in --column"),
        (("--pool", "pool.csv", "--column", "pay", "--column", "pay"), "--column: 'pay' is given twice"),
        (("--pool", "pool.csv", "--column", "pay"), "'job': all public rows of --pool are on one side"),
    ],
)
@pytest.mark.parametrize("only", [(), ("--check",)])
def test_cuts_that_public_facts_exclude_are_refused_before_the_private_table_is_read(
    cli, table, tmp_path, monkeypatch, more, words, only
):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"pay": range(10), "job": ["clerk", "nurse"] * 5}).write_csv("pool.csv")
    table.write_text("")
    said = cli.refused(2, *asked(table, *more, *only, "--out", tmp_path / "out"))
    assert words in said
    assert len([line for line in said.splitlines() if words in line]) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.quick
def test_private_rows_never_decide_that_a_cut_is_idle(cli, table, tmp_path):
    code, said, _ = cli(*asked(table, "--check", age=("--cut", "age=300", "--domain", "age=0..400")))
    assert (code, "Nothing was charged" in said) == (0, True)


def test_cuts_may_be_told_by_public_rows(cli, table, tmp_path):
    pool = tmp_path / "pool.csv"
    pl.DataFrame({"age": range(100), "job": ["cook", "nurse"] * 50}).write_csv(pool)
    more = ("--pool", pool, "--column", "age", "--levels", "10", "--out", tmp_path / "out", "--learner", "sanitized")
    code, said, _ = cli(*asked(table, *more, "--unsafe-noise-seed", "0", "--json", age=()))
    told = json.loads(said)
    assert (code, told["seeded"], told["cuts"]["age"]) == (0, True, [10.0 * each for each in range(1, 10)])
    assert told["rule"]["where"] == "job is cook and age is at least 40"
    assert "reproducible, therefore not private" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.quick
def test_the_private_table_is_no_pool(cli, table, tmp_path):
    """In another order, and with its labels left out."""
    lines = table.read_text().splitlines()
    again = tmp_path / "again.csv"
    again.write_text("\n".join([",".join(line.split(",")[:2]) for line in [lines[0], *reversed(lines[1:])]]))
    said = cli.refused(4, *asked(table, "--pool", again, "--column", "age", "--out", tmp_path / "out", age=()))
    assert "given again" in said


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        (("--label", "sick"), 4, "quorate: --label: private.csv has no column 'sick'"),
        (("--cut", "height=3"), 4, "quorate: --cut: private.csv has no column 'height'. See that its first line names"),
        (("--cut", "age"), 2, "COLUMN=VALUE"),
        (("--cut", "height=3,2"), 2, "quorate: --cut of 'height' must be increasing numbers"),
        (("--cut", "ill=yes"), 2, "quorate: --cut: 'ill' is the label"),
        (("--class", "maybe"), 2, "quorate: --class must be two labels, got 3"),
        (("--concept", "threshold"), 2, "quorate: --concept threshold is for one column"),
        (("--concept", "circle"), 2, "concept"),
        (("--column", "age"), 2, "--pool"),
        (("--epsilon", "0"), 2, "quorate: --epsilon must be a number > 0, got 0.0. Example: --epsilon 1.0"),
    ],
)
def test_refusals_name_the_options_and_charge_nothing(cli, table, tmp_path, more, code, words):
    found, _, said = cli(*asked(table, *more, "--out", tmp_path / "out"))
    assert found == code, said
    assert words in said
    assert not (tmp_path / "out" / "rule.json").exists()


@pytest.mark.quick
def test_labels_that_are_none_of_the_classes_are_refused_and_not_shown(cli, table, tmp_path):
    table.write_text(table.read_text().replace(",yes", ",perhaps", 1))
    said = cli.refused(4, *asked(table, "--out", tmp_path / "out", "--json"))
    assert "perhaps" not in said
    assert json.loads(said)["charged"] == "nothing was charged"


def test_what_the_guarantee_rests_on_is_printed(cli, table, tmp_path):
    said = cli.ok(*asked(table, "--out", tmp_path / "out"))
    rule = json.loads((tmp_path / "out" / "rule.json").read_text())
    caveats = [line.removeprefix("caveat     ") for line in said.splitlines() if line.startswith("caveat")]
    assert caveats == rule["guarantee"]["caveats"] != []


@pytest.mark.quick
def test_a_date_is_no_cut(cli, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = cli.refused(2, *asked(table, "--cut", "seen=2024-03-01,2024-04-01", "--check"))
    assert "--cut: 'seen' is cut at dates, which would be words here" in said
    pl.DataFrame({"seen": ["2024-03-01", "2024-03-02"] * 9, "job": ["cook", "nurse"] * 9}).write_csv("pool.csv")
    said = cli.refused(2, *asked(table, "--pool", "pool.csv", "--column", "seen", "--check", age=()))
    assert "--column: 'seen' is cut at dates" in said


@pytest.mark.several_fits
def test_another_rule_is_not_written_over(cli, table, tmp_path):
    """Neither one that was asked for in another way, which costs nothing, nor one of another table in the same."""
    out = tmp_path / "out"
    assert cli(*asked(table, "--out", out))[0] == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    for only in ((), ("--check",)):
        said = cli.refused(4, *asked(table, "--out", out, "--ledger", tmp_path / "new.db", "--concept", "stump", *only))
        assert f"{out} holds another rule, or a report; name another folder with --out" in said
    assert not (tmp_path / "new.db").exists()
    other = tmp_path / "other.csv"
    other.write_text(
        table.read_text().replace("yes", "y").replace("no", "yes").replace("y\n", "no\n").replace("yeses", "no")
    )
    said = cli.refused(4, *asked(other, "--out", out))
    assert "the same command with another --out writes it, at no further cost" in said
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert cli(*asked(other, "--out", tmp_path / "out-2"))[0] == 0
    with Ledger(tmp_path / "other.csv.ledger.db") as ledger:
        assert ledger.spent.epsilon == 1.0
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "report.html").touch()
    assert cli(*asked(table, "--out", tmp_path / "page"))[0] == 4
