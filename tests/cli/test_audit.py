"""``quorate audit`` on a small run, and the auditor at work on known cheats."""

import json
from dataclasses import replace

import pytest

from quorate.audit import cheats, measured_sizes
from quorate.audit.detectable import read_sizes, stored_sizes, write_sizes

pytestmark = pytest.mark.usefixtures("small_shards")


@pytest.fixture
def finished(finished_run):
    return finished_run()


@pytest.mark.heavy
def test_it_prints_claimed_against_proved_and_that_a_pass_is_no_proof(finished, cli):
    before = cli("ledger", "show", finished, "--json")[1]
    code, out, said = cli("audit", finished, "--runs", 5_000, "--seed", 1)
    assert cli("ledger", "show", finished, "--json")[1] == before
    assert code == 0
    lines = out.splitlines()
    assert max(map(len, lines[:-1])) <= 80
    assert lines[0].split() == ["attack", "claimed", "ε", "proved", "ε", "trials", "confid."]
    assert lines[1].startswith("one answer: two classes tie")
    assert lines[2].startswith("all 150 answers: two classes tie")
    assert lines[1].endswith(" 99.16 %")
    text = out.words
    assert "Shards: No violation found: one unit moved at most 1 teacher" in text
    assert "No violation found, at confidence 95 % for all bounds together. That is not a proof" in text
    assert "all 150 answers" in said
    assert "changing one unit" in said


@pytest.mark.heavy
def test_its_result_is_published_with_the_run(finished, cli, tmp_path):
    assert "Not audited yet" in (finished / "public" / "report.html").read_text()
    code, out, said = cli("audit", finished, "--runs", 2_000, "--seed", 1, "--json")
    assert (code, said) == (0, "")
    shown, written = json.loads(out), json.loads((finished / "public" / "audit.json").read_text())
    assert (shown["violated"], shown["seed"]) == (False, 1)
    assert {key: written[key] for key in shown} == shown
    page = (finished / "public" / "report.html").read_text()
    assert "all 150 answers: two classes tie" in page
    cli("report", finished)  # written again from the facts, it says the same
    assert (finished / "public" / "report.html").read_text() == page
    assert cli("export", finished, "--to", tmp_path / "out")[0] == 0
    assert (tmp_path / "out" / "audit.json").exists()


def test_a_run_that_has_not_finished_says_what_to_do(make_run, cli):
    root = make_run()
    assert f"quorate run {root}" in cli.refused(4, "audit", root)
    assert [path.name for path in root.iterdir() if path.is_dir()] == [], "nothing was made"


@pytest.mark.heavy
@pytest.mark.parametrize("wrong", [("--runs", 3), ("--confidence", 1), ("--confidence", "nan"), ("--jobs", 0)])
def test_wrong_values_are_exit_code_2(finished, cli, wrong):
    assert cli("audit", finished, *wrong)[0] == 2


@pytest.fixture
def few(monkeypatch):
    """Broken mechanisms and a correct one, in the place of all."""
    broken = [case for case in cheats.CHEATS if case.name in {"noise shared by all classes", "Lyu Alg. 5"}]
    correct = [case for case in cheats.HONEST if case.name == "Laplace noisy max"]
    monkeypatch.setattr(cheats, "CHEATS", tuple(broken))
    monkeypatch.setattr(cheats, "HONEST", tuple(correct))
    return broken, correct


def test_the_cheats_are_shown_with_where_they_come_from(cli, few):
    broken, correct = few
    code, out, said = cli("audit", "--show-cheats", "--seed", 1)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    lines = {line.split("  ")[0]: line for line in out.splitlines()}
    for case in broken:
        assert lines[case.name].endswith("yes")
    for case in correct:
        assert lines[case.name].endswith(" no")
    text = out.words
    for case in (*broken, *correct):
        assert " ".join(case.source.split()) in text
    assert "2 of 2 broken ones caught, 0 of 1 correct ones." in text
    assert "not proved correct" in text
    assert "auditing (3)" in said


@pytest.mark.usefixtures("few")
def test_the_cheats_as_json_are_one_object(cli):
    code, out, said = cli("audit", "--show-cheats", "--json", "--seed", 1, "--runs", 20_000)
    assert (code, said) == (0, "")
    shown = json.loads(out)
    assert [(case["broken"], case["caught"]) for case in shown["cases"]] == [(True, True), (True, True), (False, False)]
    assert {case["trials"] for case in shown["cases"]} == {10_000}


def test_the_sizes_of_every_mechanism_are_shown_or_those_of_one(cli):
    code, out, said = cli("audit", "--sizes")
    assert (code, said) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    rows = stored_sizes()
    for row in rows:
        assert f"\n{row.setting.mechanism}: " in f"\n{out}"
        assert row.fault_in_words in out
    one = cli("audit", "--sizes", "NoisySum")[1]
    assert one.startswith("NoisySum: one answer")
    assert "PrivatePrediction" not in one
    assert read_sizes(cli("audit", "--sizes", "--json")[1]) == rows


@pytest.mark.heavy
def test_sizes_are_measured_into_a_file_that_keeps_what_it_holds(cli, tmp_path, monkeypatch):
    rows = {(row.setting.mechanism, row.fault): row for row in stored_sizes()}
    asked = []

    def measure(name, fault):
        asked.append((name, fault))
        return replace(rows[name, fault], size=77)

    monkeypatch.setattr(measured_sizes, "measure", measure)
    path = tmp_path / "sizes.json"
    path.write_text(write_sizes([rows["NoisySum", "less noise"], rows["Exponential", "less noise"]]))
    out = cli.ok("audit", "--sizes", "NoisySum", "--measure", path)
    assert asked == [("NoisySum", "bare answers")]
    assert "one answer in 77 without noise" in out
    assert [(row.setting.mechanism, row.size) for row in read_sizes(path.read_text())] == [
        ("NoisySum", rows["NoisySum", "less noise"].size), ("NoisySum", 77),
        ("Exponential", rows["Exponential", "less noise"].size),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [("--sizes", "NoisySums"), ("--measure", "here.json"), ("--sizes", "--measure", "no-such-folder/sizes.json")],
)
def test_a_mechanism_that_is_none_and_a_file_without_sizes_are_refused(cli, wrong):
    assert wrong[-2] in cli.refused(2, "audit", *wrong)
