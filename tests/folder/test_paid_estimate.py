"""The one figure of a plan that is paid for: refused without a price, charged once, and told with its noise."""

import json

import numpy as np
import polars as pl
import pytest
from tests.shell import shell

from quorate.accounting import PureDP
from quorate.errors import InvalidParameter
from quorate.folder.folder import RunFolder
from quorate.folder.paid_estimate import HELD_OUT, estimate_for_plan
from quorate.folder.planned import plan_folder
from quorate.ledger import Ledger
from quorate.mechanisms import NoisySum
from quorate.release.charge import LABEL

pytestmark = pytest.mark.mostly_heavy

TOML = """\
[data]
private = "private.csv"
public = "public.csv"
label = "ill"
classes = ["no", "yes"]
n_records = 1200
[budget]
epsilon = 3.0
delta = 1e-5
[run]
n_jobs = 1
epsilon = 1.0
[teachers]
count = 40
"""


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1300, 2))
    ill = np.where(rng.random(1300) < 0.1, X[:, 0] <= 0, X[:, 0] > 0)  # one label in ten is wrong
    rows = pl.DataFrame({"age": X[:, 0], "marker": X[:, 1], "ill": np.where(ill, "yes", "no")})
    rows[:1200].write_csv(tmp_path / "private.csv")
    rows[1200:].drop("ill").write_csv(tmp_path / "public.csv")
    (tmp_path / "quorate.toml").write_text(TOML)
    return tmp_path


def entries(folder):
    with Ledger(folder / "ledger.db") as ledger:
        return [each.event for each in ledger.reservations()]


def test_it_is_charged_once_and_read_from_the_ledger_afterwards(folder, cli):
    found = estimate_for_plan(folder, spend=1.5)
    assert entries(folder) == [NoisySum.costing(1.5).event]
    assert found.epsilon == 1.5
    assert found.left == pytest.approx(1.5, abs=1e-9)
    assert found.error < 0.4, "about one in ten, and what so few rows and the noise add"
    assert found.rows_each == pytest.approx((1 - HELD_OUT) * 30)
    assert estimate_for_plan(folder, spend=1.5) == found, "the same question is answered by the ledger"
    (folder / "quorate.toml").write_text(TOML + "[mechanism]\nqueries = 50\n")
    assert estimate_for_plan(folder, spend=1.5) == found, "nor does it matter what the teachers will be asked"
    assert len(entries(folder)) == 1
    stands = cli("status", folder)[1]  # a run that was not begun was not interrupted
    assert stands.splitlines()[0] == f"run        {folder}: not started"
    assert "budget     ε 1.5 of 3 charged, 1.5 left" in stands
    assert "\nestimate   one was released for quorate plan, and charged; the run itself has not begun\n" in stands
    assert f"\nnext       quorate check {folder}\n" in stands
    with RunFolder(folder).open_ledger() as ledger:  # killed right after its charge
        ledger.reserve(PureDP(0.5), delta=0, purposes={LABEL: 3}, key="labels")
    stands = cli("status", folder)[1]
    assert ": interrupted; quorate run " in stands
    assert " goes on\n" in stands
    assert "\nestimate   one was released for quorate plan, and charged\n" in stands


def test_without_a_price_or_room_for_it_nothing_is_read_or_charged(folder):
    direct = TOML.replace("n_jobs = 1\n", "").replace("[teachers]\ncount = 40", '[method]\nby = "direct"')
    for toml, spend, said in (
        (TOML, None, r"--spend 0\.1"),
        (TOML, 2.5, r"leaves less than the estimate's 2\.5"),
        (TOML.replace("epsilon = 1.0\n", ""), 0.5, r"\[run\] epsilon"),
        (TOML.replace("count = 40", "count = 700"), 0.5, "fewer than two"),
        (TOML.replace("n_records = 1200\n", ""), 0.5, r"give \[data\] n_records"),
        (direct, 0.5, "no teachers"),
    ):
        (folder / "quorate.toml").write_text(toml)
        with pytest.raises(InvalidParameter, match=said):
            estimate_for_plan(folder, spend=spend)
    assert not (folder / "ledger.db").exists()


@pytest.mark.usefixtures("brief_rehearsals")
def test_the_command_says_what_was_charged_how_far_its_noise_reaches_and_the_run_goes_on(folder):
    code, _, said = shell("quorate plan . --estimate", folder)
    assert (code, "--spend" in said) == (2, True)
    assert shell("quorate plan . --spend 1", folder)[0] == 2
    code, shown, said = shell("quorate plan . --estimate --spend 1", folder)
    assert code == 0, said
    assert "ε 1 was charged" in " ".join(shown.split())
    told = json.loads(shell("quorate plan . --estimate --spend 1 --json", folder)[1])
    assert told["paid_estimate"]["epsilon"] == 1.0
    expected, paid = told["rows"][0]["expected"], estimate_for_plan(folder, spend=1.0)
    assert expected["basis"] == "paid estimate"
    assert expected["high"] - expected["low"] >= 2 * paid.half_width or 1.0 in (expected["high"], expected["low"])
    assert any("which was charged" in note for note in told["notes"])
    assert shell("quorate run .", folder)[0] == 0
    assert len(entries(folder)) == 2


def test_a_plan_that_would_be_refused_is_refused_before_the_estimate_is_paid(folder):
    (folder / "quorate.toml").write_text(TOML.replace('label = "ill"', 'label = "ill"\nevaluation = "absent.csv"'))
    code, _, said = shell("quorate plan . --estimate --spend 1", folder)
    assert (code != 0, "absent.csv" in said, "nothing was charged" in said) == (True, True, True)
    assert not (folder / "ledger.db").exists()


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("--rehearse no", "--rehearse no does not go with --estimate"),
        ("--rehearse labels", "--rehearse labels does not go with --estimate"),
        ("--model tree", "--model compares teachers"),
        ("--commonest 2", "commonest must be"),
        ("--commonest 0.3", "at least 1/2"),
    ],
)
def test_what_does_not_go_with_an_estimate_is_refused_before_it_is_paid(folder, given, said):
    code, _, refused = shell(f"quorate plan . --estimate --spend 1 {given}", folder)
    assert (code, said in refused) == (2, True)
    assert not (folder / "ledger.db").exists()


def test_no_estimate_is_paid_for_where_there_are_too_few_public_rows_to_rehearse_with_it(folder):
    public = pl.read_csv(folder / "public.csv")
    public[:24].write_csv(folder / "public.csv")
    code, _, said = shell("quorate plan . --estimate --spend 1", folder)
    assert code == 4
    assert "there are 24 different public rows, and a plan by --estimate is rehearsed with rules on them" in said
    assert "nothing was charged" in said
    assert not (folder / "ledger.db").exists()


def test_a_plan_that_fails_after_the_charge_says_that_it_was_charged(folder, cli, monkeypatch):
    def fails(root, *, learning_curve=None, **how):
        if learning_curve is not None:
            raise InvalidParameter("something nobody thought of")
        return plan_folder(root, learning_curve=learning_curve, **how)

    monkeypatch.setattr("quorate.folder.planned.plan_folder", fails)
    said = cli.refused(2, "plan", folder, "--estimate", "--spend", "1")
    assert "the estimate was charged, once" in said
    assert "nothing was charged" not in said
    assert len(entries(folder)) == 1
    assert "nothing more was charged" in cli("plan", folder, "--curve", "20:0.7")[2]


def test_what_fails_after_the_charge_says_that_it_was_charged(folder, monkeypatch):
    def fails(*_args, **_how):
        raise InvalidParameter("a teacher is wrong")

    monkeypatch.setattr("quorate.labelling.estimate_error", fails)
    with pytest.raises(InvalidParameter) as refused:
        estimate_for_plan(folder, spend=1.0)
    assert refused.value.charged.startswith("the estimate was charged, once")
    assert len(entries(folder)) == 1
    monkeypatch.undo()
    assert estimate_for_plan(folder, spend=1.0).left == pytest.approx(2.0, abs=1e-9)


def test_an_estimate_with_seeded_noise_says_that_nothing_is_promised(folder):
    (folder / "quorate.toml").write_text(TOML.replace("[run]\n", "[run]\nunsafe_noise_seed = 1\n"))
    found = estimate_for_plan(folder, spend=1.0)
    assert (found.seeded, found.tree()["seeded"]) == (True, True)
    assert "no guarantee holds; this figure must not be published" in str(found)
