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
    from quorate.folder.demo import write_direct, write_inputs
    from quorate.folder.direct_run import read_direct
    from quorate.folder.methods import execute
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
            direct = execute(read_direct(write_direct(folder, **how)), command="quorate demo", watch=watch)
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
    click.echo(_ending(by_votes, by_rounds, folder, seconds=seconds))


def _ending(by_votes: Score, by_rounds: Score, folder: Path, *, seconds: float) -> str:
    return (
        f"At the same ε: votes {100 * by_votes.accuracy:.1f} %, the direct method {100 * by_rounds.accuracy:.1f} %\n"
        f"(a linear model of the private rows themselves, in {folder}/direct);\n"
        f"always saying the commonest class, {100 * (by_votes.commonest or 0):.1f} %.\n"
        f"That took {seconds:.0f} s. With data of your own: quorate init my-run,\n"
        "edit my-run/quorate.toml, quorate plan my-run, quorate check my-run,\n"
        "quorate run my-run."
    )


def _stored_and_next(folder: Path) -> str:
    """Say what a stop of the demo has stored, and what goes on with its folder: the demo takes a new one."""
    from quorate.folder.status import stored_so_far

    begun = [run for run in (folder / "direct", folder) if (run / "quorate.toml").exists()]
    if not begun:
        return "nothing is stored yet; type the same command again"
    again = f"quorate run {for_shell(begun[0])}"
    stored = stored_so_far(begun[0])
    return f"nothing is stored yet; {again} begins anew" if stored is None else f"{stored}, and {again} goes on"


def new_folder() -> Path:
    """``quorate-demo``, or the first of ``quorate-demo-2``, ``-3``, … that does not exist."""
    folder, number = Path("quorate-demo"), 1
    while folder.exists():
        number += 1
        folder = Path(f"quorate-demo-{number}")
    return folder
