"""``quorate demo``, once, for real: Adult, 32,561 private rows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from quorate.cli import demo as demo_module
from quorate.data import load_adult
from quorate.data.declared_schema import Schema
from quorate.folder import demo as inputs_module
from quorate.folder import methods
from quorate.folder.settings import read_settings

FIELDS = {
    "accuracy", "balanced_accuracy", "non_private_accuracy", "epsilon", "delta", "n_teachers", "n_answers", "sigma",
    "seconds", "report", "direct_accuracy", "commonest_class",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "out"


class Once:
    """What the one real demo made, for the second one, which only prints it."""

    facts: Any = None
    non_private: Any = None


@pytest.mark.heavy
def test_the_demo_without_public_rows_declares_every_value_that_adult_has(tmp_path: Path) -> None:
    inputs_module.write_inputs(tmp_path, public=False)
    settings = read_settings(tmp_path / "quorate.toml")
    assert settings.data.public is None
    assert not (tmp_path / "public.csv").exists()
    table = load_adult().test
    schema = Schema.of(settings.schema)
    assert {*schema.columns, *schema.dropped} == set(table.columns)
    assert not any((held.codes(table[name]) < 0).any() for name, held in schema.columns.items())
    direct = read_settings(inputs_module.write_direct(tmp_path, public=False) / "quorate.toml")
    assert direct.schema == settings.schema
    assert direct.method.feature_map == "auto"


@pytest.mark.heavy
def test_the_demo_learns_adult_with_privacy_and_tells_it_as_json(
    folder: Path, cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute, write_inputs = methods.execute, inputs_module.write_inputs

    def performed(*args: Any, **how: Any) -> Any:
        facts = execute(*args, **how)
        Once.facts = facts if "extra" in how else Once.facts  # of votes, beside what learns without privacy
        return facts

    def written(where: Path) -> Any:
        Once.non_private = write_inputs(where)
        return Once.non_private

    monkeypatch.setattr(methods, "execute", performed)
    monkeypatch.setattr(inputs_module, "write_inputs", written)
    code, out, said = cli("demo", "--out", folder, "--json")
    assert code == 0, said
    told = json.loads(out)
    assert told.keys() == FIELDS
    assert told["accuracy"] >= 0.815
    assert told["balanced_accuracy"] > 0.65
    assert told["direct_accuracy"] >= 0.83
    assert 0.74 < told["commonest_class"] < 0.78
    assert 0.84 < told["non_private_accuracy"] < 0.87
    assert told["epsilon"] == 1.0  # as it is printed
    assert told["delta"] <= 1e-5
    assert 7_000 < told["n_answers"] <= 8_140
    assert told["n_teachers"] >= 100
    assert told["sigma"] > 0
    assert Path(told["report"]).is_file()
    sizes = [
        len((folder / name).read_text().splitlines()) - 1 for name in ("private.csv", "public.csv", "evaluation.csv")
    ]
    assert sizes == [32_561, 8_140, 8_141]


@pytest.mark.heavy
def test_the_demo_shows_everything_that_was_promised_about_it(
    folder: Path, tmp_path: Path, cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words of the demo above: its figures are taken as they are, and not computed again."""

    def copied(where: Path) -> Any:
        where.mkdir()
        for name in ("private.csv", "public.csv", "evaluation.csv", "quorate.toml"):
            shutil.copy(folder / name, where / name)
        return Once.non_private

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(methods, "execute", lambda *args, **how: Once.facts)
    monkeypatch.setattr(inputs_module, "write_inputs", copied)
    code, out, _ = cli("demo")
    facts = Once.facts
    assert code == 0
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


def test_a_second_demo_takes_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for expected in ("quorate-demo", "quorate-demo-2", "quorate-demo-3"):
        assert demo_module.new_folder() == Path(expected)
        Path(expected).mkdir()


@pytest.mark.heavy
def test_a_folder_that_holds_a_run_is_not_used_again(folder: Path, cli: Any) -> None:
    code, _, said = cli("demo", "--out", folder)
    assert code == 4
    assert "holds a run already; choose a new folder with --out" in said
