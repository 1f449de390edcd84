"""``[method] by = "auto"``: which method a run has, by public facts; and that one which was begun keeps its own."""

import json
import tomllib
from pathlib import Path

import polars as pl
import pytest
from tests.folder.conftest import toml, visits

from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.folder.batch import load_run
from quorate.folder.choice import CHOICE
from quorate.folder.methods import read_run
from quorate.folder.planned import CHOOSES, plan_folder, settings_to_run
from quorate.folder.settings import read_settings, settings_from, settings_of

SETTINGS = {
    "data": {"private": "private.csv", "public": "public.csv", "label": "ill", "classes": ["no", "yes"]},
    "budget": {"epsilon": 2.0, "delta": 1e-5},
}


@pytest.fixture
def folder(tmp_path):
    X, y = visits(300, 0)
    X.with_columns(pl.Series("ill", y)).write_csv(tmp_path / "private.csv")
    visits(120, 1)[0].write_csv(tmp_path / "public.csv")
    write(tmp_path)
    return tmp_path


def write(folder, **sections):
    (folder / "quorate.toml").write_text(toml(changed(**sections)))


def changed(**sections):
    return {**SETTINGS, **{name: {**SETTINGS.get(name, {}), **keys} for name, keys in sections.items()}}


def evaluated(folder, n, **sections):
    X, y = visits(n, 2)
    X.with_columns(pl.Series("ill", y)).write_csv(folder / "evaluation.csv")
    write(folder, data={"evaluation": "evaluation.csv", "n_records": 300}, **sections)


def entries(cli, folder):
    return cli.json("ledger", "show", folder)["entries"]


@pytest.mark.parametrize(
    ("sections", "by", "why"),
    [
        ({}, "direct", "a record is one row"),
        ({"method": {"by": "votes"}}, "votes", "it was asked for"),
        ({"teachers": {"count": 20}}, "votes", "[teachers] count is for votes"),
        ({"mechanism": {"online_answers": 5}}, "votes", "[mechanism] online_answers is for votes"),
        ({"teachers": {"endpoint": "http://127.0.0.1:1", "model": "m"}}, "votes", "endpoint and [teachers] model"),
        ({"student": {"model": "forest"}}, "votes", "[student] model is for votes"),
        ({"run": {"scheduler": "tls://host:1"}}, "direct", "a record is one row"),
        ({"mechanism": {"strategy": "random"}, "teachers": {"model": "auto"}}, "direct", "a record is one row"),
        (
            {"student": {"decision_threshold": 0.3}, "run": {"n_jobs": 2, "memory": 1.0}},
            "direct",
            "a record is one row",
        ),
        ({"method": {"feature_map": "linear"}}, "direct", "[method] feature_map is for the direct method"),
        ({"data": {"unit": "patient_id"}}, "direct", "nothing declared says that a patient has more than 10 rows"),
        ({"data": {"unit": "patient_id", "n_records": 1_999}}, "votes", "fewer than 2,000 patients are declared"),
        ({"data": {"unit": "patient_id", "n_records": 2_000}}, "direct", "nothing declared"),
        ({"data": {"unit": "id", "n_records": 90, "n_rows": 900}}, "direct", "up to 10 rows a person"),
        ({"data": {"unit": "id", "n_records": 90, "n_rows": 901}}, "votes", "a person has 10 rows on average"),
        ({"data": {"evaluation": "rows.csv"}}, "direct", "a record is one row"),  # no number to plan with
    ],
)
def test_public_facts_choose_the_method(sections, by, why):
    chosen = settings_from(changed(**sections), folder=Path()).chosen
    assert (chosen, why in chosen.why) == (by, True), chosen


def test_where_rows_are_labelled_a_rehearsal_chooses_and_nothing_is_chosen_before_it(folder):
    evaluated(folder, 99)
    assert read_settings(folder / "quorate.toml").chosen is None
    with pytest.raises(PreconditionFailed, match=r"this run has no method yet: .* Type: quorate run "):
        read_run(folder)
    with pytest.raises(PreconditionFailed, match=r"this run has no method yet: .* Type: quorate run "):
        load_run(folder)
    chosen = settings_to_run(settings_of(folder)).chosen  # too few to rehearse on
    assert (chosen, chosen.why) == ("direct", "where a record is one row it was ahead of votes on most tables measured")


@pytest.mark.heavy
@pytest.mark.usefixtures("brief_rehearsals")
def test_the_first_row_of_a_rehearsal_is_what_runs(folder, cli):
    evaluated(folder, 150)
    first = plan_folder(folder).first
    chosen = settings_to_run(settings_of(folder))
    assert chosen.chosen == first.way
    assert settings_to_run(settings_of(folder)) == chosen
    _, out, err = cli("check", folder)
    assert "on the labelled public rows" in out.words, err
    assert err.startswith(CHOOSES)
    assert CHOOSES not in cli("check", folder, "--json")[2]


def test_the_word_that_init_wrote_before_means_votes():
    assert settings_from(changed(method={"by": "teachers"}), folder=Path()).method.by == "votes"
    with pytest.raises(InvalidParameter, match="votes"):
        settings_from(changed(method={"by": "teacher"}), folder=Path())


@pytest.mark.heavy
def test_a_run_keeps_its_method_whatever_the_rule_says_later(folder, cli):
    assert cli.ok("check", folder).splitlines()[1].startswith("  method     direct, since where a record is one row")
    assert not (folder / CHOICE).exists()  # a check writes nothing
    assert cli.ok("run", folder).startswith("method: direct, since")
    charged, kept = entries(cli, folder), (folder / CHOICE).read_text()
    votes_now = {"data": {"unit": "ward", "n_records": 300}}
    assert settings_from(changed(**votes_now), folder=Path()).chosen == "votes"
    write(folder, run={"memory": 2.0})  # an edit that changes nothing of the run
    assert read_settings(folder / "quorate.toml").chosen == "direct"
    write(folder, **votes_now)
    assert read_settings(folder / "quorate.toml").chosen == "direct"
    write(folder, teachers={"count": 9})  # it names what the run had not
    assert read_settings(folder / "quorate.toml").chosen == "votes"
    write(folder)
    for damage in ("{", None):
        (folder / CHOICE).unlink() if damage is None else (folder / CHOICE).write_text(damage)
        assert cli("run", folder)[0] == 0
        assert entries(cli, folder) == charged
        assert json.loads((folder / CHOICE).read_text())["choice"] == json.loads(kept)["choice"]


@pytest.mark.heavy
def test_a_run_that_was_begun_before_methods_were_chosen_is_one_of_votes(folder, cli):
    write(folder, method={"by": "votes"}, run={"allow_hopeless": True, "n_jobs": 1})
    cli.ok("run", folder)
    assert not (folder / CHOICE).exists()  # it was named
    charged = entries(cli, folder)
    write(folder, run={"allow_hopeless": True, "n_jobs": 1})
    chosen = read_settings(folder / "quorate.toml").chosen
    assert (chosen, chosen.why) == ("votes", "the run was begun so")
    assert cli("run", folder)[0] == 0
    assert cli("status", folder)[0] == 0
    assert entries(cli, folder) == charged


def test_until_something_is_charged_an_edit_asks_for_a_new_choice(folder):
    kept = {"for": "another", "why": "", "choice": {"method": {"by": "direct"}}}
    (folder / CHOICE).write_text(json.dumps(kept))
    write(folder, data={"unit": "ward", "n_records": 300})
    assert read_settings(folder / "quorate.toml").chosen == "votes"


def test_a_choice_of_an_earlier_version_is_read_as_it_was_kept(folder):
    from quorate.folder.choice import digest_of

    write(folder, method={"by": "auto"}, teachers={"model": "forest"})
    document = tomllib.loads((folder / "quorate.toml").read_text())
    choice = {"method": {"by": "votes"}, "teachers": {"count": 7}, "mechanism": {"name": "NoisyCounts", "queries": 40}}
    (folder / CHOICE).write_text(json.dumps({"for": digest_of(document), "choice": choice}))
    settings = read_settings(folder / "quorate.toml")
    assert (settings.teachers.count, settings.teachers.model, settings.mechanism.queries) == (7, "forest", 40)
    assert settings.choice.in_words.endswith("7 teachers by NoisyCounts on 40 queries")
