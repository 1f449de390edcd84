"""``quorate demo``: the whole journey on real data, as a run in a folder that can be looked at afterwards."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quorate.cli.options import as_json, print_json
from quorate.cli.progress import progress
from quorate.errors import PreconditionFailed

if TYPE_CHECKING:
    from quorate.report import Score

SETTINGS = """\
# The demo's run: income above 50K in Adult (UCI, CC BY 4.0). The rows are public; they play the private ones here.
[data]
private = "private.csv"
public = "public.csv"
evaluation = "evaluation.csv"
label = "income"
classes = ["<=50K", ">50K"]
n_records = 32561

[budget]
epsilon = 1.0
delta = 1e-5
"""


@click.command(name="demo")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="A new folder. [default: quorate-demo, or -2, …]"
)
@as_json
def command(out: Path | None, as_json: bool) -> None:
    """Show the whole journey on real data (Adult, shipped with the package), in about half a minute.

    32,561 rows play the private data, half of the 16,281 test rows the public pool, the other half is held out.
    """
    from quorate.planning import scale_of
    from quorate.report import Utility, render_text
    from quorate.run.batch import outputs, perform, read_batch

    begun = time.monotonic()
    folder = new_folder() if out is None else out
    if (folder / "quorate.toml").exists():
        raise PreconditionFailed(f"{folder} holds a run already; choose a new folder with --out")
    if not as_json:
        click.echo("Adult: will somebody earn more than 50K? 32,561 private rows, 8,140 public ones, 8,141 held out.")
    non_private = write_inputs(folder)
    batch = read_batch(folder)
    with progress(quiet=as_json) as watch:
        facts = perform(batch, command="quorate demo", watch=watch, extra=Utility(non_private=non_private))
    seconds = time.monotonic() - begun
    shown = outputs(batch.folder, next_command=f"quorate ledger show {folder}")
    if as_json:
        student = facts.utility.student
        assert student is not None  # noqa: S101 - the demo has an evaluation table
        print_json(
            {
                "accuracy": student.accuracy,
                "balanced_accuracy": student.balanced_accuracy,
                "non_private_accuracy": non_private.accuracy,
                "epsilon": facts.guarantee.epsilon,
                "delta": facts.guarantee.delta,
                "n_teachers": facts.setup.n_teachers,
                "n_answers": facts.answers.answered,
                "sigma": scale_of(batch.task.recipe.mechanism),
                "seconds": seconds,
                "report": shown.report,
            }
        )
        return
    click.echo(render_text(facts, outputs=shown))
    click.echo(f"That took {seconds:.0f} s. With data of your own: quorate init my-run,")
    click.echo("edit my-run/quorate.toml, quorate check my-run, quorate run my-run.")


def new_folder() -> Path:
    """``quorate-demo``, or the first of ``quorate-demo-2``, ``-3``, … that does not exist."""
    folder, number = Path("quorate-demo"), 1
    while folder.exists():
        number += 1
        folder = Path(f"quorate-demo-{number}")
    return folder


def write_inputs(folder: Path) -> Score:
    """Write the demo's three tables and its settings; return the score of the same student without privacy."""
    import numpy as np
    import polars as pl

    from quorate.data import load_adult, public_encoder
    from quorate.run.accounts import score_predictions
    from quorate.run.models import built_in

    adult = load_adult()
    shuffled = np.random.default_rng().permutation(adult.test.height)
    half = adult.test.height // 2
    pool, held_out = shuffled[:half], shuffled[half:]
    folder.mkdir(parents=True, exist_ok=True)
    labelled = adult.test.with_columns(pl.Series("income", adult.test_labels))
    adult.train.with_columns(pl.Series("income", adult.train_labels)).write_csv(folder / "private.csv")
    adult.test[pool].write_csv(folder / "public.csv")
    labelled[held_out].write_csv(folder / "evaluation.csv")
    (folder / "quorate.toml").write_text(SETTINGS, encoding="utf-8")

    encoder = public_encoder(adult.test[pool])
    model = built_in("logistic", "student").fit(encoder.transform(adult.train), adult.train_labels)
    predicted = model.predict(encoder.transform(adult.test[held_out]))
    return score_predictions(predicted, np.asarray(adult.test_labels)[held_out], list(adult.classes))
