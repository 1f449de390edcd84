"""``quorate votes``: releases charge once, an analysis tells its owner alone, and no vote is ever printed."""

import json
import stat
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.folder.conftest import charges

from quorate.audit import Forbidden, Surfaces, find_leaks
from quorate.cli import main
from quorate.folder.external_votes import data_dependent_epsilon
from quorate.folder.votes_file import VotesFile
from quorate.mechanisms import ConfidentNoisyMax
from quorate.types import Secret

RNG = np.random.default_rng(31)
NAMES = ["ant", "bee", "cow", "dog"]
COUNTS = RNG.multinomial(250, RNG.dirichlet([0.2] * 4, size=120)).astype(np.int64)
CLASSES = ("--classes", ",".join(NAMES))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "votes.csv"
    pl.DataFrame(COUNTS, schema=NAMES).write_csv(path)
    return path


def release(cli, file, out, *more):
    return cli.json("votes", "release", file, *CLASSES, "--epsilon", 2, "--delta", 1e-5, "--out", out, *more)


def test_a_release_says_what_the_owner_states(cli, file, tmp_path):
    how = ("--epsilon", 2, "--delta", 1e-5, "--out", tmp_path / "out", "--unit", "patient")
    out = cli.ok("votes", "release", file, *CLASSES, *how)
    assert "the owner's statement and was not checked" in out
    assert "patient" in out
    guarantee = json.loads((tmp_path / "out" / "public" / "guarantee.json").read_text())
    assert "as the owner states" in guarantee["neighbours"]


@pytest.mark.heavy
def test_the_data_dependent_figure_is_released_for_its_own_price(cli, file, tmp_path):
    shown = release(cli, file, tmp_path / "out", "--data-dependent")
    assert shown["sanitised_data_dependent_epsilon"] is not None
    assert shown["epsilon"] <= 2.0
    assert (shown["asked"], shown["answered"], shown["n_teachers"]) == (120, 120, 250)
    assert release(cli, file, tmp_path / "out", "--data-dependent") == shown
    plain = release(cli, file, tmp_path / "plain")
    assert plain["sanitised_data_dependent_epsilon"] is None


def test_a_budget_that_is_too_small_is_refused_with_its_own_exit_code(cli, file, tmp_path):
    out = tmp_path / "out"
    typed = ("votes", "release", file, *CLASSES, "--delta", 1e-5, "--out", out)
    said = cli.refused(2, *typed, "--epsilon", 0.3, "--data-dependent")
    assert "leaves nothing for labels" in said.words
    assert not (out / "ledger.db").exists()
    cli.refused(3, *typed, "--epsilon", 0.5, "--set", "sigma=10")
    assert not (out / "public" / "labels.csv").exists()


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--set", "sigma"), "--set must be FIELD=VALUE"),
        (("--set", "sgima=4"), 'did you mean "sigma"?'),
        (("--set", "form=binary"), "no field 'form'"),
        (("--mechanism", "GaussianNoisyMx"), 'did you mean "GaussianNoisyMax"?'),
        (("--mechanism", "ConfidentNoisyMax"), "needs threshold"),
        (("--n-teachers", "0"), "--n-teachers must be a whole number >= 1"),
        (("--kind", "votes"), "votes"),
    ],
)
@pytest.mark.parametrize("verb", ["release", "analyse"])
def test_a_wrong_argument_is_one_line_and_nothing_is_written(cli, file, tmp_path, verb, more, said):
    budget = ("--epsilon", 2) if verb == "release" else ()
    wrong = cli.refused(2, "votes", verb, file, *CLASSES, *budget, "--delta", 1e-5, "--out", tmp_path / "out", *more)
    assert said in wrong.words
    assert "Traceback" not in wrong
    assert not (tmp_path / "out").exists()


def forbidden(mechanism):
    secret = data_dependent_epsilon(VotesFile(Secret(COUNTS), tuple(NAMES), 250), mechanism, 1e-5).reveal()
    margins = np.sort(COUNTS, axis=1)[:, -1] - np.sort(COUNTS, axis=1)[:, -2]
    return [
        Forbidden("votes", arrays=[COUNTS, *(COUNTS[:, c] for c in range(4))]),
        Forbidden("margins", arrays=[margins, COUNTS.max(axis=1)]),
        Forbidden("data-dependent figures", numbers=[secret["epsilon"], secret["epsilon_integer_orders"]]),
    ]


MECHANISM = ConfidentNoisyMax(threshold=150.0, sigma_threshold=90.0, sigma_answer=41.0)
FIELDS = ("--mechanism", "ConfidentNoisyMax", "--set", "threshold=150", "--set", "sigma_threshold=90",
          "--set", "sigma_answer=41")  # fmt: skip


def walk(file, root):
    """Analyse and release, in words and as JSON, then do both wrongly; record all that can be seen."""
    common = (*CLASSES, "--delta", "1e-5", "--out", str(root / "out"), *FIELDS)
    wrong = root / "wrong.csv"
    wrong.write_text(file.read_text().replace(",0\n", ",0.5\n"))
    headless = root / "headless.csv"
    headless.write_text(file.read_text().split("\n", 1)[1])
    with Surfaces() as seen:
        for path in (file, wrong, headless, root / "nowhere.csv"):
            for verb in (
                ("analyse",),
                ("release", "--epsilon", "6"),
                ("release", "--epsilon", "6", "--data-dependent"),
            ):
                for form in ((), ("--json",)):
                    with pytest.raises(SystemExit):
                        main(["votes", verb[0], str(path), *common, *verb[1:], *form])
    for place in ("public", "ledger.db"):
        seen.add_files(root / "out" / place)
    return seen


@pytest.mark.heavy
def test_no_vote_and_no_data_dependent_figure_is_ever_shown(file, tmp_path):
    seen = walk(file, tmp_path)
    assert find_leaks(seen, forbidden(MECHANISM)) == []
    private = tmp_path / "out" / "private"
    assert stat.S_IMODE((private / "analysis.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    # And the same walk finds what the private side holds.
    seen.add_files(private)
    seen.add_files(file)
    found = {leak.fact for leak in find_leaks(seen, forbidden(MECHANISM))}
    assert found >= {"votes", "data-dependent figures"}


@pytest.mark.heavy
def test_an_analysis_says_what_holds_for_any_votes_and_where_the_rest_is(cli, file, tmp_path):
    out = tmp_path / "out"
    shown = cli.json("votes", "analyse", file, *CLASSES, "--delta", 1e-5, "--out", out, *FIELDS)
    assert set(shown) == {"queries", "n_teachers", "mechanism", "delta", "data_independent_epsilon", "analysis"}
    secret = json.loads(Path(shown["analysis"]).read_text())
    assert "not for release" in secret["note"]
    assert secret["epsilon"] < shown["data_independent_epsilon"]
    assert not (out / "ledger.db").exists()
    assert not any((out / "public").iterdir())


@pytest.mark.heavy
def test_a_folder_of_votes_is_opened_to_a_larger_budget(cli, file, tmp_path):
    out, why = tmp_path / "out", "approved by the board"
    release(cli, file, out)
    said = cli.refused(4, "ledger", "open", out, "--raise-budget", why)
    assert "say it with --epsilon and --delta" in said.words
    assert "quorate init" not in said
    again = ("votes", "release", file, *CLASSES, "--epsilon", 2, "--delta", 1e-5, "--out", out, "--set", "sigma=400")
    assert cli(*again)[0] == 3  # nothing is left
    told = cli.json("ledger", "open", out, "--raise-budget", why, "--epsilon", 4, "--delta", 2e-5)
    assert told["budget"] == {"epsilon": 4.0, "delta": 2e-5, "composition": "sum"}
    cli.ok(*again)
    assert charges(out) == 2


@pytest.mark.heavy
def test_changed_votes_are_the_same_release_once_their_owner_says_so(cli, file, tmp_path):
    out, why = tmp_path / "out", "a file was corrected"
    release(cli, file, out, "--set", "sigma=400")
    raised = ("--epsilon", 2, "--delta", 2e-5)
    assert cli("ledger", "open", out, "--raise-budget", "for a corrected file", *raised)[0] == 0
    changed = tmp_path / "changed.csv"
    pl.DataFrame(COUNTS[:, [1, 0, 2, 3]], schema=NAMES).write_csv(changed)
    run = ("votes", "release", changed, *CLASSES, "--epsilon", 2, "--delta", 1e-6, "--out", out, "--set", "sigma=400")
    assert cli(*run)[0] == 4
    said = cli.refused(4, "ledger", "open", out, "--same-release", why)
    assert "name the changed file with --votes FILE --classes no,yes" in said.words
    assert cli("ledger", "open", out, "--same-release", why, "--votes", changed, *CLASSES)[0] == 0
    cli.ok(*run)
    assert charges(out) == 2


def test_what_is_for_votes_made_elsewhere_is_refused_for_a_run(cli, file, tmp_path):
    out = tmp_path / "out"
    release(cli, file, out)
    (out / "quorate.toml").write_text("[data]\n", encoding="utf-8")
    for options, said in (
        (("--raise-budget", "why", "--epsilon", 4), "edit [budget] there"),
        (("--same-release", "why", "--votes", file, *CLASSES), "are for votes made elsewhere"),
    ):
        assert said in cli.refused(2, "ledger", "open", out, *options).words
