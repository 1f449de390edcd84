"""Every hopeless set-up of the fixed list is refused or cautioned by a command before payment, and no sound one is.

The lists are those of :mod:`tests.run.test_hopeless`, where estimators meet them. Private tables are as small as the
number of teachers lets them be; what is declared of them is what the list says.
"""

import numpy as np
import polars as pl
import pytest
from tests.folder.conftest import DIRECT, charges, edit, toml
from tests.run.test_hopeless import HOPELESS, MUSHROOM, SOUND

from quorate.run.public_facts import PublicFacts
from quorate.voting.recipe import recipe

pytestmark = pytest.mark.mostly_heavy


def folder(root, facts, wish):
    """Write the folder of a set-up; numbers, as many columns as it says."""
    known = MUSHROOM | facts
    most = (recipe(PublicFacts(**known, tiny=tiny)).n_teachers for tiny in (False, True))
    n = max(wish.get("n_teachers") or max(most), 20)
    rng, columns = np.random.default_rng(0), [f"x{at}" for at in range(known["width"])]
    classes = [f"class {c}" for c in range(known["n_classes"])]
    person = known.get("unit") == "person"
    root.mkdir()
    for name, rows in (("private", n), ("public", known["n_public"])):
        table = pl.DataFrame(rng.normal(size=(rows, len(columns))).round(3), schema=columns)
        if name == "private":
            table = table.with_columns(y=pl.Series([classes[row % len(classes)] for row in range(n)]))
            table = table.with_columns(person=pl.Series([f"P{row}" for row in range(n)])) if person else table
        table.write_csv(root / f"{name}.csv")
    mechanism = {"name": wish["mechanism"].__name__} if "mechanism" in wish else {}
    settings = {
        "data": {
            "private": "private.csv", "public": "public.csv", "label": "y", "n_records": known["n_records"],
            "classes": classes,
        },
        "method": {"by": "votes"},
        "budget": {"epsilon": known["epsilon"], "delta": known["delta"]},
        "teachers": {"count": wish.get("n_teachers", "auto"), "model": wish.get("model", "logistic")},
        "mechanism": {**mechanism, **wish.get("fields", {}), "queries": wish.get("n_queries", "auto"),
                      "online_answers": known.get("online_answers", 0)},
    }  # fmt: skip
    if person:
        settings["data"] |= {"unit": "person"}
    if "n_rows" in known:
        settings["data"] |= {"n_rows": known["n_rows"]}
    (root / "quorate.toml").write_text(toml(settings), encoding="utf-8")
    return root


SLOW = {7, 13}  # a calibration at ε = 0.001; a table of 1,000 columns


def listed(sets, *, short=1):
    """The set-ups of a list: one in `short`, and no slow one beside others; all of them by hand."""
    return [
        pytest.param(*each, id=str(at), marks=[pytest.mark.faults] if at % short or (at in SLOW and short > 1) else [])
        for at, each in enumerate(sets)
    ]


@pytest.mark.parametrize(("facts", "wish"), listed(HOPELESS, short=4))  # the recipe is asked about each, in its room
def test_a_hopeless_set_up_is_refused_or_cautioned_before_a_charge(facts, wish, tmp_path, cli):
    root = folder(tmp_path / "run", facts, wish)
    code, out, err = cli("check", root)
    assert (code == 2 and "nothing was spent: " in err) or (code == 0 and "Everything fits, with caution." in out)
    assert not (root / "ledger.db").exists()


@pytest.mark.parametrize(("facts", "wish"), listed(SOUND, short=8))
def test_a_sound_set_up_gets_no_caution(facts, wish, tmp_path, cli):
    out = cli.ok("check", folder(tmp_path / "run", facts, wish))
    assert out.startswith("Everything fits. A run would\n")
    assert "caution" not in out


@pytest.mark.parametrize("by", ["votes", "direct"])
def test_a_folder_with_other_private_rows_is_told_the_same_byte_for_byte(by, make_run, cli):
    """Values, labels and, where it is declared, the number of rows: what programs and the report get of a check."""
    changes = {"method.by": by, "data.n_records": 400, "budget.epsilon": 12.0, "budget.delta": 0.01}
    if by == "direct":
        changes |= DIRECT
    root = make_run(**changes)
    before = cli("check", root, "--json")
    assert "epsilon-promises-little" in before[1]
    lines = (root / "private.csv").read_text().splitlines()
    head, cells = lines[0], [line.split(",") for line in lines[1:-1]]  # one row less
    other = [["44", "31.5", "north", "no"] for _ in cells]
    assert len(other[0]) == len(cells[0])
    (root / "private.csv").write_text("\n".join([head, *(",".join(row) for row in other)]) + "\n")
    assert cli("check", root, "--json") == before


DROWNED = {
    "budget.epsilon": 0.02, "teachers.count": 12, "mechanism.name": "GaussianNoisyMax", "run.allow_hopeless": False
}  # fmt: skip


def test_check_and_run_refuse_it_and_settings_let_it_run(make_run, cli):
    root = make_run(**DROWNED)
    for command in ("check", "run"):
        told = cli.refused(2, command, root)
        assert "nothing was spent: the noise of GaussianNoisyMax" in told
        assert "[run] allow_hopeless = true" in told
    assert not (root / "ledger.db").exists()
    edit(root, "allow_hopeless = false", "allow_hopeless = true")
    assert cli("run", root)[0] == 0


def test_a_run_that_was_charged_goes_on_whatever_the_settings_say_now(finished_run, cli):
    """As a run of an earlier version may: what is paid for is not refused."""
    root = finished_run(**DROWNED | {"run.allow_hopeless": True})
    edit(root, "allow_hopeless = true\n", "")
    assert cli("run", root)[0] == 0
    assert charges(root) == 1


DECLARED = {"data.n_records": 400}
REFUSED = [
    ({"mechanism.queries": 9_000}, "[mechanism] queries = 9000 but the pool has 150 distinct points"),
    (
        {"teachers.count": 500, **DECLARED},
        "[teachers] count must be at most 400, the number of records, got 500; try [teachers] count = ",
    ),
    ({"teachers.count": 500, "data.n_records": 600}, 'and take [teachers] count = "auto"'),
    ({"mechanism.queries": 900, "mechanism.strategy": "margin"}, "Margin asks 900 queries ([mechanism] queries), but"),
    (
        {"mechanism.name": "StableSparseVector", "mechanism.cutoff": 200, "mechanism.queries": 100},
        "[mechanism] cutoff must be at most the number of queries, which is 100, got 200; no more can be declined",
    ),
    (
        {"teachers.prior_matching": True, "data.classes": ["no", "yes", "perhaps"]},
        "[teachers] prior_matching is for two classes, and there are 3; leave it out",
    ),
    ({**DIRECT, "method.feature_map": "patches"}, '[method] feature_map = "patches" takes square grey images'),
    ({**DIRECT, "budget.epsilon": 9_000.0, "run.epsilon": 8_000.0}, "[run] epsilon = 8000.0 is too large for"),
    ({"budget.epsilon": 0.001, "run.allow_hopeless": None, **DECLARED}, "same: [run] allow_hopeless = true"),
]


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(("changes", "told"), REFUSED)
def test_a_refusal_in_a_folder_names_keys_and_no_argument(make_run, cli, changes, told):
    code, _, err = cli("check", make_run(**changes))
    assert code in (2, 4)
    assert told in err
    assert "\n" not in err.strip().partition("\n(QUO-")[0]
    assert not [name for name in ("queries=", "n_teachers", "n_records=", "allow_hopeless=") if name in err]


def test_a_rehearsal_without_a_number_of_records_names_the_key(make_run, cli):
    err = cli.refused(2, "check", make_run(**{"data.evaluation": "evaluation.csv"}), "--rehearse")
    assert "quorate: rehearsing needs the number of records; declare [data] n_records\n" in err
