"""``quorate demo``: the whole journey on real data, as a run in a folder that can be looked at afterwards."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quorate.arguments import for_shell
from quorate.cli.options import as_json, print_json
from quorate.cli.stopping import charged_as
from quorate.errors import PreconditionFailed
from quorate.run.progress import progress

if TYPE_CHECKING:
    from quorate.report import Score


SETTINGS = """\
# {head}
[data]
private = "{at}private.csv"
public = "{at}public.csv"
evaluation = "{at}evaluation.csv"
label = "income"
classes = ["<=50K", ">50K"]
n_records = 32561

[method]
{method}

[budget]
epsilon = 1.0
delta = 1e-5
"""
OF_VOTES = SETTINGS.format(
    head="The demo's run: income above 50K in Adult (UCI, CC BY 4.0). The rows are public; they play the private ones "
    "here.",
    at="",
    method='by = "votes"',
)
DIRECT = SETTINGS.format(
    head="The demo's rows once more, by the direct method. Its ledger is its own, so that the two can be compared at "
    "the same ε:\n# on private data both runs would be charged to one ledger, and cost twice that.",
    at="../",
    method='by = "direct"\nfeature_map = "linear"',
)


#: What UCI's description of Adult says of its columns: a public statement, and nothing was read off the rows.
SCHEMA = """
[schema]                       # in place of public rows: what the published description says of each column
age = [0, 120]
workclass = ["Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov", "Without-pay",
             "Never-worked"]
fnlwgt = "drop"
education = "drop"             # education-num says the same as a number
education-num = [1, 16]
marital-status = ["Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed", "Married-spouse-absent",
                  "Married-AF-spouse"]
occupation = ["Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial", "Prof-specialty",
              "Handlers-cleaners", "Machine-op-inspct", "Adm-clerical", "Farming-fishing", "Transport-moving",
              "Priv-house-serv", "Protective-serv", "Armed-Forces"]
relationship = ["Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried"]
race = ["White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"]
sex = ["Female", "Male"]
capital-gain = [0, 100000]
capital-loss = [0, 10000]
hours-per-week = [0, 168]
native-country = "drop"
"""


@click.command(name="demo")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="A new folder. [default: quorate-demo, or -2, …]"
)
@click.option(
    "--no-public", is_flag=True, help="Without public rows: a schema says what the columns hold, and rows are drawn "
    "from noisy counts, within the same budget."
)  # fmt: skip
@as_json
def command(out: Path | None, no_public: bool, as_json: bool) -> None:
    """Show the whole journey on real data (Adult, shipped with the package), in about ten seconds.

    32,561 rows play the private data, half of the 16,281 test rows the public pool, the other half is held out.
    """
    from quorate.accounting.figures import as_printed
    from quorate.deferred import load_ahead_of_skops

    load_ahead_of_skops()

    from quorate.folder.batch import load_run
    from quorate.folder.methods import execute, read_run
    from quorate.folder.prepared import charged_so_far, outputs
    from quorate.mechanisms.schedule import scale_of
    from quorate.report import Utility, render_text

    begun = time.monotonic()
    folder = new_folder() if out is None else out
    if (folder / "quorate.toml").exists():
        raise PreconditionFailed(f"{folder} holds a run already; choose a new folder with --out")
    if not as_json:
        public = "no public ones" if no_public else "8,140 public ones"
        click.echo(f"Adult: will somebody earn more than 50K? 32,561 private rows, {public}, 8,141 held out.")
    how = {"public": False} if no_public else {}
    batch = None
    with charged_as(lambda: charged_so_far(folder, batch), stored=lambda: _stored_and_next(folder)):
        non_private = write_inputs(folder, **how)
        batch = load_run(folder)
        with progress(quiet=as_json) as watch:
            facts = execute(batch, command="quorate demo", watch=watch, extra=Utility(non_private=non_private))
            direct = execute(read_run(write_direct(folder, **how)), command="quorate demo", watch=watch)
    by_votes, by_rounds = facts.utility.student, direct.utility.student
    assert by_votes is not None  # noqa: S101 - the demo has an evaluation table
    assert by_rounds is not None  # noqa: S101
    seconds = time.monotonic() - begun
    places = outputs(batch.folder, next_command=f"quorate ledger show {for_shell(folder)}")
    if as_json:
        print_json(
            {
                "accuracy": by_votes.accuracy,
                "balanced_accuracy": by_votes.balanced_accuracy,
                "direct_accuracy": by_rounds.accuracy,
                "commonest_class": by_votes.commonest,
                "non_private_accuracy": non_private.accuracy,
                "epsilon": as_printed(facts.guarantee.epsilon),
                "delta": as_printed(facts.guarantee.delta),
                "n_teachers": facts.setup.n_teachers,
                "n_answers": facts.answers.answered,
                "sigma": scale_of(batch.task.recipe.mechanism),
                "seconds": seconds,
                "report": places.report,
            }
        )
        return
    click.echo(render_text(facts, outputs=places))
    click.echo(_ending(by_votes, by_rounds, folder, seconds=seconds, plans=not no_public))


def _ending(by_votes: Score, by_rounds: Score, folder: Path, *, seconds: float, plans: bool) -> str:
    first = "quorate plan my-run, quorate check my-run" if plans else "quorate check my-run --look"
    return (
        f"At the same ε: votes {100 * by_votes.accuracy:.1f} %, the direct method {100 * by_rounds.accuracy:.1f} %\n"
        f"(a linear model of the private rows themselves, in {folder}/direct);\n"
        f"always saying the commonest class, {100 * (by_votes.commonest or 0):.1f} %.\n"
        f"That took {seconds:.0f} s. With data of your own: quorate init my-run,\n"
        f"edit my-run/quorate.toml, {first},\n"
        "quorate run my-run."
    )


def _stored_and_next(folder: Path) -> str:
    """Say what a stop of the demo has stored, and what goes on with its folder: the demo takes a new one."""
    from quorate.folder.status import stored_so_far

    begun = [run for run in (folder / "direct", folder) if (run / "quorate.toml").exists()]
    if not begun:
        return "nothing is stored yet; type the same command again"
    command = f"quorate run {for_shell(begun[0])}"
    stored = stored_so_far(begun[0])
    return f"nothing is stored yet; {command} begins anew" if stored is None else f"{stored}, and {command} goes on"


def new_folder() -> Path:
    """``quorate-demo``, or the first of ``quorate-demo-2``, ``-3``, … that does not exist."""
    folder, number = Path("quorate-demo"), 1
    while folder.exists():
        number += 1
        folder = Path(f"quorate-demo-{number}")
    return folder


def write_direct(folder: Path, *, public: bool = True) -> Path:
    """Write the settings of a direct run on the demo's tables, in a folder of its own; return that."""
    direct = folder / "direct"
    direct.mkdir()
    (direct / "quorate.toml").write_text(DIRECT if public else _without_public(DIRECT), encoding="utf-8")
    return direct


def _without_public(settings: str) -> str:
    """Return settings with a schema in the place of the public rows, and the default feature map."""
    lines = (line for line in settings.splitlines() if not line.startswith(("public", "feature_map")))
    return "\n".join(lines) + "\n" + SCHEMA


def write_inputs(folder: Path, *, public: bool = True) -> Score:
    """Write the demo's tables and settings; return the score of the same student without privacy."""
    import numpy as np
    import polars as pl

    from quorate.data import load_adult, public_encoder
    from quorate.run.scores import score_predictions
    from quorate.voting.models import built_in

    adult = load_adult()
    shuffled = np.random.default_rng().permutation(adult.test.height)
    half = adult.test.height // 2
    pool, held_out = shuffled[:half], shuffled[half:]
    folder.mkdir(parents=True, exist_ok=True)
    labelled = adult.test.with_columns(pl.Series("income", adult.test_labels))
    adult.train.with_columns(pl.Series("income", adult.train_labels)).write_csv(folder / "private.csv")
    if public:
        adult.test[pool].write_csv(folder / "public.csv")
    labelled[held_out].write_csv(folder / "evaluation.csv")
    (folder / "quorate.toml").write_text(OF_VOTES if public else _without_public(OF_VOTES), encoding="utf-8")

    encoder = public_encoder(adult.test[pool])
    model = built_in("logistic", "student").fit(encoder.transform(adult.train), adult.train_labels)
    predicted = model.predict(encoder.transform(adult.test[held_out]))
    return score_predictions(predicted, np.asarray(adult.test_labels)[held_out], list(adult.classes))
