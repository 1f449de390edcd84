"""``quorate init --from``: settings from the names of the columns, and no private row is read."""

import io
import os
import pty
import signal
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest

from quorate.data import column_names, file_reading, read_cells, read_data, read_table
from quorate.data.column_kinds import GivenKinds, column_kinds
from quorate.data.labels import TargetRange
from quorate.errors import DataRefused, InvalidParameter, naming
from quorate.folder.begin import Begun
from quorate.folder.begin_words import hint
from quorate.folder.settings import KEYS_BY_ARGUMENT, read_settings
from quorate.run.pool_cautions import pool_cautions

HEADER = b"person,age,notes,seen,name,ill\n"
PUBLIC = pl.DataFrame(
    {"age": [30, 40] * 15, "notes": [f"seen again with fever {i}" for i in range(30)], "seen": ["2024-03-01"] * 30}
)


class Counting(io.RawIOBase):
    """A file that says how far it was read, and cannot be read beyond its first line."""

    def __init__(self, content):
        self.inner, self.far = io.BytesIO(content), 0

    def readable(self):
        return True

    def read(self, size=-1):
        found = self.inner.read(size)
        self.far += len(found)
        assert self.far <= len(HEADER), "a private row was read"
        return found


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A private table whose second line is rubbish, and whose reading beyond the first one fails."""
    (tmp_path / "private.csv").write_bytes(HEADER + b"\xff\x00 rubbish,,,,,,,,\n\xfe")
    PUBLIC.write_csv(tmp_path / "public.csv")
    PUBLIC.with_columns(ill=pl.Series(["yes", "no"] * 15)).write_csv(tmp_path / "evaluation.csv")
    real = Path.open

    def opened(self, mode="r", *args, **kwargs):
        if self.name == "private.csv" and "b" in mode:
            return Counting(self.read_bytes_really())
        return real(self, mode, *args, **kwargs)

    def content(self):
        with real(self, "rb") as stream:
            return stream.read()

    monkeypatch.setattr(Path, "read_bytes_really", content, raising=False)
    monkeypatch.setattr(Path, "open", opened)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_no_private_row_is_read(tables, cli):
    options = ("--public", "public.csv", "--evaluation", "evaluation.csv", "--label", "ill", "--unit", "person")
    out = cli.ok("init", "run", "--from", "private.csv", *options, "--n-records", 6_000, "--yes")
    document = tomllib.loads((tables / "run" / "quorate.toml").read_text(encoding="utf-8"))
    assert document["data"] == {
        "private": "../private.csv", "public": "../public.csv", "evaluation": "../evaluation.csv", "label": "ill",
        "classes": ["no", "yes"], "unit": "person", "n_records": 6_000, "drop": ["name"],
    }  # fmt: skip
    assert document["budget"] == {"delta": 1e-5}
    assert "at most a tenth of 1/6,000" in out
    assert "text      'notes'" in out
    assert "reports call one unit 'person', after the column 'person'; write the word that you want" in out
    assert "fill in epsilon under [budget], which has no default" in out


def test_that_test_catches_one_that_reads_on(tables):
    with pytest.raises(AssertionError, match="a private row was read"):
        file_reading.read_bytes(tables / "private.csv")


class Terminal(io.StringIO):
    """Somebody who types."""

    def isatty(self):
        return True


def test_what_is_not_given_is_asked_for(tables, cli, monkeypatch):
    typed = ["public.csv", "il", "ill", "", "no,yes", "person", "in-patient", "6000", "5,9", "5000", "9000"]
    typed += ["lots", "9000", "n", "1.5", ""]
    monkeypatch.setattr("sys.stdin", Terminal("\n".join(typed) + "\n"))
    out = cli.ok("init", "run", "--from", "private.csv")
    assert "columns: person, age, notes, seen, name, ill" in out
    assert "did you mean 'ill'" in out
    assert "if 'ill' is a number, press Ctrl-C and use --target in place of --label" in out
    assert "--n-rows: expected a whole number" in out
    assert "--n-rows must be at least --n-records" in out
    assert "--epsilon: expected a number" in out
    assert "suggested: 1e-5, at most" in out
    assert "is above 10, and promises little" in out
    assert "tossing a coin is right in 500. Is it meant so" in out
    document = tomllib.loads((tables / "run" / "quorate.toml").read_text(encoding="utf-8"))
    assert document["budget"] == {"epsilon": 1.5, "delta": 1e-5}
    assert (document["data"]["n_records"], document["data"]["n_rows"]) == (6_000, 9_000)
    assert (document["data"]["unit"], document["data"]["unit_name"]) == ("person", "in-patient")
    assert document["method"] == {"by": "auto"}
    assert "next: quorate plan run" in out


def numbers(tables):
    """Write public rows with numbers in the column to predict."""
    PUBLIC.with_columns(ill=pl.Series([0.5 + 3 * i for i in range(30)])).write_csv(tables / "evaluation.csv")


@pytest.mark.parametrize("by", ["--target", "--label"])
def test_a_number_is_begun_in_a_range_that_is_declared(tables, cli, by):
    numbers(tables)
    options = ("--public", "public.csv", "--evaluation", "evaluation.csv", by, "ill", "--n-records", 60)
    out = cli.ok("init", "run", "--from", "private.csv", *options, "--epsilon", 1, "--yes")
    assert ("public rows have numbers in 'ill', so a number is predicted, and you" in out) == (by == "--label")
    assert "fill in [data] range" in out
    path = tables / "run" / "quorate.toml"
    assert "# range = [0, 100]" in path.read_text(encoding="utf-8")
    path.unlink()
    options = (*options, "--range", "-1, 2.5", "--epsilon", 1, "--yes")
    code, out, err = cli("init", "run", "--from", "private.csv", *options)
    if by == "--label":
        assert code == 2
        assert "--range goes with --target; write --target ill in place of --label ill" in err.words
        return
    assert (code, out.splitlines()[-1]) == (0, "next: quorate check run"), err
    data = tomllib.loads(path.read_text(encoding="utf-8"))["data"]
    assert (data["target"], data["range"], {"label", "classes"} & set(data)) == ("ill", [-1.0, 2.5], set())
    assert read_settings(path).data.range == TargetRange(-1.0, 2.5)


def test_a_range_is_asked_for_where_public_rows_have_numbers(tables, cli, monkeypatch):
    numbers(tables)
    typed = ["public.csv", "ill", "evaluation.csv", "9,1", "0,100", "", "", "1.5", ""]
    monkeypatch.setattr("sys.stdin", Terminal("\n".join(typed) + "\n"))
    out = cli.ok("init", "run", "--from", "private.csv")
    assert "public rows have numbers in 'ill', so a number is predicted. For classes press Ctrl-C and add" in out
    assert "Least and largest value of 'ill', from public knowledge" in out
    assert "--range must be the least and the largest value with a comma between, such as 0,5000; got 9,1\n" in out
    assert "Every label there may be" not in out
    data = tomllib.loads((tables / "run" / "quorate.toml").read_text(encoding="utf-8"))["data"]
    assert (data["target"], data["range"]) == ("ill", [0, 100])


def test_whole_numbers_that_are_few_are_classes_and_so_is_what_is_said_to_be(tables, cli):
    few = PUBLIC.with_columns(ill=pl.Series([*range(15)] * 2))
    for name in ("public", "evaluation"):  # the same 15 classes in both are 15, and not 30
        few.write_csv(tables / f"{name}.csv")
    options = ("--public", "public.csv", "--evaluation", "evaluation.csv", "--label", "ill", "--yes")
    assert cli("init", "few", "--from", "private.csv", *options)[0] == 0
    numbers(tables)
    assert cli("init", "said", "--from", "private.csv", *options, "--classes", "1,2")[0] == 0
    for folder, classes in (("few", [*range(15)]), ("said", [1, 2])):
        data = tomllib.loads((tables / folder / "quorate.toml").read_text(encoding="utf-8"))["data"]
        assert (data["label"], data["classes"], "target" in data) == ("ill", classes, False)


ROW = b"P17,Ann Miller,HIV,1951\nP18,Bob Smith,none,1960\n"


@pytest.mark.parametrize("public", ["", "public.csv"])
def test_the_first_line_of_a_file_without_names_is_shown_to_nobody(tables, cli, monkeypatch, public):
    (tables / "rows.csv").write_bytes(ROW)
    typed = [public, "ill", "", *[""] * 12]
    monkeypatch.setattr("sys.stdin", Terminal("\n".join(typed) + "\n"))
    _, out, err = cli("init", "run", "--from", "rows.csv")
    assert not [cell for cell in ("P17", "Ann", "HIV", "1951") if cell in out + err]
    assert not (tables / "run").exists() or "HIV" not in (tables / "run" / "quorate.toml").read_text(encoding="utf-8")
    assert "the columns are not shown" in out


@pytest.mark.parametrize("name", ["rows.csv", "rows.tsv"])
def test_a_first_line_that_would_go_on_into_rows_is_refused(tables, cli, name):
    (tables / name).write_bytes(b'person,age,"ill\nP17,39,yes\nP18,"50",no\n')
    err = cli.refused(4, "init", "run", "--from", name, "--yes")
    assert "its first line ends within quotation marks" in err.words
    assert "P17" not in err
    for read in (read_data, column_names):
        with pytest.raises(DataRefused, match="ends within quotation marks"):
            read(tables / name)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "give --yes"),
        (("--yes", "--label", "name", "--target", "age"), "--target for a number, not both"),
        (("--yes", "--target", "age", "--classes", "no,yes"), "leave out one of the pairs"),
        (("--yes", "--target", "age", "--range", "0"), "--range must be the least and the largest value with a comma"),
        (("--yes", "--target", "ill", "--evaluation", "evaluation.csv"), "have no numbers in it, such as 'no'; give"),
        (("--yes", "--target", "age", "--unit", "age"), "--target and --unit both name 'age'"),
        (("--yes", "--label", "name", "--unit", "name"), "two columns"),
        (("--yes", "--label", "note"), "has no column 'note'"),
        (("--yes", "--classes", "no"), "two different ones or more"),
        (("--yes", "--epsilon", "-1"), "epsilon"),
        (("--yes", "--n-rows", "9"), "--n-rows goes with --unit"),
        (("--yes", "--unit", "person", "--n-records", "9", "--n-rows", "8"), "got 8 for 9 units"),
        (("--yes", "--epsilon", "1,0"), "expected a number with a point, such as 1.0, got '1,0'"),
        (("--yes", "--public", "nowhere.csv"), "there is no such file; correct the path"),
        (("--yes", "--public", "other.csv"), "its first line must name the columns"),
    ],
)
def test_what_is_wrong_is_one_line(tables, cli, options, told):
    pl.DataFrame({"a": [1], "b": [2], "c": [3]}).write_csv("other.csv")
    code, _, err = cli("init", "run", "--from", "private.csv", *options)
    assert code in (2, 4)
    assert told in err.words
    assert not (tables / "run").exists()


def test_a_number_of_rows_is_asked_for_where_it_can_differ_from_that_of_units(tables):
    begun = Begun.of(tables / "private.csv", label="ill")
    assert not begun.wants("n_rows")
    assert not begun.with_answer("n_records", "9").wants("n_rows")
    assert not begun.with_answer("unit", "person").wants("n_rows")  # where neither is declared, both are read
    assert begun.with_answer("unit", "person").with_answer("n_records", "9").wants("n_rows")


def test_a_decimal_comma_at_a_question_is_no_larger_number(tables):
    """Ten times the ε, or a hundred times the units, would follow from a comma that is left out."""
    begun = Begun.of(tables / "private.csv")
    for key, typed in (("epsilon", "1,0"), ("delta", "1,0e-6"), ("n_records", "1,5"), ("n_records", "12,0000")):
        with pytest.raises(InvalidParameter, match=f"{key}: expected a"):
            begun.with_answer(key, typed)
    assert begun.with_answer("n_records", "12,000").n_records == 12_000
    with pytest.raises(InvalidParameter, match=r'unit_name must be a word such as "patient", got .1600.\Z'):
        begun.with_answer("unit_name", "1600")  # typed one question too early


def test_a_column_of_image_files_is_told_with_the_key_for_their_folder(tables, cli):
    public = PUBLIC.with_columns(name=pl.Series([f"scan {i}.png" for i in range(30)]))
    public.write_csv(tables / "public.csv")
    options = ("--public", tables / "public.csv", "--label", "ill", "--classes", "no,yes", "--yes")
    out = cli.ok("init", tables / "run", "--from", tables / "private.csv", *options)
    assert "column 'name' names files of images: uncomment images under [data], with their folder" in out
    assert '# images = "scans"' in (tables / "run" / "quorate.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("rare", [2, 15])
def test_shares_of_public_labels_are_proposed_where_one_of_two_classes_is_rare(tables, cli, rare):
    labels = pl.Series([">50K"] * rare + ["no"] * (30 - rare))
    PUBLIC.with_columns(ill=labels).write_csv(tables / "evaluation.csv")
    options = ("--public", "public.csv", "--evaluation", "evaluation.csv", "--label", "ill", "--yes")
    out = cli.ok("init", "run", "--from", "private.csv", *options)
    data = tomllib.loads((tables / "run" / "quorate.toml").read_text())["data"]
    assert data.get("class_shares") == ({">50K": 0.07, "no": 0.93} if rare == 2 else None)
    assert ('class_shares = { ">50K" = 0.07, no = 0.93 } is taken from the labels of evaluation.csv' in out) == (
        rare == 2
    )
    assert "classes are the labels of evaluation.csv: '>50K', 'no'" in out


def test_what_is_left_to_fill_in_says_no_more_than_what_is_left(tables, cli):
    options = ("--label", "ill", "--classes", "no,yes", "--public", tables / "public.csv", "--epsilon", "1", "--yes")
    out = cli.ok("init", tables / "run", "--from", tables / "private.csv", *options)
    assert "fill in delta under [budget], which has no default\n" in out


def test_options_about_a_table_need_one(tables, cli):
    assert "--from" in cli.refused(2, "init", "run", "--label", "ill")


def test_an_interrupted_init_writes_nothing_and_says_so_in_one_line(tables, cli, monkeypatch):
    monkeypatch.setattr("sys.stdin", Terminal("public.csv\n"))  # and then no more
    err = cli.refused(6, "init", "run", "--from", "private.csv")
    assert err.splitlines()[1:] == [
        "quorate: interrupted; nothing was written, and the same command begins again",
        "(QUO-E010; nothing was charged)",
    ]
    assert not (tables / "run").exists()


def test_a_killed_init_leaves_no_half_of_a_file(tables, cli, monkeypatch):
    def killed(self, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", killed)
    assert cli("init", "run", "--from", "private.csv", "--yes")[0] == 6
    assert not (tables / "run" / "quorate.toml").exists()


def test_names_of_any_text_are_written_as_toml_reads_them(tmp_path, cli):
    names = ['How old, "in years"?', "notes # and = too", "[a]", "ill"]
    private, public = tmp_path / "private.csv", tmp_path / "public.csv"
    pl.DataFrame({name: ["1", "2"] for name in names}).write_csv(private)
    pl.DataFrame({name: ["1", "2"] for name in names[1:3]}).write_csv(public)
    options = ("--from", private, "--public", public, "--label", "ill", "--yes")
    assert "'notes # and = too'" in cli.ok("init", tmp_path / "run", *options)
    dropped = tomllib.loads((tmp_path / "run" / "quorate.toml").read_text(encoding="utf-8"))["data"]["drop"]
    assert dropped == [read_cells(private, label="ill", n_features=1).X.columns[0]] == [read_table(private).columns[0]]


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("sqlite://clinic.db", "sqlite:///clinic.db"),
        ("postgresql://ann:s3cret@host/db", "postgresql://user@host/database"),
    ],
)
def test_a_database_is_sent_to_the_settings(tables, cli, url, told):
    for option in ("--from", "--public"):
        options = ("--from", "private.csv") if option == "--public" else ()
        err = cli.refused(2, "init", "run", *options, option, url, "--yes")
        assert f' = "{told}" and ' in err
        assert "s3cret" not in err


@pytest.mark.heavy
def test_ctrl_c_at_a_question_ends_it_at_once(tmp_path):
    """At a real terminal, once polars has read a table: it has a handler of its own, with which reading would go on."""
    for name in ("private", "public"):
        pl.DataFrame({"age": [30, 40], "seen": ["a", "b"]}).write_csv(tmp_path / f"{name}.csv")
    terminal, inside = pty.openpty()
    code = "from quorate.cli import main; main(['init', 'run', '--from', 'private.csv'])"
    child = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdin=inside, stdout=inside, stderr=inside, start_new_session=True
    )
    os.close(inside)
    said, asked = b"", False
    with suppress(OSError):  # which is how a terminal says that the other side has ended
        while part := os.read(terminal, 4096):
            said += part
            if not asked and b"fill it in later" in said:
                asked = bool(os.write(terminal, b"public.csv\n"))
            if b"Column to predict" in said:
                child.send_signal(signal.SIGINT)
                break
        while part := os.read(terminal, 4096):
            said += part
    os.close(terminal)
    assert child.wait() == 6
    assert "quorate: interrupted; nothing was written" in said.decode()
    assert not (tmp_path / "run").exists()


@pytest.mark.heavy
def test_a_question_that_does_not_end_is_told_in_the_same_words(tmp_path):
    """The signal came between the question and the reading of its answer: another thread has to tell it."""
    code = (
        "import os, signal, time, click\n"
        "def prompt(*_, **how):\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGINT); time.sleep(60)\n"
        "    except KeyboardInterrupt:\n"
        "        time.sleep(60)\n"
        "click.prompt = prompt\n"
        "from quorate.cli import main; main(['init', 'run', '--from', 'private.csv'])"
    )
    (tmp_path / "private.csv").write_text("age,seen\n30,a\n", encoding="utf-8")
    terminal, inside = pty.openpty()
    child = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, stdin=inside, capture_output=True, check=False)
    os.close(inside)
    os.close(terminal)
    assert child.returncode == 6
    assert "quorate: interrupted; nothing was written" in child.stderr.decode()
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("option", ["--public", "--evaluation"])
def test_how_a_table_is_written_is_told_from_public_rows_and_declared(tmp_path, cli, option):
    private, shown = tmp_path / "private.csv", tmp_path / "shown.csv"
    private.write_bytes("Patienten_ID;Größe;seen;ill\r\n".encode("cp1252") + b"\x81 rubbish")
    rows = "P1;170,5;23.08.2023;nein\r\nP2;180,5;01.08.2023;ja\r\n"
    shown.write_bytes(f"Patienten_ID;Größe;seen;ill\r\n{rows}".encode("cp1252"))
    out = cli.ok("init", tmp_path / "run", "--from", private, option, shown, "--label", "ill", "--yes")
    text = (tmp_path / "run" / "quorate.toml").read_text(encoding="utf-8")
    document = tomllib.loads(text)
    assert {key: document["data"][key] for key in ("separator", "encoding", "decimal", "date_format")} == {
        "separator": ";", "encoding": "cp1252", "decimal": ",", "date_format": "dd.mm.yyyy",
    }  # fmt: skip
    assert not {"quote", "thousands", "missing"} & document["data"].keys()
    assert 'date_format = "dd.mm.yyyy"' in out.words
    assert "Größe" in out
    assert "is 'Patienten_ID' whose row it is?" in out.words
    assert document["data"]["classes"] == ["ja", "nein"]
    if option == "--evaluation":  # without public rows
        assert "quorate plan" not in text.partition("[data]")[0]
        assert list(document["schema"]) == ["Patienten_ID", "Größe", "seen"]


@pytest.mark.parametrize("label", ["Übelkeit", None])
def test_names_in_a_code_page_are_read_without_a_public_table(tmp_path, cli, label):
    """Once the label is seen to be a column, the first line is no row; before that nothing is said of its text."""
    private = tmp_path / "private.csv"
    private.write_bytes("Größe;seen;Übelkeit\r\n".encode("cp1252") + b"\x81 rubbish")
    given = () if label is None else ("--label", label)
    out = cli.ok("init", tmp_path / "run", "--from", private, *given, "--yes")
    document = tomllib.loads((tmp_path / "run" / "quorate.toml").read_text(encoding="utf-8"))
    assert document["data"].get("encoding") == (None if label is None else "cp1252")
    assert ('private.csv are not UTF-8 text, so that the table is read as encoding = "cp1252"' in out) == bool(label)
    assert list(document.get("schema", {})) == ([] if label is None else ["Größe", "seen"])


def test_a_word_that_reads_badly_is_no_default(tables):
    """What an empty answer gives is said first; a word that reads well is taken by an empty answer."""
    names = "Fall-Nr,patient_id,age,ill"
    (tables / "private.csv").write_text(f"{names}\n1,1,50,no\n")
    begun = Begun.of(tables / "private.csv", label="ill")
    bad, good = (begun.with_answer("unit", column) for column in ("Fall-Nr", "patient_id"))
    assert (bad.default("unit_name"), good.default("unit_name")) == ("", "patient")
    assert hint(bad, "unit_name") == "without it, reports call one unit 'fall-nr', after the column 'Fall-Nr'"
    assert hint(good, "unit_name") == ""


FILES = [("--from", "lost.csv"), ("--public", "lost.csv"), ("--evaluation", "lost.csv"), ("--label", "lost")]


@pytest.mark.parametrize(("option", "value"), [*FILES, ("--target", "lost"), ("--unit", "lost")])
def test_an_option_that_names_what_is_not_there_is_named(tables, cli, option, value):
    options = {"--from": "private.csv", "--public": "public.csv", option: value}
    err = cli.refused(4, "init", "run", *[word for pair in options.items() for word in pair], "--yes")
    assert err.startswith(f"quorate: {option}: ")


def test_labelled_rows_without_the_label_are_refused(tables, cli):
    options = ("--public", "public.csv", "--label", "ill", "--evaluation", "public.csv", "--yes")
    err = cli.refused(4, "init", "run", "--from", "private.csv", *options)
    assert err.startswith("quorate: --evaluation: public.csv has no column 'ill'")


@pytest.mark.parametrize(
    ("name", "separator", "public"),
    [("private.csv", ";", True), ("private.csv", "\t", False), ("private.txt", "\t", False)],
)
def test_without_a_public_text_table_the_first_line_tells_the_separator(tmp_path, cli, name, separator, public):
    (tmp_path / name).write_bytes(f"age{separator}ward{separator}ill\n".encode() + b"\xff rubbish")
    pl.DataFrame({"age": [5], "ward": ["a"]}).write_parquet(tmp_path / "public.parquet")
    beside = ("--public", tmp_path / "public.parquet") if public else ()
    cli.ok("init", tmp_path / "run", "--from", tmp_path / name, *beside, "--label", "ill", "--yes")
    data = tomllib.loads((tmp_path / "run" / "quorate.toml").read_text(encoding="utf-8"))["data"]
    assert data["separator"] == separator
    assert "encoding" not in data


def test_without_a_public_table_each_column_is_a_question_that_check_names(tmp_path, cli):
    (tmp_path / "private.csv").write_bytes(b"age,ward name,person,ill\n\xff rubbish")
    options = ("--label", "ill", "--unit", "person", "--classes", "no,yes", "--epsilon", 1, "--n-records", 90, "--yes")
    out = cli.ok("init", tmp_path / "run", "--from", tmp_path / "private.csv", *options)
    assert "fill in [schema] (2 columns)" in out
    assert "never what was read off private rows" in out.words
    document = tomllib.loads((tmp_path / "run" / "quorate.toml").read_text(encoding="utf-8"))
    assert document["schema"] == {"age": "?", "ward name": "?"}
    assert document["method"] == {"by": "auto"}
    assert "public" not in document["data"]
    for by in ("auto", "votes"):
        settings = (tmp_path / "run" / "quorate.toml").read_text(encoding="utf-8")
        (tmp_path / "run" / "quorate.toml").write_text(settings.replace('by = "auto"', f'by = "{by}"'))
        (tmp_path / "private.csv").write_text("age,ward name,person,ill\n54,north,P1,no\n")
        err = cli.refused(2, "check", tmp_path / "run")
        assert "[schema]: still open: columns 'age', 'ward name'" in err.words


def test_a_column_that_looks_like_an_id_of_persons_is_asked_about(tmp_path, cli):
    rows = PUBLIC.with_columns(ill=pl.lit("no"), key=pl.Series([f"P{place // 3:05d}" for place in range(30)]))
    rows = pl.concat([rows] * 3)
    rows.with_columns(patient=pl.lit("P1")).write_csv(tmp_path / "private.csv")
    rows.drop("ill").write_csv(tmp_path / "public.csv")
    options = ("--from", tmp_path / "private.csv", "--public", tmp_path / "public.csv", "--label", "ill", "--yes")
    out = cli.ok("init", tmp_path / "run", *options)
    assert "is 'patient' whose row it is? One person may have several rows" in out
    text = (tmp_path / "run" / "quorate.toml").read_text(encoding="utf-8")
    assert '# unit = "patient"  ' in text
    assert "whose row it is?" not in cli.ok("init", tmp_path / "with", *options, "--unit", "patient")


def test_an_epsilon_that_promises_nothing_is_answered_with_a_question(tmp_path, cli):
    (tmp_path / "private.csv").write_bytes(HEADER)
    options = ("--from", tmp_path / "private.csv", "--label", "ill", "--n-records", 21_110, "--yes")
    out = cli.ok("init", tmp_path / "run", *options, "--epsilon", 21_110)
    assert "is that meant? " in out
    assert "epsilon is the number that was given for rows or units; " in out
    code, out, _ = cli("init", tmp_path / "other", *options, "--epsilon", 1)
    assert (code, "is that meant?" in out) == (0, False)
    assert "next: quorate check" in out.replace("edit it, then ", "")


def test_marks_in_public_numbers_and_dates_of_two_readings_are_said_with_the_line_to_write(tables, cli):
    """In the words of `check`, since both follow one rule; the line stands in the file as a comment."""
    crp = [*(f"{i},{i % 7}" for i in range(1, 29)), "<0,6", "k.A."]
    seen = [*(f"{1 + i % 12:02}/{1 + i % 9:02}/2024" for i in range(30))]
    pool = PUBLIC.with_columns(age=pl.Series(crp), seen=pl.Series(seen))
    pool.write_csv(tables / "public.csv")
    options = ("--public", "public.csv", "--label", "ill", "--classes", "no,yes", "--epsilon", 1, "--n-records", 60)
    out = cli.ok("init", "run", "--from", "private.csv", *options, "--yes")
    assert "2 of 30 in 'age', such as '<0,6', 'k.A.'. Take away the # before numeric = [\"age\"] in quorate.toml" in out
    assert 'write date_format = "dd/mm/yyyy" or date_format = "mm/dd/yyyy" under [data]' in out
    text = (tables / "run" / "quorate.toml").read_text(encoding="utf-8")
    assert '# numeric = ["age"]' in text
    assert (tomllib.loads(text)["data"].keys() & {"numeric", "date_format"}) == set()
    kinds = column_kinds(pool, GivenKinds(dialect=read_settings(tables / "run" / "quorate.toml").data.dialect))
    with naming({**KEYS_BY_ARGUMENT, "numeric": "# numeric"}):
        said = [each.words for each in pool_cautions(pool, "public.csv", kinds=kinds) if each.applies]
    assert len([words for words in said if words in out]) == 2


@pytest.mark.parametrize("key", ["public", "evaluation"])
@pytest.mark.parametrize("name", ["private.csv", "link.csv"])
def test_the_private_table_given_as_a_public_one_is_refused_before_it_is_read(tables, cli, key, name):
    """What public rows hold is quoted. The file's second line is rubbish, and to read it fails."""
    (tables / "link.csv").symlink_to(tables / "private.csv")
    code, out, err = cli("init", "run", "--from", "private.csv", f"--{key}", name, "--label", "ill", "--yes")
    assert (code, out) == (4, ""), err
    assert f"--{key} is the private table again; give rows that may be shown, or leave it out" in err.words
