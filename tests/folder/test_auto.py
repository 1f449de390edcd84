"""``[method] by = "auto"``: the planner's first row is what runs, every later command knows it, an edit asks anew."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.folder.conftest import toml, visits

from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.folder.batch import load_run
from quorate.folder.choice import CHOICE, choice_in_words, keep_choice
from quorate.folder.methods import read_run
from quorate.folder.planned import TAKES_A_WHILE, plan_folder, settings_to_run
from quorate.folder.settings import read_settings
from quorate.folder.template import Answers, filled

SETTINGS: dict[str, dict[str, Any]] = {
    "data": {
        "private": "private.csv", "public": "public.csv", "label": "ill", "classes": ["no", "yes"], "n_records": 1_500,
    },
    "budget": {"epsilon": 2.0, "delta": 1e-5},
    "method": {"by": "auto"},
    "run": {"unsafe_noise_seed": 1, "n_jobs": 1},
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    X, y = visits(1_500, 0)
    X.with_columns(pl.Series("ill", y)).write_csv(tmp_path / "private.csv")
    visits(120, 1)[0].write_csv(tmp_path / "public.csv")
    write(tmp_path)
    return tmp_path


def write(folder: Path, **sections: dict[str, Any]) -> None:
    (folder / "quorate.toml").write_text(toml({**SETTINGS, **sections}))


@pytest.mark.heavy
def test_the_first_row_is_what_runs_and_later_commands_know_it(folder: Path, cli: Any) -> None:
    first = plan_folder(folder).first
    assert first.way == "direct"
    assert json.loads(cli("check", folder, "--json")[1])["method"] == "direct"
    assert cli("check", folder)[1].startswith(
        '[method] by = "auto" chose the direct method, the first row of quorate plan'
    )
    assert not (folder / CHOICE).exists()  # a check writes nothing
    code, told, error = cli("run", folder)
    assert code == 0, error
    assert "rounds" in told
    assert (folder / CHOICE).exists()
    assert cli("status", folder)[0] == 0
    assert read_settings(folder / "quorate.toml").method.by == "direct"


@pytest.mark.heavy
def test_a_choice_that_was_lost_after_the_charge_is_made_again_and_charges_nothing(folder: Path, cli: Any) -> None:
    assert cli("run", folder)[0] == 0
    kept, charged = (folder / CHOICE).read_text(), json.loads(cli("ledger", "show", folder, "--json")[1])["entries"]
    (folder / CHOICE).unlink()
    assert cli("run", folder)[0] == 0
    assert (folder / CHOICE).read_text() == kept
    assert json.loads(cli("ledger", "show", folder, "--json")[1])["entries"] == charged


@pytest.mark.heavy
def test_what_takes_a_while_is_said_before_it_where_something_is_rehearsed(folder: Path, cli: Any) -> None:
    assert TAKES_A_WHILE not in cli("check", folder)[2]
    X, y = visits(200, 2)
    X.with_columns(pl.Series("ill", y)).write_csv(folder / "evaluation.csv")
    write(folder, data={**SETTINGS["data"], "evaluation": "evaluation.csv"})
    assert cli("check", folder)[2].startswith(TAKES_A_WHILE)
    assert TAKES_A_WHILE not in cli("check", folder, "--json")[2]


@pytest.mark.heavy
def test_where_answers_are_kept_back_teachers_vote(folder: Path) -> None:
    write(folder, mechanism={"online_answers": 20})
    settings = settings_to_run(folder, keep=True)
    first = plan_folder(folder).first
    assert settings.method.by == "votes"
    assert (settings.teachers.count, settings.mechanism.name) == (first.n_teachers, "NoisyCounts")
    assert settings.mechanism.online_answers == 20
    assert load_run(folder).task.recipe.mechanism == first.mechanism


@pytest.mark.heavy
def test_an_edit_of_the_settings_asks_for_a_new_choice(folder: Path) -> None:
    settings_to_run(folder, keep=True)
    write(folder, budget={"epsilon": 1.0, "delta": 1e-5})
    assert read_settings(folder / "quorate.toml").method.by == "auto"
    with pytest.raises(PreconditionFailed, match="has chosen nothing yet"):
        read_run(folder)
    with pytest.raises(PreconditionFailed, match="has chosen nothing yet"):
        load_run(folder)


@pytest.mark.heavy
def test_a_choice_that_is_damaged_is_none(folder: Path) -> None:
    settings_to_run(folder, keep=True)
    (folder / CHOICE).write_text("{")
    assert read_settings(folder / "quorate.toml").method.by == "auto"


@pytest.mark.parametrize(
    ("section", "key"),
    [("teachers", {"count": 20}), ("mechanism", {"name": "NoisyCounts"}), ("mechanism", {"queries": 9})],
)
def test_what_the_planner_chooses_is_refused_beside_it(folder: Path, section: str, key: dict[str, Any]) -> None:
    write(folder, **{section: key})
    with pytest.raises(InvalidParameter, match="leaves to the planner"):
        read_settings(folder / "quorate.toml")


def test_all_that_has_to_go_is_named_at_once(folder: Path) -> None:
    write(folder, teachers={"count": 20}, mechanism={"name": "NoisyCounts", "queries": "all"})
    told = r"^\[teachers\] count, \[mechanism\] name and \[mechanism\] queries are what"
    with pytest.raises(InvalidParameter, match=told):
        read_settings(folder / "quorate.toml")


@pytest.mark.heavy
def test_what_init_writes_is_taken_as_it_is(folder: Path, cli: Any) -> None:
    """Each section that `init` writes leaves the choice open, and what the method that is chosen has not is told."""
    text = filled(Answers(
        private="private.csv", public="public.csv", label="ill", classes=("no", "yes"), n_records=1_500, epsilon=2.0,
        delta=1e-5,
    )).replace('by = "votes"', 'by = "auto"')  # fmt: skip
    (folder / "quorate.toml").write_text(text, encoding="utf-8")
    code, out, err = cli("check", folder)
    assert code == 0, err
    assert "a linear model in" in out
    assert settings_to_run(folder, keep=True).method.by == "direct"
    told = choice_in_words(folder)
    assert told is not None
    assert told.endswith("; [teachers], [mechanism] and [student] are for teachers, and not used")


@pytest.mark.heavy
def test_where_nothing_can_answer_nothing_is_chosen(folder: Path) -> None:
    hopeless = {**SETTINGS["data"], "n_records": 3}
    write(folder, data=hopeless, mechanism={"online_answers": 5}, budget={"epsilon": 0.01, "delta": 1e-9})
    with pytest.raises(InvalidParameter, match="found nothing that can answer"):
        settings_to_run(folder, keep=False)


def test_the_choice_is_told_in_words(tmp_path: Path) -> None:
    settings = tmp_path / "quorate.toml"
    settings.write_text('[method]\nby = "auto"\n')
    document = tomllib.loads(settings.read_text())
    assert choice_in_words(tmp_path) is None
    keep_choice(document, {"method": {"by": "direct"}}, tmp_path)
    assert choice_in_words(tmp_path) == '[method] by = "auto" chose the direct method, the first row of quorate plan'
    votes = {"teachers": {"count": 1_200}, "mechanism": {"name": "NoisyCounts", "queries": 40}}
    keep_choice(document, {"method": {"by": "votes"}, **votes}, tmp_path)
    said = choice_in_words(tmp_path)
    assert said is not None
    assert "chose votes of 1,200 teachers by NoisyCounts on 40 queries" in said
    settings.write_text('[method]\nby = "votes"\n')
    assert choice_in_words(tmp_path) is None


def test_the_word_that_init_wrote_before_means_votes(folder: Path) -> None:
    write(folder, method={"by": "teachers"})
    assert read_settings(folder / "quorate.toml").method.by == "votes"
    write(folder, method={"by": "teacher"})
    with pytest.raises(InvalidParameter, match="votes"):
        read_settings(folder / "quorate.toml")
