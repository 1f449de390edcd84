"""``quorate demo``, once, for real: Adult, 32,561 private rows."""

import json
import shutil
from pathlib import Path

import pytest
from tests.test_docs import TOGETHER, check_session

from quorate.cli import demo as demo_module
from quorate.data import load_adult
from quorate.data.declared_schema import Schema
from quorate.folder import methods
from quorate.folder.published import read_facts
from quorate.folder.settings import read_settings

pytestmark = pytest.mark.mostly_heavy

FIELDS = {
    "accuracy", "balanced_accuracy", "non_private_accuracy", "epsilon", "delta", "n_teachers", "n_answers", "sigma",
    "seconds", "report", "direct_accuracy", "commonest_class",
}  # fmt: skip


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """The folder of the demo that the README's session runs and goes on with, and what the demo printed."""
    place = tmp_path_factory.mktemp("demo")
    demo, *_ = check_session(TOGETHER[0], place)
    return place / "quorate-demo", demo.came


@pytest.fixture
def folder(session):
    return session[0]


def test_the_demo_without_public_rows_declares_every_value_that_adult_has(tmp_path):
    demo_module.write_inputs(tmp_path, public=False)
    settings = read_settings(tmp_path / "quorate.toml")
    assert settings.data.public is None
    assert not (tmp_path / "public.csv").exists()
    table = load_adult().test
    schema = Schema.of(settings.schema)
    assert {*schema.columns, *schema.dropped} == set(table.columns)
    assert not any((held.codes(table[name]) < 0).any() for name, held in schema.columns.items())
    direct = read_settings(demo_module.write_direct(tmp_path, public=False) / "quorate.toml")
    assert direct.schema == settings.schema
    assert direct.method.feature_map == "auto"


def test_the_examples_of_the_readme_print_what_they_say_and_the_demo_learns_adult_with_privacy(folder):
    facts, direct = read_facts(folder), read_facts(folder / "direct")
    by_votes, by_rounds, non_private = facts.utility.student, direct.utility.student, facts.utility.non_private
    assert by_votes is not None
    assert by_rounds is not None
    assert non_private is not None
    assert by_votes.accuracy >= 0.815
    assert by_votes.balanced_accuracy > 0.65
    assert by_rounds.accuracy >= 0.83
    assert 0.74 < (by_votes.commonest or 0) < 0.78
    assert 0.84 < non_private.accuracy < 0.87
    assert facts.guarantee.delta <= 1e-5
    assert 7_000 < facts.answers.answered <= 8_140
    assert facts.setup.n_teachers >= 100
    sizes = [
        len((folder / name).read_text().splitlines()) - 1 for name in ("private.csv", "public.csv", "evaluation.csv")
    ]
    assert sizes == [32_561, 8_140, 8_141]


def test_the_demo_shows_everything_that_was_promised_about_it(session):
    (folder, out), facts = session, read_facts(session[0])
    assert max(map(len, out.splitlines()[1:])) <= 80
    assert f"{facts.setup.n_teachers:,} · one record → exactly one teacher; checked" in out  # K
    assert f"{facts.setup.n_queries:,} asked · {facts.answers.answered:,} answered" in out  # ℓ, labels released
    assert "σ = " in out
    assert "spent       ε " in out
    assert "balanced" in out
    assert "no privacy  accuracy " in out  # Adult is public, so this line may be shown
    assert "quorate-demo/public/report.html" in out
    assert "try next    quorate ledger show quorate-demo" in out
    assert "quorate init my-run" in out
    assert (folder / "public" / "report.html").is_file()


def test_the_demo_as_json_tells_its_figures(folder, tmp_path, cli, monkeypatch):
    """Of the demo above: its figures are taken as they are, and not computed again."""
    ready = iter([read_facts(folder), read_facts(folder / "direct")])

    def copied(where):
        where.mkdir()
        for name in ("private.csv", "public.csv", "evaluation.csv", "quorate.toml"):
            shutil.copy(folder / name, where / name)
        return read_facts(folder).utility.non_private

    monkeypatch.setattr(methods, "execute", lambda *args, **how: next(ready))
    monkeypatch.setattr(demo_module, "write_inputs", copied)
    out = cli.ok("demo", "--out", tmp_path / "out", "--json")
    told, facts = json.loads(out), read_facts(folder)
    assert told.keys() == FIELDS
    assert told["accuracy"] == facts.utility.student.accuracy
    assert (told["epsilon"], told["n_answers"]) == (1.0, facts.answers.answered)  # as it is printed
    assert told["sigma"] > 0


@pytest.mark.quick
def test_a_second_demo_takes_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for expected in ("quorate-demo", "quorate-demo-2", "quorate-demo-3"):
        assert demo_module.new_folder() == Path(expected)
        Path(expected).mkdir()


def test_a_folder_that_holds_a_run_is_not_used_again(folder, cli):
    assert "holds a run already; choose a new folder with --out" in cli.refused(4, "demo", "--out", folder)
